#include <algorithm>
#include <random>

#include "mpi_tests.hpp"

namespace troupe::test {
namespace {

using memory::FaultKind;

/// The bytes of element i of what rank `rank` has under `seed`.
std::uint64_t pattern(int rank, std::uint64_t seed, std::int64_t i) {
  auto x = static_cast<std::uint64_t>(i) * 0x9E3779B97F4A7C15u +
           static_cast<std::uint64_t>(rank + 1) * 0xD1B54A32D192ED03u + seed;
  x ^= x >> 29;
  return x * 0xBF58476D1CE4E5B9u;
}

std::vector<std::uint64_t> patterned(int rank, std::uint64_t seed, std::int64_t count) {
  std::vector<std::uint64_t> values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i)
    values[static_cast<std::size_t>(i)] = pattern(rank, seed, i);
  return values;
}

GpuRef<std::uint64_t> uploaded(Context& c, std::uint64_t seed, std::int64_t count) {
  auto buffer = c.device().alloc<std::uint64_t>(count);
  c.device().upload<std::uint64_t>(patterned(c.rank(), seed, count), buffer).get();
  return buffer;
}

Errc code_of(Context& c, const Future<void>& future, const std::string& what) {
  c.require(future.wait_for(kDeadline), what + " does not resolve");
  return future.wait().code();
}

void expect_code(Context& c, const Future<void>& future, Errc wanted, const std::string& what) {
  const auto code = code_of(c, future, what);
  c.expect_equal(code, wanted,
                 what + ": " + (code == Errc::ok ? "ok" : future.wait().error().to_string()) +
                     " instead of " + std::string(to_string(wanted)));
}

int other(const Context& c, int steps = 1) {
  return (c.rank() + steps) % c.size();
}

}  // namespace

