#include <troupe/lib/sparse.hpp>

#include "bad_arguments.hpp"

// Wrong arguments are answered at once, by the caller's side, and launch nothing.

namespace troupe::test {
namespace {

/// Lengths that differ where a call takes its count from one of them.
TEST_F(BadArguments, OfDifferentLengths) {
  const auto other = put(std::vector<double>(16, 1.0));
  const auto four = ref.slice(0, 4), six = other.slice(0, 6), result = other.slice(15, 1);
  const auto pinned = device().pinned<double>(4);
  auto blas = device().blas();
  auto vector = device().vector();
  const CsrMatrix<double, std::int32_t> matrix{4, 4, index.slice(0, 5), index.slice(5, 6),
                                               ref.slice(0, 6)};
  const std::vector<std::pair<Future<void>, std::string>> answers = {
      {blas.dot(four, six, result), "blas.dot: y has 6 elements, not 4"},
      {blas.dot(six, four, result), "blas.dot: y has 4 elements, not 6"},
      {blas.axpy(1.0, four, six), "blas.axpy: y"},
      {blas.copy(four, six), "blas.copy: y"},
      {vector.multiply(four, six, other.slice(6, 4)), "vector.multiply: y"},
      {vector.multiply(four, four, six), "vector.multiply: z"},
      {vector.divide(four, six, other.slice(6, 4)), "vector.divide: y"},
      {vector.axpby(1.0, four, 1.0, six), "vector.axpby: y"},
      {device().sparse().spmv(matrix, six, other.slice(6, 4)), "sparse.spmv: x has 6"},
      {device().sparse().spmv(matrix, other.slice(6, 4), six), "sparse.spmv: y has 6"},
      {device().sparse().gather(ref, index.slice(0, 4), six), "sparse.gather: destination has 6"},
      {device().copy(four, six), "memory.copy: the source has 32 bytes, the destination 48"},
      {device().copy(six, pinned), "memory.copy: the pinned destination has 4 elements, 6"},
      {device().copy(pinned, six), "memory.copy: the pinned source has 4 elements, 6"},
      {device().upload(std::span<const double>(pinned.span()), six), "upload: the source has 4"}};
  for (const auto& [future, words] : answers) {
    ASSERT_TRUE(future.ready()) << words << " was launched";
    ASSERT_EQ(future.wait().code(), Errc::invalid) << words;
    EXPECT_TRUE(future.wait().error().message.starts_with(words)) << future.wait().error().message;
  }
  EXPECT_EQ(device().download(other), std::vector<double>(16, 1.0)) << "something was launched";
}

/// Results that lie in the memory of an argument, where the operation does not work in place.
TEST_F(BadArguments, ThatOverlap) {
  const auto a = ref, b = put(std::vector<double>(16, 1.0));
  auto blas = device().blas();
  auto vector = device().vector();
  const auto row = index.slice(0, 5);
  const CsrMatrix<double, std::int32_t> csr{4, 4, row, row.slice(0, 4), b.slice(0, 4)};
  const SellMatrix<double, std::int32_t> sell{
      4, 4, 4, 4, row.slice(0, 2), row.slice(0, 4), b.slice(0, 4)};
  const auto v = a.slice(0, 4), shifted = a.slice(2, 4), first = a.slice(0, 1);
  const std::pair<Future<void>, std::string> answers[] = {
      {blas.gemm(a, a, a, {.m = 4, .n = 4, .k = 4}), "blas.gemm: c"},
      {blas.gemm(a, b, a, {.m = 4, .n = 4, .k = 4}), "blas.gemm: c"},
      {blas.gemm(b, a, a, {.m = 4, .n = 4, .k = 4}), "blas.gemm: c"},
      {blas.gemv(b, v, v, {.m = 4, .n = 4}), "blas.gemv: y"},
      {blas.gemv(a, b.slice(0, 4), v, {.m = 4, .n = 4}), "blas.gemv: y"},
      {blas.axpy(1.0, v, shifted), "blas.axpy: y"},
      {blas.axpy(first, b.slice(0, 4), v), "blas.axpy: y"},
      {blas.scal(first, v), "blas.scal: x"},
      {blas.copy(v, shifted), "blas.copy: y"},
      {blas.dot(v, b.slice(0, 4), first), "blas.dot: result"},
      {blas.nrm2(v, first), "blas.nrm2: result"},
      {vector.multiply(v, v, shifted), "vector.multiply: z"},
      {vector.divide(b.slice(0, 4), v, shifted), "vector.divide: z"},
      {vector.axpby(1.0, v, 1.0, shifted), "vector.axpby: y"},
      {device().sparse().spmv(csr, v, v), "sparse.spmv: y"},
      {device().sparse().spmv(sell, v, v), "sparse.spmv: y"},
      {device().sparse().gather(a, row.slice(0, 4), v), "sparse.gather: destination"},
      {device().copy(v, shifted), "memory.copy: destination"},
      {device().copy(v, v), "memory.copy: destination"}};
  for (const auto& [future, words] : answers) {
    ASSERT_TRUE(future.ready()) << words << " was launched";
    ASSERT_EQ(future.wait().code(), Errc::invalid) << words;
    EXPECT_TRUE(future.wait().error().message.starts_with(words)) << future.wait().error().message;
  }
  EXPECT_EQ(device().download(b), std::vector<double>(16, 1.0)) << "something was launched";
}

/// Where an operation works in place, its result is what it is elsewhere.
TEST(InPlaceOperations, GiveWhatTheyGiveElsewhere) {
  const auto x = put(std::vector<double>{1, 2, 3, 4});
  device().vector().multiply(x, x, x);
  EXPECT_EQ(device().download(x), (std::vector<double>{1, 4, 9, 16}));
  device().vector().divide(put(std::vector<double>{2, 8, 18, 32}), x, x);
  EXPECT_EQ(device().download(x), std::vector<double>(4, 2.0));
  device().blas().axpy(3.0, x, x);
  EXPECT_EQ(device().download(x), std::vector<double>(4, 8.0));
  device().vector().axpby(2.0, x, -1.0, x);
  EXPECT_EQ(device().download(x), std::vector<double>(4, 8.0));
}

TEST_F(BadArguments, OfBuffersThatAreGone) {
  auto gone = device().alloc<double>(16);
  const auto operand = gone.operand();
  device().fill(gone, 1.0).get();
  gone = GpuRef<double>();
  for (int round = 0; round < 3; ++round)
    (void)device().alloc<double>(1);  // lets the table take it back
  EXPECT_EQ(
      detail::submit(device().submitter(), memory::Fill{DType::f64, 1, {}, operand}).wait().code(),
      Errc::stale);
  // A range that reaches out of its buffer is no range of it.
  auto beyond = x;
  beyond.bytes += 4096;
  EXPECT_EQ(
      detail::submit(device().submitter(), memory::Fill{DType::f64, 1, {}, beyond}).wait().code(),
      Errc::stale);
}

TEST_F(BadArguments, AreRememberedForWhoLooksLater) {
  (void)device().take_error();
  EXPECT_TRUE(device().take_error().ok());
  // Whatever refuses it: the operation's own checks too, and what never becomes a command.
  device().blas().dot(ref, ref.slice(0, 4), ref.slice(0, 1));
  EXPECT_EQ(device().take_error().code(), Errc::invalid);
  (void)detail::submit(device().submitter(), memory::Fill{DType::f64, 17, {}, x});
  EXPECT_EQ(device().take_error().code(), Errc::invalid);
  device().upload(std::span<const double>(), ref);
  EXPECT_EQ(device().take_error().code(), Errc::invalid);
  EXPECT_EQ(device().unread_errors().count, 0u);
  auto stale = device().alloc<double>(4);
  auto operand = stale.operand();
  operand.generation += 1;
  (void)detail::submit(device().submitter(),
                       memory::Fill{DType::f64, 1, {}, operand});  // nobody keeps the future
  EXPECT_EQ(device().take_error().code(), Errc::stale);
  EXPECT_TRUE(device().take_error().ok()) << "it is taken once";
}

/// Messages call a buffer by the name that the program gave it.
TEST_F(BadArguments, NameTheBuffersThatHaveNames) {
  const auto pressure = device().alloc<double>(8, "pressure"), rest = device().alloc<double>(9);
  const auto message = device().vector().multiply(pressure, rest, rest).wait().error().message;
  EXPECT_TRUE(message.ends_with("(x is pressure)")) << message;
  const auto overlapping = device().copy(pressure.slice(0, 4), pressure.slice(2, 4));
  EXPECT_NE(overlapping.wait().error().message.find("source is pressure, destination is pressure"),
            std::string::npos)
      << overlapping.wait().error().message;
  (void)device().take_error();
}

}  // namespace
}  // namespace troupe::test
