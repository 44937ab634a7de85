#include "mpi_tests.hpp"

namespace troupe::test {
namespace {

/// A buffer for each part of the case; all of them known to all ranks by token.
struct Buffers {
  explicit Buffers(Context& c)
      : reduced(c.device().alloc<double>(1000)),
        reader(c.device().alloc<double>(1000)),
        drawn(c.device().alloc<double>(1000)),
        drawn_twice(c.device().alloc<double>(1000)),
        x(c.device().alloc<double>(1000)),
        y(c.device().alloc<double>(1000)) {
    for (const auto& buffer : {reduced, reader, drawn, drawn_twice, x, y})
      c.device().fill(buffer, 1.0 + c.rank()).get();
  }
  GpuRef<double> reduced, reader, drawn, drawn_twice, x, y;
};

}  // namespace

/// While a collective waits for the last rank, whatever does not depend on it goes on: local
/// operations, also of a library whose queue has commands that wait for the collective, and what
/// the last rank asks of the others by token. Only a message behind all that lets the last rank
/// join, so a command that waited with the others would end in the time-out of this case.
TROUPE_MPI_CASE(independence) {
  auto& device = c.device();
  auto& world = c.world();
  Buffers own(c);
  const auto xs = world.gather_values(own.x.token()), ys = world.gather_values(own.y.token());
  const auto done = [&](const Future<void>& future, const std::string& what) {
    c.require(future.wait_for(kDeadline), what + " waits for a collective");
    c.expect(future.wait().ok(), what + " fails");
  };
  const Rank last(c.size() - 1);
  const bool joins_late = c.rank() == last.value;
  Future<void> reduced, reads, scaled, filled;
  if (!joins_late) {
    reduced = world.all_reduce(own.reduced, ReduceOp::sum);
    reads = device.copy(own.reduced, own.reader);
    scaled = device.blas().scal(2.0, own.reader);
    // Random numbers in place of the result: cuRAND would block until it is there.
    device.copy(own.reduced, own.drawn);
    device.rng().uniform(own.drawn, {.seed = 7});
    device.blas().axpy(2.0, own.drawn, own.drawn_twice);
    done(device.fill(own.y, 5.0), "a fill behind a copy of the result");
    done(device.blas().axpy(1.0, own.x, own.y), "a sum behind a scaling of the result");
    const auto got = device.download(own.y);
    c.expect(got.front() == 6.0 + c.rank() && got.back() == got.front(), "a wrong sum");
    c.expect(!reduced.ready() && !reads.ready() && !scaled.ready(),
             "a collective ended without its last rank");
  }
  world.barrier();
  if (joins_late) {
    const auto mine = device.alloc<double>(1000);
    for (int r = 0; r < last.value; ++r) {
      const auto at = static_cast<std::size_t>(r);
      done(world.fetch(ys[at], mine), "a fetch");
      c.expect_equal(device.download(mine).front(), 6.0 + r, "a fetch brings something else");
      done(world.put(own.y, ys[at]), "a put");
      done(world.device(Rank(r)).blas().axpy(1.0, RemoteRef<double>(xs[at]),
                                             RemoteRef<double>(ys[at])),
           "a remote operation");
    }
  }
  world.barrier();
  if (!joins_late) {
    c.expect_equal(device.download(own.y).front(), 1.0 + c.rank() + c.size(),
                   "what was put and added is something else");
    c.expect(!reduced.ready(), "a collective ended without its last rank");
  }
  world.barrier();
  if (joins_late) reduced = world.all_reduce(own.reduced, ReduceOp::sum);
  done(reduced, "an all_reduce that all ranks have joined");
  const double expected = c.size() * (c.size() + 1) / 2;
  c.expect_equal(device.download(own.reduced).front(), expected, "a wrong sum over the ranks");
  if (!joins_late) {
    done(scaled, "what reads the result");
    c.expect_equal(device.download(own.reader).front(), 2 * expected,
                   "the result is read too early");
    device.rng().uniform(own.x, {.seed = 7});
    const auto drawn = device.download(own.drawn), twice = device.download(own.drawn_twice);
    c.expect_equal(drawn, device.download(own.x), "random numbers are overwritten by the result");
    c.expect_equal(twice.front(), 1.0 + c.rank() + 2 * drawn.front(), "they are read too early");
  }
}

/// The first message between two ranks, which is when NCCL connects them, holds up nothing on the
/// sender while the receiver has not come: it still serves what the receiver asks of it before.
TROUPE_MPI_CASE(first_message) {
  auto& device = c.device();
  auto& world = c.world();
  const auto data = device.alloc<double>(1000), own = device.alloc<double>(1000);
  device.fill(data, 1.0 + c.rank()).get();
  device.fill(own, 1.0 + c.rank()).get();
  const auto all = world.gather_values(data.token());
  const auto done = [&](const Future<void>& future, const std::string& what) {
    c.require(future.wait_for(kDeadline), what + " waits for a message");
    c.expect(future.wait().ok(), what + " fails");
  };
  const Rank last(c.size() - 1);
  const auto got = device.alloc<double>(1000);
  for (int round = 0; round < 2; ++round) {  // and one behind it, between ranks that are connected
    Future<void> message;
    if (c.first()) message = world.send(own, last);
    if (c.rank() == last.value) {
      for (int r = 0; r < last.value; ++r) {
        done(world.fetch(all[static_cast<std::size_t>(r)], got), "a fetch");
        c.expect_equal(device.download(got).front(), 1.0 + r, "a fetch brings something else");
      }
    }
    world.barrier();
    if (c.rank() == last.value) message = world.receive(got, Rank(0));
    if (c.first() || c.rank() == last.value) done(message, "a message with both its ranks");
    if (c.rank() == last.value)
      c.expect_equal(device.download(got).front(), 1.0, "a message brings something else");
  }
  const auto parts = device.alloc<double>(static_cast<std::size_t>(c.size()));
  const auto whole = device.alloc<double>(static_cast<std::size_t>(c.size()));
  device.fill(parts, 1.0 + c.rank()).get();
  done(world.all_to_all(parts, whole), "an all_to_all");
  const auto values = device.download(whole);
  for (int r = 0; r < c.size(); ++r)
    c.expect_equal(values[static_cast<std::size_t>(r)], 1.0 + r,
                   "an all_to_all brings something else");
}

/// Libraries load what they run when it is used first, and CUDA then waits for whatever runs on the
/// GPU. Shapes, types and formats that nobody has used before are used while the others wait in a
/// collective for the last rank, which comes only once all that is done.
TROUPE_MPI_CASE(first_use) {
  auto& device = c.device();
  auto& world = c.world();
  const auto reduced = device.alloc<double>(1000);
  device.fill(reduced, 1.0).get();
  const bool joins_late = c.rank() == c.size() - 1;
  Future<void> sum;
  if (!joins_late) sum = world.all_reduce(reduced, ReduceOp::sum);
  const auto uploaded = [&]<class E>(const std::vector<E>& values) {
    const auto buffer = device.alloc<E>(static_cast<std::int64_t>(values.size()));
    device.upload(std::span(values), buffer).get();
    return buffer;
  };
  const auto use = [&]<class T>(T one) {
    const std::int64_t shapes[][3] = {
        {7, 1, 1}, {1, 7, 3}, {33, 5, 129}, {130, 70, 257}, {640, 300, 64}};
    for (const auto& [m, n, k] : shapes) {
      const auto a = device.alloc<T>(m * k), b = device.alloc<T>(k * n),
                 ab = device.alloc<T>(m * n);
      const auto x = device.alloc<T>(k), y = device.alloc<T>(m);
      for (const auto& ones : {a, b, x, y}) device.fill(ones, one);
      device.blas().gemv(a, x, y, {.m = m, .n = k});
      device.blas().gemv(a, y, x, {.m = m, .n = k, .transpose = blas::Transpose::yes});
      device.blas().gemm(a, b, ab, {.m = m, .n = n, .k = k});
      device.blas().gemm(a, b, ab, {.m = m, .n = n, .k = k, .transpose_a = blas::Transpose::yes});
      const auto last = device.blas().gemm(
          a, b, ab, {.m = m, .n = n, .k = k, .transpose_b = blas::Transpose::yes});
      c.require(last.wait_for(kDeadline), "a product waits for a collective");
      c.expect_equal(device.download(ab), std::vector<T>(static_cast<std::size_t>(m * n), T(k)),
                     "a product of ones is wrong");
      c.expect_equal(device.download(x)[0], T(m * k), "a product with a vector is wrong");
    }
    const std::int64_t rows = 100;
    std::vector<std::int32_t> begin, column;
    for (std::int32_t i = 0; i <= rows; ++i) begin.push_back(i);
    for (std::int32_t i = 0; i < rows; ++i) column.push_back(i);
    const CsrMatrix<T, std::int32_t> matrix{rows, rows, uploaded(begin), uploaded(column),
                                            uploaded(std::vector<T>(rows, T(2)))};
    const auto x = uploaded(std::vector<T>(rows, T(3))), y = device.alloc<T>(rows);
    const auto spmv = device.sparse().spmv(matrix, x, y);
    c.require(spmv.wait_for(kDeadline), "a sparse product waits for a collective");
    c.expect_equal(device.download(y), std::vector<T>(rows, T(6)), "a sparse product is wrong");
  };
  use(1.0f);
  use(1.0);
  if (!joins_late) c.expect(!sum.ready(), "a collective ended without its last rank");
  world.barrier();
  if (joins_late) sum = world.all_reduce(reduced, ReduceOp::sum);
  c.require(sum.wait_for(kDeadline), "a collective that all have joined does not end");
  c.expect_equal(device.download(reduced).front(), c.size(), "a wrong sum over the ranks");
}

/// A collective that waits keeps neither the ring nor the table of commands from being used again
/// and again.
TROUPE_MPI_CASE(long_wait) {
  auto& device = c.device();
  auto& world = c.world();
  const auto reduced = device.alloc<double>(1000), x = device.alloc<double>(8);
  device.fill(reduced, 1.0).get();
  Future<void> sum;
  if (!c.first()) {
    sum = world.all_reduce(reduced, ReduceOp::sum);
    for (int i = 0; i < 100'000; ++i) {
      const auto filled = device.fill(x, static_cast<double>(i));
      if (i % 1000 != 999) continue;
      c.require(filled.wait_for(kDeadline), "a fill waits for a collective");
      c.expect(filled.wait().ok(), "a fill fails");
      const auto scratch = device.alloc<double>(1000);  // is freed while the collective waits
      device.fill(scratch, 1.0);
    }
    c.expect(!sum.ready(), "a collective ended without its first rank");
    c.expect_equal(device.download(x).front(), 99'999.0, "the last fill is not there");
  }
  world.barrier();
  if (c.first()) sum = world.all_reduce(reduced, ReduceOp::sum);
  c.require(sum.wait_for(kDeadline), "an all_reduce that all ranks have joined does not end");
  c.expect_equal(device.download(reduced).front(), c.size(), "a wrong sum over the ranks");
}

}  // namespace troupe::test