/// Every rank fetches from and puts to every rank at once, all lengths, with slices; every byte is
/// compared.
TROUPE_MPI_CASE(tokens) {
  for (const std::int64_t count : {std::int64_t{0}, std::int64_t{1}, std::int64_t{1000},
                                   std::int64_t{262'147}, std::int64_t{3'000'001}}) {
    const auto what = std::to_string(count) + " elements";
    const auto mine = uploaded(c, 1, count);
    const auto inbox = c.device().alloc<std::uint64_t>(count * c.size());
    const auto tokens = c.world().gather_values(mine.token());
    const auto boxes = c.world().gather_values(inbox.token());
    const auto fetched = c.device().alloc<std::uint64_t>(count * c.size());
    std::vector<Future<void>> futures;
    for (int r = 0; r < c.size(); ++r) {
      const auto peer = static_cast<std::size_t>(other(c, r));
      const auto at = static_cast<std::int64_t>(peer) * count;
      futures.push_back(c.world().fetch(tokens[peer], fetched.slice(at, count)));
      auto box = boxes[peer];
      box.offset = static_cast<std::uint64_t>(c.rank() * count);
      box.length = static_cast<std::uint64_t>(count);
      futures.push_back(c.world().put(mine, box));
    }
    for (const auto& future : futures) expect_code(c, future, Errc::ok, what);
    c.world().barrier();
    const auto got = c.device().download(fetched), boxed = c.device().download(inbox);
    for (int r = 0; r < c.size(); ++r) {
      const auto wanted = patterned(r, 1, count);
      const auto at = static_cast<std::ptrdiff_t>(r * count);
      c.expect(std::equal(wanted.begin(), wanted.end(), got.begin() + at),
               what + " fetched from rank " + std::to_string(r));
      c.expect(std::equal(wanted.begin(), wanted.end(), boxed.begin() + at),
               what + " put by rank " + std::to_string(r));
    }
    c.expect_equal(c.device().download(mine), patterned(c.rank(), 1, count), what + ": the source");
  }
  // Slices, into a new buffer.
  const auto mine = uploaded(c, 2, 10'000);
  const auto tokens = c.world().gather_values(mine.slice(5'000, 4'000).token());
  const auto part = c.world().fetch<std::uint64_t>(tokens[static_cast<std::size_t>(other(c))]);
  c.require(part.wait_for(kDeadline), "a fetch into a new buffer does not resolve");
  const auto all = patterned(other(c), 2, 10'000);
  c.expect_equal(c.device().download(part.get()),
                 std::vector<std::uint64_t>(all.begin() + 5'000, all.begin() + 9'000), "a slice");
  c.expect(c.device().take_error().ok(), "nothing went wrong");
  c.world().barrier();
}

/// A reader sees exactly one version of a buffer that its owner writes all the time, and never an
/// older one than it has been told of; program order holds on both sides without waiting.
TROUPE_MPI_CASE(token_order) {
  constexpr std::int64_t kLength = 300'000;
  constexpr int kRounds = 150;
  const auto mine = c.device().alloc<std::int64_t>(kLength);
  c.device().fill<std::int64_t>(mine, 0);
  const auto tokens = c.world().gather_values(mine.token());
  const auto copy = c.device().alloc<std::int64_t>(kLength);
  const auto seen = c.device().pinned<std::int64_t>(kLength);
  std::int64_t behind = 0;
  std::mt19937 random(static_cast<unsigned>(c.rank()));
  for (std::int64_t round = 1; round <= kRounds; ++round) {
    c.device().fill(mine, 2 * round);
    // From here on every rank knows that every other has written this.
    c.world().barrier();
    const auto fetched = c.world().fetch(tokens[static_cast<std::size_t>(other(c))], copy);
    // Comes at any point of the other rank's reading, before and after it too.
    const auto pause = Clock::now() + std::chrono::microseconds(random() % 2'000);
    while (Clock::now() < pause) {
    }
    c.device().fill(mine, 2 * round + 1);
    const auto last = c.device().copy(copy, seen);  // after the fetch, which nobody has waited for
    expect_code(c, fetched, Errc::ok, "a fetch of what is overwritten");
    last.get();
    const auto value = seen[0];
    c.expect(value == 2 * round || value == 2 * round + 1,
             "round " + std::to_string(round) + ": version " + std::to_string(value));
    c.expect(std::all_of(seen.span().begin(), seen.span().end(),
                         [&](auto element) { return element == value; }),
             "round " + std::to_string(round) + ": a mixture of versions");
    behind += value == 2 * round;
    c.world().barrier();
  }
  for (const auto count : c.world().gather_values(behind))
    c.report(std::to_string(count) + " of " + std::to_string(kRounds) +
             " readings came before the write that followed the message");
  // A put takes the source as it is when it is called, and what is asked of one rank stays in
  // order.
  const auto box = c.device().alloc<std::int64_t>(kLength);
  const auto boxes = c.world().gather_values(box.token());
  const auto& target = boxes[static_cast<std::size_t>(other(c))];
  auto remote = c.world().device(Rank(other(c)));
  for (std::int64_t round = 1; round <= 20; ++round) {
    c.device().fill(mine, round);
    const auto put = c.world().put(mine, target);
    c.device().fill<std::int64_t>(mine, -1);
    const auto back = c.world().fetch(target, copy);
    const auto wiped = remote.fill(RemoteRef<std::int64_t>(target), std::int64_t{-2});
    expect_code(c, put, Errc::ok, "a put");
    expect_code(c, back, Errc::ok, "a fetch of what was put");
    expect_code(c, wiped, Errc::ok, "a remote fill");
    const auto values = c.device().download(copy);
    c.expect_equal(std::count(values.begin(), values.end(), round), kLength,
                   "put, fetch and fill of one rank run in order");
    c.world().barrier();
    const auto left = c.device().download(box);
    c.expect_equal(std::count(left.begin(), left.end(), -2), kLength, "the fill comes last");
    c.world().barrier();
  }
  c.expect(c.device().take_error().ok(), "nothing went wrong");
}

/// Bad tokens are refused with what is wrong; nothing is read or written.
TROUPE_MPI_CASE(token_errors) {
  const auto mine = uploaded(c, 3, 1'000);
  const auto tokens = c.world().gather_values(mine.token());
  const auto& good = tokens[static_cast<std::size_t>(other(c))];
  const auto copy = uploaded(c, 4, 1'000);
  const auto before = patterned(c.rank(), 4, 1'000);
  const auto both = [&](GpuToken token, Errc wanted, const std::string& what) {
    expect_code(c, c.world().fetch(token, copy), wanted, "fetch, " + what);
    expect_code(c, c.world().put(copy, token), wanted, "put, " + what);
    auto own = token;
    if (own.rank == good.rank) own.rank = c.rank();
    expect_code(c, c.world().fetch(own, copy), wanted, "fetch of an own token, " + what);
    expect_code(
        c,
        c.world().device(Rank(token.rank)).fill(RemoteRef<std::uint64_t>(token), std::uint64_t{1}),
        token.rank < 0 ? Errc::invalid : wanted, "remote fill, " + what);
  };
  auto bad = good;
  bad.rank = c.size();
  both(bad, Errc::peer_lost, "of no rank");
  bad.rank = -1;
  both(bad, Errc::peer_lost, "of a negative rank");
  bad = good;
  bad.generation += 1;
  both(bad, Errc::stale, "of another generation");
  bad = good;
  bad.buffer = 4'000'000;
  both(bad, Errc::stale, "of no buffer");
  bad.buffer = UINT32_MAX;
  both(bad, Errc::stale, "of no buffer at all");
  bad = good;
  bad.offset = 1;
  both(bad, Errc::invalid, "beyond the end");
  bad.offset = UINT64_MAX / 8 - 10;
  both(bad, Errc::invalid, "far beyond the end");
  bad.offset = UINT64_MAX - 1;
  both(bad, Errc::invalid, "of an offset that overflows");
  bad = good;
  bad.dtype = static_cast<std::uint32_t>(DType::f64);
  expect_code(c, c.world().fetch(bad, copy), Errc::invalid, "fetch of another dtype");
  const auto reals = c.device().alloc<double>(1'000);
  expect_code(c, c.world().fetch(bad, reals), Errc::invalid, "fetch of a dtype that is claimed");
  expect_code(c, c.world().put(reals, bad), Errc::invalid, "put of a dtype that is claimed");
  bad = good;
  bad.length = 999;
  expect_code(c, c.world().fetch(bad, copy), Errc::invalid, "fetch of another length");
  bad.length = UINT64_MAX;
  expect_code(c, c.world().fetch(bad, copy), Errc::invalid, "fetch of an absurd length");
  const auto absurd = c.world().fetch<std::uint64_t>(bad);
  c.expect_equal(absurd.wait().code(), Errc::invalid, "an absurd length, allocated");
  bad = good;
  bad.dtype = 99;
  c.expect_equal(c.world().hold(bad).wait().code(), Errc::invalid, "hold of no dtype");

  // Freed.
  auto gone = c.device().alloc<std::uint64_t>(1'000);
  const auto freed = c.world().gather_values(gone.token());
  gone = {};
  c.world().barrier();
  both(freed[static_cast<std::size_t>(other(c))], Errc::stale, "of a buffer that is freed");

  // Held: its owner's last reference goes, the contents stay.
  auto held = uploaded(c, 5, 1'000);
  const auto holdable = c.world().gather_values(held.token());
  auto lease = c.world().hold(holdable[static_cast<std::size_t>(other(c))]).get();
  auto second = lease;
  c.world().barrier();
  held = {};
  const auto reuse = c.device().alloc<std::uint64_t>(1'000);
  c.device().fill<std::uint64_t>(reuse, 0).get();
  c.world().barrier();
  lease.release();
  expect_code(c, c.world().fetch(second.token(), copy), Errc::ok, "fetch of what is held");
  c.expect_equal(c.device().download(copy), patterned(other(c), 5, 1'000),
                 "what is held is intact");
  c.world().barrier();
  const auto token = second.token();
  second.release();
  c.expect(eventually([&] { return c.world().fetch(token, copy).wait().code() == Errc::stale; }),
           "what is held no longer goes");
  c.device().upload<std::uint64_t>(before, copy).get();
  c.world().barrier();
  c.expect_equal(c.device().download(mine), patterned(c.rank(), 3, 1'000),
                 "the source is untouched");
  c.expect_equal(c.device().download(copy), before, "the destination is untouched");
  (void)c.device().take_error();
}

/// Library calls on another rank's device.
TROUPE_MPI_CASE(token_remote) {
  constexpr std::int64_t n = 64;
  const auto x = c.device().alloc<double>(n * n), y = c.device().alloc<double>(n * n),
             z = c.device().alloc<double>(n * n), s = c.device().alloc<double>(1);
  c.device().fill(x, 1.0 + c.rank());
  c.device().fill(y, 2.0);
  c.device().fill(z, 0.0);
  struct Tokens {
    GpuToken x, y, z, s;
  };
  const auto all = c.world().gather_values(Tokens{x.token(), y.token(), z.token(), s.token()});
  const int peer = other(c);
  const auto& there = all[static_cast<std::size_t>(peer)];
  const RemoteRef<double> rx(there.x), ry(there.y), rz(there.z), rs(there.s);
  auto remote = c.world().device(Rank(peer));
  std::vector<Future<void>> futures{
      remote.blas().axpy(3.0, rx, ry),  // y = 2 + 3 (1 + r)
      remote.blas().gemm(rx, ry, rz, {.m = n, .n = n, .k = n}),
      remote.blas().dot(rx.slice(0, n), ry.slice(n, n), rs),
      remote.vector().multiply(rx, rx, rx),
      remote.blas().scal(rs, rx),  // by one element in that device's memory
      remote.nop(),
  };
  for (const auto& future : futures) expect_code(c, future, Errc::ok, "a remote command");
  c.world().barrier();
  const double r = 1.0 + c.rank(), sum = 2 + 3 * r, dot = n * r * sum;
  const auto is = [&](const GpuRef<double>& buffer, double value, const std::string& what) {
    const auto values = c.device().download(buffer);
    c.expect(std::all_of(values.begin(), values.end(), [&](double v) { return v == value; }),
             what + " is " + std::to_string(values[0]) + ", not " + std::to_string(value));
  };
  is(y, sum, "axpy");
  is(z, n * r * sum, "gemm");
  is(s, dot, "dot");
  is(x, r * r * dot, "multiply and scal");
  c.world().barrier();

  // A batch: its matrices stand in the record's tail.
  const std::vector<RemoteRef<double>> as{rx.slice(0, 1), rx.slice(1, 1)},
      cs{ry.slice(0, 1), ry.slice(1, 1)};
  expect_code(c, remote.blas().gemm_batched(as, as, cs, {.m = 1, .n = 1, .k = 1}), Errc::ok,
              "a remote command with a tail");
  c.world().barrier();
  const auto products = c.device().download(y.slice(0, 3));
  const double square = r * r * dot * r * r * dot;
  c.expect_equal(products, std::vector<double>{square, square, sum}, "gemm_batched");
  c.world().barrier();

  // What is wrong is found by the owner, or before.
  if (c.first()) {
    const RemoteRef<float> mistyped(there.x);
    expect_code(c, remote.blas().axpy(1.0f, mistyped, mistyped), Errc::invalid, "another dtype");
    auto beyond = there.x;
    beyond.length += 1;
    expect_code(c, remote.fill(RemoteRef<double>(beyond), 1.0), Errc::invalid, "beyond the end");
    beyond.generation -= 1;
    expect_code(c, remote.fill(RemoteRef<double>(beyond), 1.0), Errc::stale, "another generation");
    const RemoteRef<double> mine(x.token());
    expect_code(c, remote.blas().copy(mine, rx), Errc::invalid, "an operand of another device");
    expect_code(c, remote.blas().gemm(rx, ry, rz, {.m = n, .n = n, .k = n + 1}), Errc::invalid,
                "a shape that does not fit");
    expect_code(c, c.world().device(Rank(c.size())).nop(), Errc::peer_lost, "a device of no rank");
    c.expect(!c.device().take_error().ok(), "what went wrong is known without the futures too");
  }
  c.world().barrier();
  c.expect(c.device().take_error().ok(), "what others do wrong is their affair");
  // This rank's own device by the same way.
  auto own = c.world().device(Rank(c.rank()));
  expect_code(c, own.fill(RemoteRef<double>(x.token()), 7.0), Errc::ok, "an own remote fill");
  is(x, 7.0, "an own remote fill");
  // It is in program order with what goes by references, and with transfers of this rank's own.
  const auto copy = c.device().alloc<double>(x.length());
  for (int i = 0; i < 50; ++i) {
    c.device().fill(x, 0.0);
    own.fill(RemoteRef<double>(x.token()), i + 1.0);
    c.world().fetch(x.token(), copy);
    own.blas().scal(2.0, RemoteRef<double>(copy.token()));
    const auto got = c.device().download(copy);
    c.expect(got.front() == 2 * (i + 1.0) && got.back() == got.front(), "own commands overtake");
  }
  const auto random = c.device().alloc<double>(1000);
  expect_code(c, own.rng().uniform(RemoteRef<double>(random.token()), {.seed = 3}), Errc::ok,
              "rng");
  c.world().barrier();
}

/// Two ranks that fetch what the other is fetching into wait for one another: that ends.
TROUPE_MPI_CASE(token_timeout) {
  const auto mine = uploaded(c, 6, 1'000);
  const auto tokens = c.world().gather_values(mine.token());
  for (int round = 0; round < 3; ++round) {
    c.world().barrier();
    const auto code =
        code_of(c, c.world().fetch(tokens[static_cast<std::size_t>(other(c))], mine), "a swap");
    c.expect(code == Errc::ok || code == Errc::timeout, "a swap: " + std::string(to_string(code)));
  }
  c.world().barrier();
  const auto copy = c.device().alloc<std::uint64_t>(1'000);
  expect_code(c, c.world().fetch(tokens[static_cast<std::size_t>(other(c))], copy), Errc::ok,
              "a fetch afterwards");
  const auto got = c.device().download(copy);
  c.expect(got == patterned(0, 6, 1'000) || got == patterned(1, 6, 1'000), "one of the versions");
  c.world().barrier();
}

}  // namespace troupe::test
