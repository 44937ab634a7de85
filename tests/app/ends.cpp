#include <cstdio>
#include <stdexcept>

#include <troupe/troupe.hpp>

// What becomes of a program that does something wrong: ends_test runs it.

namespace troupe::test {
namespace {

/// Calls with wrong arguments whose futures are dropped: `count` of them, on the last rank.
void drop_errors(Runtime& runtime, int count) {
  auto& device = runtime.device();
  const auto x = device.alloc<double>(4), y = device.alloc<double>(6), s = device.alloc<double>(1);
  device.fill(x, 1.0);
  device.fill(y, 1.0);
  if (runtime.world().rank() != runtime.world().size() - 1) return;
  for (int i = 0; i < count; ++i) device.blas().dot(x, y, s);
}

/// A command that fails on the device, where the program does not wait for it.
void fail_later(Runtime& runtime) {
  auto& device = runtime.device();
  const auto data = device.alloc<double>(4);
  device.fill(data, 1.0);
  runtime.world().broadcast(data, Rank(99));
}

int act(Runtime& runtime, const std::string& what) {
  auto& world = runtime.world();
  const bool last = world.rank() == world.size() - 1;
  if (what == "one-unread") drop_errors(runtime, 1);
  if (what == "unread") drop_errors(runtime, 3);
  if (what == "unread-later") fail_later(runtime);
  if (what == "unread-failing") {
    drop_errors(runtime, 3);
    return 7;
  }
  if (what == "unread-token" && last) {
    auto token = runtime.device().alloc<double>(4).token();
    token.rank = 0;
    token.generation += 7;
    world.fetch(token, runtime.device().alloc<double>(4));
    world.hold(token);
    world.device(Rank(0)).fill(RemoteRef<double>(token).slice(0, 2), 1.0);
    world.device(Rank(0)).blas().dot(RemoteRef<double>(token), RemoteRef<double>(token).slice(0, 1),
                                     RemoteRef<double>(token).slice(0, 1));
  }
  if (what == "read" && last) {
    const auto x = runtime.device().alloc<double>(4), y = runtime.device().alloc<double>(6);
    if (runtime.device().copy(x, y).wait().ok()) return 3;
    runtime.device().copy(x, y);
    if (runtime.device().take_error().ok()) return 4;
  }
  if (what == "in-run") {
    Checkpoint checkpoint(runtime.device());
    const auto x = runtime.device().alloc<double>(4), y = runtime.device().alloc<double>(6),
               s = runtime.device().alloc<double>(1);
    world.run(checkpoint, [&](std::int64_t step) {
      runtime.device().fill(x, 1.0);
      runtime.device().blas().dot(x, y, s);
      return step == 5 ? Step::done : Step::again;
    });
  }
  if (what == "run-exception" || what == "run-left") {
    Checkpoint checkpoint(runtime.device());
    const auto run = [&] {
      world.run(checkpoint, [&](std::int64_t step) {
        if (last && step == 3) throw std::out_of_range("the step is 3");
        return Step::again;
      });
    };
    try {
      run();
    } catch (const std::out_of_range&) {
      if (what == "run-exception") throw;
    }
  }
  // As members do, while spectators return.
  if (what == "collective" && !last) throw CollectiveException({Errc::invalid, 0, "all know"});
  if (what == "exception" && last) throw std::out_of_range("the index is 9");
  if (what == "no-exception" && last) throw 17;
  if (what == "upload") {
    const std::vector<double> five(5, 1.0);
    runtime.device().upload(std::span(five), runtime.device().alloc<double>(4)).get();
  }
  if (what == "slice") (void)runtime.device().alloc<double>(4).slice(2, 3);
  if (what == "exception" || what == "no-exception") world.barrier();
  return kExitSuccess;
}

}  // namespace
}  // namespace troupe::test

int main(int argc, char** argv) {
  using namespace troupe;
  const Program program{
      "troupe-ends", "Ends as it is told.", {{"do", OptionType::text, "", "WHAT", "what to do"}}};
  return run_program(argc, argv, program, [](Runtime& runtime) {
    return test::act(runtime, runtime.config().text("do"));
  });
}
