#include <troupe/lib/collective.hpp>

#include "conformance.hpp"

// Wrong arguments are answered at once, by the caller's side, and launch nothing.

namespace troupe::test {
namespace {

template <class Op>
void expect_refused(const Op& op, Errc code = Errc::invalid) {
  const auto future = detail::submit(device().submitter(), op);
  ASSERT_TRUE(future.ready()) << Op::kName << " was launched";
  EXPECT_EQ(future.wait().code(), code) << Op::kName;
  if (!future.wait().ok()) {
    EXPECT_TRUE(future.wait().error().message.starts_with(Op::kName))
        << future.wait().error().message;
  }
}

class BadArguments : public ::testing::Test {
 protected:
  GpuRef<double> ref = put(std::vector<double>(16, 1.0));
  GpuRef<std::int32_t> index = put(std::vector<std::int32_t>(16, 0));
  Operand x = ref.operand();
  Operand i = index.operand();
  Operand absent{};
  Operand unaligned = [this] {
    auto operand = x;
    operand.offset += 4;
    operand.bytes -= 8;
    return operand;
  }();
  Scalar one = ScalarArg<double>(1.0).wire();
  Scalar short_scalar = [this] {
    Scalar s;
    s.device = x;
    s.device.bytes = 4;
    return s;
  }();

