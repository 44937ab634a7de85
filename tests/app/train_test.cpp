#include <cmath>
#include <vector>

#include "portion.hpp"
#include "report_job.hpp"

// troupe-train as its users run it. What its gradients are compared with is a host program of its
// own; what its training is compared with are runs of the same training in another way.

namespace troupe::test {
namespace {

/// Small enough for a second, with more than one of all that there can be more of.
const std::pair<const char*, const char*> kSmall[] = {
    {"--layers", "2"},           {"--heads", "2"},     {"--channels", "32"},
    {"--sequence", "16"},        {"--batch", "2"},     {"--warmup", "4"},
    {"--learning-rate", "0.01"}, {"--log-every", "0"}, {"--vocabulary", "264"}};

Arguments small(Arguments arguments) {
  for (const auto& [option, number] : kSmall) {
    if (std::find(arguments.begin(), arguments.end(), option) == arguments.end())
      arguments = arguments + Arguments{option, number};
  }
  return arguments;
}

/// Runs it to an end with that status; its report.
Json train(int ranks, const Arguments& arguments, int status = 0) {
  auto report = report_of(ranks, small(arguments), status);
  EXPECT_EQ(report.value("right", false), status == 0);
  return report;
}

std::vector<double> losses_of(const Json& report) {
  return report.value("losses", std::vector<double>());
}

/// Of so many steps. On GPUs a communicator that was formed anew may add up in another order.
void expect_same_losses(const Json& one, const Json& other, std::size_t steps) {
  const auto a = losses_of(one), b = losses_of(other);
  ASSERT_GE(a.size(), steps);
  ASSERT_GE(b.size(), steps);
  for (std::size_t step = 0; step < steps; ++step) {
    if (on_cuda())
      EXPECT_NEAR(a[step], b[step], 1e-3 * a[step]) << "step " << step;
    else
      EXPECT_EQ(a[step], b[step]) << "step " << step;
  }
}

/// Of so many steps, with sums over all tokens in another order. So gradients differ by roundings:
/// by 2 (8 layers + 4) sqrt(longest sum) 2^-24 of themselves, as the program's tolerance_of()
/// derives it, which is 4e-5 here with 256 terms. Each of the steps may add as much.
/// Adam takes no notice of the size of gradients: their norms tell of it.
void expect_near_losses(const Json& one, const Json& other, std::size_t steps) {
  const auto a = losses_of(one), b = losses_of(other);
  ASSERT_GE(a.size(), steps);
  ASSERT_GE(b.size(), steps);
  const auto norms = one.value("gradient_norms", std::vector<double>()),
             other_norms = other.value("gradient_norms", std::vector<double>());
  for (std::size_t step = 0; step < steps; ++step) {
    const double off = 4e-5 * static_cast<double>(step + 1);
    EXPECT_NEAR(a[step], b[step], off * b[step]) << step;
    EXPECT_NEAR(norms.at(step), other_norms.at(step), off * other_norms.at(step)) << step;
  }
}

TEST(Train, GradientsAreThoseOfTheHostProgram) {
  for (const auto* dtype : {"f32", "bf16"}) {
    const auto report = train(1, {"--dtype", dtype, "--check-gradients", "--steps", "8"});
    const auto gradients = report.value("gradients", Json::object());
    EXPECT_TRUE(gradients.value("right", false)) << gradients.dump(2);
    // Far below what a missing term would make.
    EXPECT_LT(gradients.value("tolerance", 1.0), 0.2);
    EXPECT_GT(gradients.value("largest_error", 0.0), 0.0);
  }
}

TEST(Train, TwoRanksAreOneWithTwiceTheBatch) {
  if (ranks_here(2) < 2) GTEST_SKIP() << "one GPU";
  const Scratch scratch;
  std::string words;
  for (int i = 0; i < 200; ++i) words += "word " + std::to_string(i * i % 37) + "; ";
  const auto text = scratch.write("text", words);
  const auto two = train(2, {"--steps", "12", "--text", text});
  const auto one = train(1, {"--steps", "12", "--text", text, "--batch", "4"});
  EXPECT_EQ(two["ranks"], 2);
  EXPECT_TRUE(two.value("same_parameters", false));
  expect_near_losses(two, one, 12);
}

/// The same curve, however the run was disturbed, done, or taken up again.
TEST(Train, NothingChangesTheLosses) {
  const int ranks = ranks_here(2);
  const Arguments problem{"--steps", "40", "--commit-every", "8"};
  const auto undisturbed = train(ranks, problem);
  ASSERT_EQ(losses_of(undisturbed).size(), 40u);
  EXPECT_EQ(undisturbed["recoveries"], Json::array());

  const auto struck = train(ranks, problem + Arguments{"--fault", "kill@13:0", "--fault",
                                                       "segv@27:" + std::to_string(ranks - 1)});
  ASSERT_EQ(struck["recoveries"].size(), 2u);
  EXPECT_EQ(struck["recoveries"][0]["kind"], "kill");
  EXPECT_EQ(struck["recoveries"][1]["rank"], ranks - 1);
  expect_same_losses(struck, undisturbed, 40);

  expect_same_losses(train(ranks, problem + Arguments{"--record", "off"}), undisturbed, 40);

  if (ranks > 1) {
    const auto died = train(ranks, problem + Arguments{"--on-rank-loss", "respawn", "--fault",
                                                       "rank@21:" + std::to_string(ranks - 1)});
    ASSERT_EQ(died["recoveries"].size(), 1u);
    EXPECT_EQ(died["recoveries"][0]["kind"], "rank");
    expect_same_losses(died, undisturbed, 40);
  }

  const Scratch scratch;
  const Arguments saving{"--commit-every",     "8", "--checkpoint-dir", scratch.file("states"),
                         "--checkpoint-every", "1"};
  train(ranks, saving + Arguments{"--steps", "24"});
  const auto further = train(ranks, saving + Arguments{"--steps", "40"});
  EXPECT_GT(further.value("restarted_from", -1), 0);
  EXPECT_EQ(further.value("restarted_from", -1) + further.value("iterations", -1), 40);
  expect_same_losses(further, undisturbed, 40);
}

/// One rank after another, and each of its passes, has the sequences that follow.
void expect_all_shared_out(std::int64_t sequences, std::int64_t most, int ranks) {
  std::int64_t next = 0;
  const auto first = train::portion_of(0, ranks, sequences, most);
  EXPECT_LE(first.sequences_of_pass, most);
  for (int rank = 0; rank < ranks; ++rank) {
    const auto portion = train::portion_of(rank, ranks, sequences, most);
    EXPECT_EQ(portion.passes, first.passes);
    EXPECT_EQ(portion.sequences_of_pass, first.sequences_of_pass);
    EXPECT_LE(std::abs(portion.count - first.count), 1);
    EXPECT_EQ(portion.first, next);
    for (std::int64_t pass = 0; pass < portion.passes; ++pass) {
      const auto count = portion.count_of(pass);
      EXPECT_TRUE(count == 0 || portion.first_of(pass) == next);
      EXPECT_LE(count, portion.sequences_of_pass);
      next += count;
    }
    EXPECT_EQ(next, portion.first + portion.count);
  }
  EXPECT_EQ(next, sequences);
}

TEST(Train, AnyNumberOfRanksHasAllSequencesOfAStep) {
  for (std::int64_t sequences = 1; sequences <= 24; ++sequences) {
    for (std::int64_t most = 1; most <= sequences; ++most) {
      for (int ranks = 1; ranks <= sequences; ++ranks)
        expect_all_shared_out(sequences, most, ranks);
    }
  }
}

Arguments fault(const std::string& kind, int step, int rank) {
  return {"--fault", kind + "@" + std::to_string(step) + ":" + std::to_string(rank)};
}

/// With --on-loss shrink: the same steps, shared out among the ranks that are left.
TEST(Train, GoesOnWithoutRanksThatAreLost) {
  const int ranks = ranks_here(3);
  if (ranks < 2) GTEST_SKIP() << "a rank is lost";
  // Two of three ranks have 4 and 5 of the 9 sequences, in two passes; one has three passes.
  const Arguments problem{"--commit-every", "4", "--batch", "3"};
  const Arguments shrinking{"--on-loss", "shrink", "--restart-budget", "0", "--rejoin-after", "0s"};
  const auto undisturbed = train(ranks, problem + Arguments{"--steps", "40"});
  EXPECT_EQ(undisturbed["final_ranks"], ranks);

  const Scratch scratch;
  const auto saving =
      problem + Arguments{"--checkpoint-dir", scratch.file("states"), "--checkpoint-every", "4"};
  // Without rank 1 no commit is whole: the others do not come to step 17 before they know.
  auto losing = saving + shrinking + fault("kill", 11, 1);
  if (ranks == 3)
    losing = losing + Arguments{"--on-health", "shrink"} + fault("failing-gpu", 17, 0);
  const auto one_left = train(ranks, losing + Arguments{"--steps", "32"});
  EXPECT_EQ(one_left["ranks"], ranks);
  const auto& recoveries = one_left["recoveries"];
  ASSERT_GE(std::ssize(recoveries), 1);
  EXPECT_EQ(one_left["final_ranks"], ranks - std::ssize(recoveries));
  EXPECT_EQ(recoveries[0]["kind"], "failed");
  // A rank whose GPU is failing leaves at a commit soon after: where steps are quick, the last one.
  if (recoveries.size() > 1) {
    EXPECT_EQ(recoveries[1]["kind"], "withdrawn");
  }
  expect_near_losses(one_left, undisturbed, 32);
  // The commit of step 4 was there before that of step 8 was made: these were not done again.
  expect_same_losses(one_left, undisturbed, 4);

  // What fewer have saved is taken up by all, if they have as many sequences together.
  const auto further = train(ranks, saving + Arguments{"--steps", "40"});
  EXPECT_GT(further.value("restarted_from", -1), 16);
  expect_near_losses(further, undisturbed, 40);
  Job other(1, small(saving + Arguments{"--steps", "40"}));
  EXPECT_EQ(other.wait(), 2) << other.out() << other.err();
  ASSERT_EQ(other.complaints().size(), 1u) << other.err();
  EXPECT_NE(other.complaints()[0].find(ranks == 3 ? "--batch: a step of the saved state has 9 "
                                                    "sequences, and here it has 3"
                                                  : "--batch: "),
            std::string::npos)
      << other.err();
  EXPECT_TRUE(other.nothing_left());
  Job another(ranks, small({"--steps", "40", "--commit-every", "4", "--batch", "2",
                            "--checkpoint-dir", scratch.file("states")}));
  EXPECT_EQ(another.wait(), 2) << another.out() << another.err();
  EXPECT_NE(another.err().find("with another number of sequences of a step (--batch)"),
            std::string::npos)
      << another.err();
}

/// Rank 0 is lost, and tries its device again at once.
TEST(Train, GoesOnWithARankThatIsBack) {
  const int ranks = ranks_here(2);
  if (ranks < 2) GTEST_SKIP() << "a rank is lost";
  const Arguments problem{"--steps", "40", "--commit-every", "8"};
  const auto report = train(ranks, problem + fault("kill", 11, 0) +
                                       Arguments{"--on-loss", "shrink", "--restart-budget", "0",
                                                 "--rejoin-after", "1ms"});
  // Whether it is back before the end is a matter of speed.
  int rejoined = 0;
  for (const auto& recovery : report["recoveries"])
    rejoined += recovery["kind"] == "rejoin" ? 1 : 0;
  EXPECT_EQ(report["final_ranks"], ranks - 1 + rejoined);
  expect_near_losses(report, train(1, problem + Arguments{"--batch", "4"}), 40);
}

TEST(Train, SaysSoWhereItDoesNotLearn) {
  const auto report = train(1, {"--learning-rate", "1", "--warmup", "0", "--steps", "10"}, 1);
  EXPECT_GT(report.value("final_loss", 0.0), report.value("first_loss", 1.0));
}

TEST(Train, SaysWhatItDoesNotTake) {
  const Scratch scratch;
  const auto text = scratch.write("text", "too short");
  const std::pair<Arguments, std::string> cases[] = {
      {{"--channels", "36"}, "--channels: 36 is no multiple of 8"},
      {{"--heads", "3"}, "--heads: 3 heads cannot share 128 channels"},
      {{"--vocabulary", "300"}, "--vocabulary: 300 is no multiple of 8"},
      {{"--dtype", "bf16", "--heads", "32"}, "--dtype: attention in bf16 wants heads of"},
      {{"--text", text}, "text: 9 bytes, and a sequence takes 65"},
      {{"--text", text.string() + ".not"}, "--text: "},
      {{"--text", text.parent_path().string()}, "Is a directory"},
      {{"--text", "/dev/zero"}, "/dev/zero: not a regular file"},
      {{"--grad-clip", "1e-46"}, "--grad-clip: 1e-46 is 0 in f32"},
      {{"--fault", "kill@100:0"}, "--fault: there is no step 100 among 100"},
      {{"--fault", "kill@20:7"}, "--fault: there is no rank 7 among 1"},
      {{"--model", "gpt2", "--check-gradients"}, "--check-gradients: the model and the batch"}};
  expect_refusals(cases);
}

}  // namespace
}  // namespace troupe::test
