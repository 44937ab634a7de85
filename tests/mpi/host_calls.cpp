#include "mpi_tests.hpp"

// Host collectives in the steps of a run.

namespace troupe::test {
namespace {

using memory::FaultKind;

/// Calls every host collective once, with values that name the step. Fails if a collective brings
/// ranks of different steps together. Each step of the run does this.
void exchange(Context& c, Collectives& ranks, std::int64_t step) {
  const auto same = [&](bool holds, const char* what) {
    c.expect(holds, std::string(what) + " brings ranks of different steps together");
  };
  const auto steps = ranks.gather_values(step);
  same(steps == std::vector<std::int64_t>(static_cast<std::size_t>(ranks.size()), step),
       "gather_values");
  for (const auto& text : ranks.gather_text("step " + std::to_string(step)))
    same(text == "step " + std::to_string(step), "gather_text");
  const std::vector<std::vector<std::int64_t>> outgoing(static_cast<std::size_t>(ranks.size()),
                                                        std::vector{step});
  for (const auto& part : ranks.exchange_values(outgoing))
    same(part == std::vector{step}, "exchange_values");
  ranks.agree({});
  ranks.barrier();
}

}  // namespace

/// A device host that dies keeps its rank from a host collective, in which the others wait: they go
/// back with it, and the step is repeated on all ranks.
TROUPE_MPI_CASE(host_calls) {
  auto& device = c.device();
  auto group = c.world().split(c.rank() % 2, c.rank());
  GpuRef<double> x;
  std::int64_t calls = 0;
  Checkpoint state(device);
  const auto before = c.world().recoveries().size();
  bool struck_before = false;
  std::set<std::int64_t> struck;
  // This rank notices at once, in the step itself, and does not come to what the others wait in.
  const auto lose = [&] {
    device.inject(FaultKind::kill);
    device.fill(x, 0.0);
    (void)device.download(x);
  };
  c.world().run(state,
                [&](std::int64_t step) {
                  ++calls;
                  device.blas().scal(1.0, x);
                  const bool strikes = step % 7 == 3 && step / 7 % c.size() == c.rank();
                  if (strikes && struck.insert(step).second) lose();
                  exchange(c, step % 2 == 0 ? static_cast<Collectives&>(c.world()) : group, step);
                  device.fill(x, static_cast<double>(step));
                  return step + 1 < 40 ? Step::again : Step::done;
                },
                {.commit_every = 5, .prepare = [&] {
                   x = device.alloc<double>(100);
                   device.fill(x, 1.0);
                   if (c.rank() == c.size() - 1 && !std::exchange(struck_before, true)) lose();
                   exchange(c, c.world(), -1);
                   state.add("x", x);
                   state.add_value("calls", calls);
                 }});
  c.expect_equal(device.download(x), std::vector<double>(100, 39.0), "x is of another step");
  c.expect_equal(calls, 40, std::to_string(calls) + " calls are counted");
  c.expect(c.world().recoveries().size() >= before + 7, "the faults did not strike");
  exchange(c, c.world(), 99);  // outside of the run, they are in step
}

/// Ranks of a run that call different host collectives hear of it at once, all of them.
TROUPE_MPI_CASE(host_calls_differ) {
  auto data = c.device().alloc<double>(10);
  c.device().fill(data, 1.0);
  Checkpoint state(c.device());
  state.add("data", data);
  c.world().run(state, [&](std::int64_t step) {
    if (step == 3 && c.first()) c.world().barrier();
    if (step == 3 && !c.first()) (void)c.world().gather_values(step);
    return step < 5 ? Step::again : Step::done;
  });
}

}  // namespace troupe::test
