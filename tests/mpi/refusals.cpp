#include <stdexcept>
#include <troupe/distributed.hpp>

#include "mpi_tests.hpp"

// Wrong arguments of a program throw an exception, on all ranks if all ranks have to know of it.
// They never abort the job, and never leave the other ranks waiting.

namespace troupe::test {
namespace {

/// Expects CollectiveException, or Exception, (invalid) with these words.
template <class Wanted>
void expect_refused(Context& c, const std::string& what, const std::string& words,
                    const std::function<void()>& call) {
  try {
    call();
    c.expect(false, what + ": it is not refused");
  } catch (const Wanted& e) {
    c.expect(e.code() == Errc::invalid && e.error().message.find(words) != std::string::npos,
             what + ": " + e.what());
  } catch (const std::exception& e) {
    c.expect(false, what + ": another exception: " + e.what());
  }
}

struct NoDefault {
  explicit NoDefault(int v) : value(v) {}
  int value;
};

struct Run {
  explicit Run(Context& context) : c(&context), state(context.device()) {
    x = c->device().alloc<double>(10);
    c->device().fill(x, 0.0);
    state.add("x", x);
  }
  void operator()(const RunOptions& options, const std::function<void(std::int64_t)>& at = {}) {
    c->world().run(
        state,
        [&](std::int64_t step) {
          if (at) at(step);
          return step < 12 ? Step::again : Step::done;
        },
        options);
  }
  Context* c;
  Checkpoint state;
  GpuRef<double> x;
};

/// Options of a run, and what its callbacks throw.
void run_refusals(Context& c) {
  using Together = CollectiveException;
  Run run(c);
  const auto refused = [&](const std::string& what, const std::string& words,
                           const RunOptions& options) {
    expect_refused<Together>(c, what, words, [&] { run(options); });
  };
  refused("commit_every 0", "at least 1", {.commit_every = 0});
  refused("stride 0", "at least 1", {.stride = 0});
  refused("stride 3 of 5", "multiples of stride = 3", {.commit_every = 5, .stride = 3});
  refused("a negative step", "must not be negative", {.first_step = -5});
  // On one rank alone.
  refused("one rank's", "at least 1", {.commit_every = c.rank() == c.size() - 1 ? 0 : 10});
  constexpr auto kFar = std::int64_t{1} << 62;
  expect_refused<Exception>(c, "no number behind", "there is no number of a step behind", [&] {
    c.world().run(run.state, [](std::int64_t) { return Step::again; },
                  {.first_step = kFar, .commit_every = kFar, .stride = kFar});
  });
  (void)c.world().wait_active();

  const auto thrown_by_one = [&](auto what) {
    return [&c, what] {
      if (c.rank() == c.size() - 1) throw what;
    };
  };
  Checkpoint fresh(c.device());
  const auto prepares = [&](const std::string& what, const std::string& words,
                            const std::function<void()>& prepare) {
    expect_refused<Together>(c, what, words, [&] {
      c.world().run(fresh, [](std::int64_t) { return Step::done; }, {.prepare = prepare});
    });
  };
  prepares("a number thrown in prepare", "no std::exception", thrown_by_one(42));
  prepares("an exception thrown in prepare", "why not",
           thrown_by_one(std::runtime_error("why not")));

  int refusals = 0;
  run({}, [&](std::int64_t step) {
    if (step != 3) return;
    expect_refused<Exception>(c, "a run within a run", "within another one", [&] {
      Checkpoint inner(c.device());
      c.world().run(inner, [](std::int64_t) { return Step::done; });
    });
    ++refusals;
  });
  c.expect_equal(refusals, 1, "the outer run does not go on");
}

/// Arguments of everything else.
void argument_refusals(Context& c) {
  auto& device = c.device();
  const auto refused = [&](const std::string& what, const std::string& words,
                           const std::function<void()>& call) {
    expect_refused<Exception>(c, what, words, call);
  };
  const auto x = device.alloc<double>(10);
  device.fill(x, 1.0);
  refused("a slice beyond the end", "slice: 5 elements from 8 on are not all within 10",
          [&] { (void)x.slice(8, 5); });
  refused("a slice before the begin", "slice", [&] { (void)x.slice(-1, 5); });
  refused("a buffer of -1", "a buffer of -1 elements", [&] { (void)device.alloc<double>(-1); });
  refused("token of nothing", "an empty GpuRef", [&] { (void)GpuRef<double>().token(); });
  refused("job_rank", "there is no rank 99", [&] { (void)c.world().job_rank(99); });
  refused("job_rank -1", "there is no rank -1", [&] { (void)c.world().job_rank(-1); });
  refused("parts", "exchange_values: 0 parts for",
          [&] { (void)c.world().exchange_values(std::vector<std::vector<int>>()); });
  refused("pinned beyond the end", "operand", [&] { (void)device.pinned<int>(4).operand(3, 2); });
  refused("an option that there is not", "is not declared",
          [&] { (void)c.runtime().config().integer("no-such-option"); });

  Checkpoint state(device);
  GpuRef<double> none;
  NoDefault value(3);
  int other = 0;
  refused("an empty buffer", "an empty GpuRef", [&] { state.add("none", none); });
  state.add_value("value", value);
  refused("a name twice", "have the name value", [&] { state.add_value("value", other); });
  refused("no name", "1 to 63 bytes", [&] { state.add_value("", other); });
  refused("a long name", "1 to 63 bytes", [&] { state.add_value(std::string(64, 'n'), other); });
  state.commit(0).get();
  value.value = 4;
  c.expect(state.rollback(0).ok() && value.value == 3,
           "a value that cannot be made without arguments does not go back");

  distributed::Grid grid(c.world(), c.size(), 1);
  distributed::Matrix<double> matrix(device, grid, {4, 4, 1, 1, 0, 0});
  const std::vector<double> whole(16, 1.0);
  for (const int root : {-1, c.size(), 1 << 20}) {
    const auto words = "there is no rank " + std::to_string(root);
    refused("scatter", words, [&] { matrix.scatter(whole, root); });
    refused("gather", words, [&] { (void)matrix.gather(root); });
  }
  if (c.size() > 1)
    refused("roots that differ", "different roots", [&] { (void)matrix.gather(c.rank() % 2); });
  matrix.scatter(whole, c.size() - 1);
  c.expect_equal(matrix.gather(0).size(), (c.first() ? 16u : 0u), "a root that there is");
}

/// A state has thousands of entries; one that cannot be saved is refused where it would be.
void many_entries(Context& c) {
  const SharedFolder folder(c);
  const SaveOptions save{.directory = folder.path(), .name = "many", .every = 4};
  const auto run = [&](std::size_t entries, const SaveOptions& options) {
    std::vector<std::int64_t> values(entries, 0);
    Checkpoint state(c.device());
    for (std::size_t i = 0; i < entries; ++i) state.add_value(std::to_string(i), values[i]);
    c.world().run(state,
                  [&](std::int64_t step) {
                    for (auto& value : values) ++value;
                    return step < 5 ? Step::again : Step::done;
                  },
                  {.commit_every = 4, .save = options});
    return std::all_of(values.begin(), values.end(), [](auto value) { return value == 6; });
  };
  c.expect(run(5000, save), "a run with 5,000 entries");
  const auto state = c.world().find_state(save).take();
  c.expect(state && state->step() == 4 && state->entries(0)->size() == 5000,
           "all of them are on disk");
  c.expect(run(16385, {}), "a run with more entries than a state may have, which is not saved");
  expect_refused<CollectiveException>(c, "too many to be saved", "16385 entries",
                                      [&] { run(16385, save); });
  (void)c.world().wait_active();
}

}  // namespace

TROUPE_MPI_CASE(refusals) {
  run_refusals(c);
  argument_refusals(c);
  many_entries(c);
}

}  // namespace troupe::test
