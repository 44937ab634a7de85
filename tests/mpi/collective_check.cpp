#include "mpi_tests.hpp"

namespace troupe::test {
namespace {

constexpr std::int64_t n = 64;

/// Calls that differ between the ranks fail on all of them, with one error that names the ranks and
/// what each calls; nothing is launched, and the next collective works.
void call_what_differs(Context& c) {
  const auto a = c.device().alloc<double>(n), b = c.device().alloc<double>(n);
  const auto narrow = c.device().alloc<float>(n);
  const bool odd = c.rank() == 1;
  const auto expect_difference = [&](const Future<void>& future,
                                     const std::vector<std::string>& words) {
    c.require(future.wait_for(kDeadline), "a collective that differs does not resolve");
    const auto& outcome = future.wait();
    const auto text = outcome.ok() ? std::string("ok") : outcome.error().message;
    c.expect_equal(outcome.code(), Errc::invalid, "a collective that differs: " + text);
    for (const auto& word : words)
      c.expect(text.find(word) != std::string::npos, "no '" + word + "' in: " + text);
    for (const auto& other : c.world().gather_text(text))
      c.expect_equal(other, text, "another rank is told: " + other);
    // The numbers are as good as they were, and so is the world.
    c.device().fill(b, 1.0);
    c.world().all_reduce(b, ReduceOp::sum).get();
    for (const auto value : c.device().download(b))
      c.expect_equal(value, c.size(), "the collective after one that differed is wrong");
    c.expect_equal(c.device().download(a), std::vector<double>(n, 2.0), "something was launched");
  };
  c.device().fill(a, 2.0);
  c.device().fill(narrow, 2.0f);
  auto& world = c.world();
  expect_difference(
      world.all_reduce(odd ? a.slice(0, n / 2) : a, ReduceOp::sum),
      {"rank 1: collective.all_reduce of 32 f64, sum", "collective.all_reduce of 64 f64, sum"});
  expect_difference(
      odd ? world.all_reduce(narrow, ReduceOp::sum) : world.all_reduce(a, ReduceOp::sum),
      {"rank 1: collective.all_reduce of 64 f32, sum", "of 64 f64"});
  expect_difference(world.all_reduce(a, odd ? ReduceOp::max : ReduceOp::min),
                    {"rank 1: collective.all_reduce of 64 f64, max", "of 64 f64, min"});
  expect_difference(world.broadcast(a, Rank(odd ? 1 : 0)),
                    {"rank 1: collective.broadcast of 64 f64, root 1", "root 0"});
  expect_difference(odd ? world.broadcast(a, Rank(0)) : world.all_reduce(a, ReduceOp::sum),
                    {"rank 1: collective.broadcast", "collective.all_reduce"});
  expect_difference(odd ? world.device_barrier({a}) : world.all_reduce(a, ReduceOp::sum),
                    {"rank 1: collective.barrier", "collective.all_reduce"});
  c.expect_equal(c.device().take_error().code(), Errc::invalid, "take_error() has not heard of it");
}

}  // namespace

/// Among ranks of one host that needs no option, and messages, too, must be as long as they are
/// expected to be.
TROUPE_MPI_CASE(collective_differences) {
  call_what_differs(c);
  if (c.rank() >= 2) return;
  const auto data = c.device().alloc<double>(n);
  c.device().fill(data, 1.0);
  const auto message =
      c.first() ? c.world().send(data, Rank(1)) : c.world().receive(data.slice(0, n / 2), Rank(0));
  c.require(message.wait_for(kDeadline), "a message that is too long does not resolve");
  const auto text = message.wait().ok() ? "ok" : message.wait().error().message;
  c.expect(
      message.wait().code() == Errc::invalid &&
          text.find("rank 0 sends 512 bytes to rank 1, which expects 256") != std::string::npos,
      "a message that is too long: " + text);
}

/// With --check collectives all that is compared before it is submitted, also between hosts; and if
/// one rank's call is refused for itself, it says why, and the others do not wait for it.
TROUPE_MPI_CASE(collective_check) {
  call_what_differs(c);
  const auto a = c.device().alloc<double>(n), b = c.device().alloc<double>(n);
  const bool odd = c.rank() == 1;
  auto& world = c.world();
  const auto mixed = world.all_reduce(a, odd ? b.slice(0, 1) : b, ReduceOp::sum);
  c.require(mixed.wait_for(kDeadline), "a collective that one rank refuses does not resolve");
  const auto& outcome = mixed.wait();
  c.expect(
      outcome.code() == Errc::invalid &&
          outcome.error().message.find("destination has 1 elements, not 64") != std::string::npos,
      "a collective that one rank refuses: " + (outcome.ok() ? "ok" : outcome.error().message));
  c.expect_equal(c.device().take_error().code(), Errc::invalid, "take_error() has not heard of it");
}

}  // namespace troupe::test
