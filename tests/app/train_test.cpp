#include <cmath>
#include <vector>

#include "report_job.hpp"

// troupe-train as its users run it. What its gradients are compared with is a host program of its
// own; what its training is compared with are runs of the same training in another way.

namespace troupe::test {
namespace {

/// Small enough for a second, with more than one of all that there can be more of.
const std::pair<const char*, const char*> kSmall[] = {
    {"--layers", "2"}, {"--heads", "2"},  {"--channels", "32"},        {"--sequence", "16"},
    {"--batch", "2"},  {"--warmup", "4"}, {"--learning-rate", "0.01"}, {"--log-every", "0"}};

/// Runs it to an end with that status; its report.
Json train(int ranks, Arguments arguments, int status = 0) {
  for (const auto& [option, number] : kSmall) {
    if (std::find(arguments.begin(), arguments.end(), option) == arguments.end())
      arguments = arguments + Arguments{option, number};
  }
  auto report = report_of(ranks, arguments, status);
  EXPECT_EQ(report.value("right", false), status == 0);
  return report;
}

std::vector<double> losses_of(const Json& report) {
  return report.value("losses", std::vector<double>());
}

/// On GPUs a communicator that was formed anew may add up in another order.
void expect_same_losses(const Json& one, const Json& other) {
  const auto a = losses_of(one), b = losses_of(other);
  ASSERT_EQ(a.size(), b.size());
  ASSERT_FALSE(a.empty());
  for (std::size_t step = 0; step < a.size(); ++step) {
    if (on_cuda())
      EXPECT_NEAR(a[step], b[step], 1e-3 * a[step]) << "step " << step;
    else
      EXPECT_EQ(a[step], b[step]) << "step " << step;
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
  const auto a = losses_of(two), b = losses_of(one);
  ASSERT_EQ(a.size(), 12u);
  ASSERT_EQ(b.size(), 12u);
  // Gradients differ by roundings; the program's own tolerance for them is 4e-5 here, and each of
  // the steps may add as much.
  // Adam takes no notice of the size of gradients: their norms tell of it.
  const auto norms = two.value("gradient_norms", std::vector<double>()),
             norms_of_one = one.value("gradient_norms", std::vector<double>());
  for (std::size_t step = 0; step < a.size(); ++step) {
    const double off = 4e-5 * static_cast<double>(step + 1);
    EXPECT_NEAR(a[step], b[step], off * b[step]) << step;
    EXPECT_NEAR(norms.at(step), norms_of_one.at(step), off * norms_of_one.at(step)) << step;
  }
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
  expect_same_losses(struck, undisturbed);

  expect_same_losses(train(ranks, problem + Arguments{"--record", "off"}), undisturbed);

  const Scratch scratch;
  const Arguments saving{"--commit-every",     "8", "--checkpoint-dir", scratch.file("states"),
                         "--checkpoint-every", "1"};
  train(ranks, saving + Arguments{"--steps", "24"});
  const auto further = train(ranks, saving + Arguments{"--steps", "40"});
  EXPECT_GT(further.value("restarted_from", -1), 0);
  EXPECT_EQ(further.value("restarted_from", -1) + further.value("iterations", -1), 40);
  expect_same_losses(further, undisturbed);
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
      {{"--fault", "kill@100:0"}, "--fault: there is no step 100 among 100"},
      {{"--fault", "kill@20:7"}, "--fault: there is no rank 7 among 1"},
      {{"--model", "gpt2", "--check-gradients"}, "--check-gradients: the model and the batch"}};
  expect_refusals(cases);
}

}  // namespace
}  // namespace troupe::test