  void TearDown() override {
    EXPECT_EQ(device().download(ref), std::vector<double>(16, 1.0)) << "something was launched";
    EXPECT_EQ(not_working(device()), "");
  }
};

TEST_F(BadArguments, OfMemory) {
  using namespace memory;
  expect_refused(Fill{DType::f64, 17, {}, x});
  expect_refused(Fill{DType::f64, 1, {}, absent});
  expect_refused(Fill{DType::f64, 1, {}, unaligned});
  expect_refused(Fill{DType::f64, std::uint64_t{1} << 63, {}, x});
  expect_refused(Fill{static_cast<DType>(200), 1, {}, x}, Errc::unsupported);
  auto shorter = x;
  shorter.bytes -= 8;
  expect_refused(Copy{DType::f64, x, shorter});
  expect_refused(Copy{DType::f64, x, absent});
  const auto a = device().pinned<double>(16), b = device().pinned<double>(16);
  expect_refused(Copy{DType::f64, a.operand(), b.operand()});
  expect_refused(Fault{{}, static_cast<FaultKind>(99), 0});
}

TEST_F(BadArguments, OfVectorOperations) {
  using namespace troupe::vector;
  expect_refused(Multiply{DType::f64, 17, x, x, x});
  expect_refused(Multiply{DType::f64, -1, x, x, x});
  expect_refused(Multiply{DType::f64, 16, x, absent, x});
  expect_refused(Multiply{DType::i32, 4, x, x, x}, Errc::unsupported);
  expect_refused(Divide{DType::f64, 15, x, x, unaligned});
  expect_refused(Axpby{DType::f64, 16, short_scalar, one, x, x});
  expect_refused(Axpby{DType::f64, 16, one, short_scalar, x, x});
  expect_refused(Axpby{DType::c64, 16, one, one, x, x}, Errc::unsupported);
  // Lengths that differ, through the typed calls.
  EXPECT_EQ(device().vector().multiply(ref, ref.slice(0, 8), ref).wait().code(), Errc::invalid);
}

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
      {device().sparse().spmv(sell, v, v), "sparse.spmv_sell: y"},
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

TEST_F(BadArguments, OfBlasLevelOne) {
  using namespace blas;
  expect_refused(Axpy{DType::f64, 17, 1, 1, one, x, x});
  expect_refused(Axpy{DType::f64, -1, 1, 1, one, x, x});
  expect_refused(Axpy{DType::f64, 4, 0, 1, one, x, x});
  expect_refused(Axpy{DType::f64, 4, 1, -1, one, x, x});
  expect_refused(Axpy{DType::f64, 4, 6, 1, one, x, x});
  expect_refused(Axpy{DType::f64, 3, std::int64_t{1} << 62, 1, one, x, x});
  expect_refused(Axpy{DType::f64, 4, 1, 1, short_scalar, x, x});
  expect_refused(Dot{DType::f64, 16, 1, 1, x, x, absent});
  expect_refused(Dot{DType::f64, 16, 1, 2, x, x, x});
  expect_refused(Dot{DType::f16, 16, 1, 1, x, x, x}, Errc::unsupported);
  expect_refused(Nrm2{DType::f64, 16, 1, x, absent});
  expect_refused(Nrm2{DType::f64, 16, 2, x, x});
  expect_refused(Scal{DType::f64, 16, 2, one, x});
  expect_refused(Copy{DType::f64, 16, 1, 2, x, x});
}

TEST_F(BadArguments, OfBlasLevelsTwoAndThree) {
  using namespace blas;
  const auto no = Transpose::no;
  expect_refused(Gemv{DType::f64, no, 0, 4, 5, 4, 1, 1, one, one, x, x, x});
  expect_refused(Gemv{DType::f64, no, 0, 4, 4, 3, 1, 1, one, one, x, x, x});
  expect_refused(Gemv{DType::f64, no, 0, -4, 4, 4, 1, 1, one, one, x, x, x});
  expect_refused(Gemv{DType::f64, no, 0, 4, 4, 4, 6, 1, one, one, x, x, x});
  expect_refused(Gemv{DType::f64, static_cast<Transpose>(7), 0, 4, 4, 4, 1, 1, one, one, x, x, x});
  expect_refused(Gemv{DType::f64, no, 0, 4, 4, 4, 1, 1, one, short_scalar, x, x, x});
  expect_refused(Gemv{DType::i64, no, 0, 4, 4, 4, 1, 1, one, one, x, x, x}, Errc::unsupported);
  expect_refused(Gemm{DType::f64, no, no, 4, 4, 5, 4, 5, 4, one, one, x, x, x});
  expect_refused(Gemm{DType::f64, no, no, 4, 4, 4, 3, 4, 4, one, one, x, x, x});
  expect_refused(Gemm{DType::f64, no, no, 4, 4, 4, 4, 3, 4, one, one, x, x, x});
  expect_refused(Gemm{DType::f64, no, no, 4, 4, 4, 4, 4, 3, one, one, x, x, x});
  expect_refused(Gemm{DType::f64, no, no, 4, -4, 4, 4, 4, 4, one, one, x, x, x});
  expect_refused(
      Gemm{DType::f64, static_cast<Transpose>(2), no, 4, 4, 4, 4, 4, 4, one, one, x, x, x});
  expect_refused(Gemm{DType::f64, no, no, 2, std::int64_t{1} << 62, 2, 2, 2, std::int64_t{1} << 62,
                      one, one, x, x, x});
  expect_refused(Gemm{DType::f64, no, no, 4, 4, 4, 4, 4, 4, one, one, x, absent, x});
}

TEST_F(BadArguments, OfSparseOperations) {
  using namespace sparse;
  expect_refused(
      Spmv{DType::f64, DType::i32, 16, 16, 16, one, one, i, i, x, x, x});  // 17 row offsets needed
  expect_refused(Spmv{DType::f64, DType::i32, 4, 4, 17, one, one, i, i, x, x, x});
  expect_refused(Spmv{DType::f64, DType::i32, 4, 17, 4, one, one, i, i, x, x, x});
  expect_refused(Spmv{DType::f64, DType::i32, -1, 4, 4, one, one, i, i, x, x, x});
  expect_refused(Spmv{DType::f64, DType::f64, 4, 4, 4, one, one, i, i, x, x, x});
  expect_refused(Spmv{DType::f64, DType::i32, 4, 4, 4, short_scalar, one, i, i, x, x, x});
  expect_refused(
      Spmv{DType::f64, DType::i32, 4, std::int64_t{1} << 40, 4, one, one, i, i, x, x, x});
  expect_refused(Spmv{DType::bf16, DType::i32, 4, 4, 4, one, one, i, i, x, x, x},
                 Errc::unsupported);
  expect_refused(Gather{DType::f64, DType::i32, 17, 16, i, x, x});
  expect_refused(Gather{DType::f64, DType::i32, 4, 17, i, x, x});
  expect_refused(Gather{DType::f64, DType::u8, 4, 4, i, x, x});
  expect_refused(Gather{DType::i32, DType::i32, 4, 4, i, x, x}, Errc::unsupported);
}

TEST_F(BadArguments, OfRandomNumbers) {
  using namespace rng;
  expect_refused(Uniform{DType::f64, 17, 0, 0, 0, x});
  expect_refused(Uniform{DType::f64, 16, 0, std::uint64_t{1} << 24, 0, x});
  expect_refused(Uniform{DType::f64, 16, 0, 0, kSubsequenceStride, x});
  expect_refused(Uniform{DType::u64, 16, 0, 0, 0, x}, Errc::unsupported);
  expect_refused(Normal{DType::f64, 15, 0, 0, 0, 0, 1, x});
  expect_refused(Normal{DType::f64, 16, 0, 0, 3, 0, 1, x});
}

TEST_F(BadArguments, OfCollectives) {
  using namespace collective;
  const auto sum = ReduceOp::sum, unknown = static_cast<ReduceOp>(9);
  expect_refused(AllReduce{DType::f64, unknown, 0, 4, x, x});
  expect_refused(AllReduce{DType::f64, sum, 0, 17, x, x});
  expect_refused(AllReduce{DType::c128, sum, 0, 4, x, x}, Errc::unsupported);
  expect_refused(Reduce{DType::f64, sum, 1u << 24, 4, x, x});
  expect_refused(Reduce{DType::f64, unknown, 0, 4, x, x});
  expect_refused(Broadcast{DType::f64, 0, 0, 17, x});
  expect_refused(AllGather{DType::f64, 3, x, x});  // 16 is no multiple of 3
  expect_refused(ReduceScatter{DType::f64, sum, 0, 3, x, x});
  auto shorter = x;
  shorter.bytes -= 8;
  expect_refused(AllToAll{DType::f64, 4, x, shorter});
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

}  // namespace
}  // namespace troupe::test
