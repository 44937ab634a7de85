#include <troupe/lib/dnn.hpp>

#include <cmath>
#include <string>

#include "bad_arguments.hpp"
#include "dnn_numbers.hpp"

namespace troupe::test {
namespace {

/// Sequences, their labels, and x of all of them: time, batch, classes.
struct CtcProblem {
  CtcShape shape;
  std::vector<std::vector<std::int32_t>> labels;
  std::vector<std::int32_t> steps;
  std::vector<double> x;

  CtcProblem(std::int64_t time, std::int64_t classes,
             std::vector<std::vector<std::int32_t>> its_labels, std::vector<std::int32_t> its_steps)
      : shape{time, std::ssize(its_labels), classes},
        labels(std::move(its_labels)),
        steps(std::move(its_steps)),
        x(uniform<float>(shape.time * shape.batch * shape.classes, 50)) {
    for (auto& value : x) value *= 2;
  }
};

/// The cost of a sequence: what classes a path has made of the label so far, and whether its last
/// step was a blank, is all that the next step depends on.
double cost_of(const CtcProblem& problem, std::size_t b) {
  const auto& label = problem.labels[b];
  const auto classes = static_cast<std::size_t>(problem.shape.classes);
  const auto batch = static_cast<std::size_t>(problem.shape.batch);
  std::vector<std::array<double, 2>> made(label.size() + 1);  // by count: after a blank, or a class
  made[0][0] = 1;
  for (std::size_t t = 0; t < static_cast<std::size_t>(problem.steps[b]); ++t) {
    const auto* const row = problem.x.data() + (t * batch + b) * classes;
    double sum = 0;
    for (std::size_t k = 0; k < classes; ++k) sum += std::exp(row[k]);
    auto next = made;
    for (std::size_t count = 0; count <= label.size(); ++count) {
      next[count][0] = (made[count][0] + made[count][1]) * std::exp(row[0]) / sum;
      next[count][1] = 0;
      if (count == 0) continue;
      const auto own = label[count - 1];
      const bool repeats = count > 1 && label[count - 2] == own;
      const auto before = made[count - 1][0] + (repeats ? 0 : made[count - 1][1]);
      next[count][1] =
          (made[count][1] + before) * std::exp(row[static_cast<std::size_t>(own)]) / sum;
    }
    made = next;
  }
  return -std::log(made.back()[0] + made.back()[1]);
}

std::vector<CtcProblem> ctc_problems() {
  return {{6, 3, {{1, 2}, {1, 1}, {2}}, {6, 5, 3}},
          {12, 5, {{4, 3, 3, 1}, {2, 2, 2}, {1, 2, 3, 4, 1}, {3}}, {12, 9, 10, 1}},
          {30, 8, {{1, 7, 7, 2, 6, 5, 5, 5, 3}, {2}}, {30, 29}},
          {4, 2, {{1}}, {4}}};
}

/// A problem on the device. What is written is 7 before.
struct CtcOnDevice {
  explicit CtcOnDevice(const CtcProblem& problem) : shape(problem.shape) {
    std::vector<std::int32_t> all, lengths;
    for (const auto& label : problem.labels) {
      all.insert(all.end(), label.begin(), label.end());
      lengths.push_back(static_cast<std::int32_t>(label.size()));
    }
    tensors = {put(narrowed<float>(problem.x)),
               put(all),
               put(lengths),
               put(problem.steps),
               put(std::vector<float>(lengths.size(), 7)),
               put(std::vector<float>(problem.x.size(), 7))};
  }
  CtcShape shape;
  CtcTensors tensors;
};

void skip_without_ctc() {
  const auto x = put(std::vector<float>(8)), y = put(std::vector<float>(8));
  skip_unless_installed(dnn::on(device()).softmax(x, y, {.extent = 8}));
}

TEST(DnnCtc, CostsAndGradientsAreThoseOfTheDefinition) {
  skip_without_ctc();
  if (::testing::Test::IsSkipped() || ::testing::Test::HasFatalFailure()) return;
  for (auto problem : ctc_problems()) {
    CtcOnDevice on_device(problem);
    dnn::on(device()).ctc_loss(on_device.tensors, on_device.shape).get();
    const auto costs = device().download(on_device.tensors.costs);
    const auto gradients = device().download(on_device.tensors.gradients);
    for (std::size_t b = 0; b < problem.labels.size(); ++b) {
      const auto exact = cost_of(problem, b);
      ASSERT_NEAR(costs[b], exact, 1e-5 + 1.3e-5 * exact) << b;
    }
    const auto classes = static_cast<std::size_t>(problem.shape.classes);
    for (std::size_t i = 0; i < problem.x.size(); ++i) {
      const auto b = i / classes % problem.labels.size();
      constexpr double h = 1e-5;
      const auto at = problem.x[i];
      problem.x[i] = at + h;
      const auto above = cost_of(problem, b);
      problem.x[i] = at - h;
      const auto below = cost_of(problem, b);
      problem.x[i] = at;
      ASSERT_NEAR(gradients[i], (above - below) / (2 * h), 2e-5) << i;
    }
  }
}

TEST(DnnCtc, RepeatsTheSameBitsWithAndWithoutGradients) {
  skip_without_ctc();
  if (::testing::Test::IsSkipped() || ::testing::Test::HasFatalFailure()) return;
  for (const auto& problem : ctc_problems()) {
    CtcOnDevice on_device(problem), again(problem), costs_alone(problem);
    costs_alone.tensors.gradients = {};
    for (const auto* const run : {&on_device, &again, &costs_alone})
      dnn::on(device()).ctc_loss(run->tensors, run->shape).get();
    const auto costs = device().download(on_device.tensors.costs);
    EXPECT_EQ(costs, device().download(again.tensors.costs));
    EXPECT_EQ(device().download(on_device.tensors.gradients),
              device().download(again.tensors.gradients));
    const auto alone = device().download(costs_alone.tensors.costs);
    for (std::size_t b = 0; b < costs.size(); ++b) EXPECT_NEAR(costs[b], alone[b], 1e-5 * costs[b]);
  }
}

/// A label of more classes than there are steps has no path.
TEST(DnnCtc, GradientsOfAShortSequenceAreZero) {
  skip_without_ctc();
  if (::testing::Test::IsSkipped() || ::testing::Test::HasFatalFailure()) return;
  const CtcProblem problem(4, 3, {{1, 1, 2, 1}, {1, 2}}, {4, 4});
  CtcOnDevice on_device(problem);
  dnn::on(device()).ctc_loss(on_device.tensors, on_device.shape).get();
  const auto gradients = device().download(on_device.tensors.gradients);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (i / 3 % 2 == 0) {
      ASSERT_EQ(gradients[i], 0) << i;
    } else {
      ASSERT_NE(gradients[i], 0) << i;
    }
  }
}

using DnnBadCtc = BadArguments;
TEST_F(DnnBadCtc, IsRefused) {
  const auto memory = [](std::int64_t count) {
    return put(std::vector<std::int32_t>(static_cast<std::size_t>(count), 1)).operand();
  };
  const auto reals = put(std::vector<float>(24)), made = put(std::vector<float>(24)),
             costs = put(std::vector<float>(2));
  const dnn::CtcLoss sound{DType::f32,
                           4,
                           2,
                           3,
                           5,
                           3,
                           reals.operand(),
                           memory(5),
                           memory(2),
                           memory(2),
                           costs.operand(),
                           made.operand()};
  const auto refused = [&](auto change) {
    auto op = sound;
    change(op);
    expect_refused(op);
  };
  refused([](auto& op) { op.time = 0; });
  refused([](auto& op) { op.batch = 0; });
  refused([](auto& op) { op.classes = 1; });
  refused([](auto& op) { op.labels_count = 0; });
  refused([](auto& op) { op.labels_count = 6; });
  refused([](auto& op) { op.max_label = 0; });
  refused([](auto& op) { op.max_label = 256; });
  refused([](auto& op) { op.time = 5; });
  refused([](auto& op) { op.batch = 3; });
  refused([](auto& op) { op.time = op.batch = op.classes = (std::int64_t{1} << 31) - 1; });
  refused([&](auto& op) { op.costs = absent; });
  refused([&](auto& op) { op.labels = absent; });
  refused([&](auto& op) { op.gradients = op.x; });
}

}  // namespace
}  // namespace troupe::test
