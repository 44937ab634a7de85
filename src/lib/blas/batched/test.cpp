// Products of batches of matrices: one buffer with strides, a buffer each, places in a buffer that
// device memory tells. Small integers, so that every order of additions gives the same bits.
#include <numeric>

#include "bad_arguments.hpp"

namespace troupe::test::reference {
namespace {

using blas::Transpose;

template <class T>
class BlasBatches : public Typed<T> {};
TYPED_TEST_SUITE(BlasBatches, Reals);

struct Shape {
  std::int64_t m, n, k, extra;
  Transpose ta = Transpose::no, tb = Transpose::no;

  [[nodiscard]] GemmOptions options() const {
    return {.m = m,
            .n = n,
            .k = k,
            .lda = lda(),
            .ldb = ldb(),
            .ldc = ldc(),
            .transpose_a = ta,
            .transpose_b = tb};
  }
  [[nodiscard]] std::int64_t lda() const { return (ta == Transpose::no ? m : k) + extra; }
  [[nodiscard]] std::int64_t ldb() const { return (tb == Transpose::no ? k : n) + extra; }
  [[nodiscard]] std::int64_t ldc() const { return m + extra; }
  /// Elements of each, gaps and the rows behind the last column included.
  [[nodiscard]] std::int64_t size_a() const { return lda() * (ta == Transpose::no ? k : m); }
  [[nodiscard]] std::int64_t size_b() const { return ldb() * (tb == Transpose::no ? n : k); }
  [[nodiscard]] std::int64_t size_c() const { return ldc() * n; }
};

const Shape kShapes[] = {{1, 1, 1, 0},
                         {4, 3, 5, 0},
                         {7, 9, 2, 3, Transpose::yes, Transpose::no},
                         {5, 6, 8, 1, Transpose::no, Transpose::yes},
                         {33, 17, 20, 0, Transpose::yes, Transpose::yes}};

template <class T>
std::vector<T> integers(std::int64_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<T> values(static_cast<std::size_t>(count));
  for (auto& value : values) value = static_cast<T>(static_cast<int>(random() % 7) - 3);
  return values;
}

/// c = alpha op(a) op(b) + beta c
template <class T>
void multiply(const Shape& shape, T alpha, const T* a, const T* b, T beta, T* c) {
  for (std::int64_t j = 0; j < shape.n; ++j) {
    for (std::int64_t i = 0; i < shape.m; ++i) {
      T sum = 0;
      for (std::int64_t l = 0; l < shape.k; ++l) {
        sum += a[shape.ta == Transpose::no ? l * shape.lda() + i : i * shape.lda() + l] *
               b[shape.tb == Transpose::no ? j * shape.ldb() + l : l * shape.ldb() + j];
      }
      auto& value = c[j * shape.ldc() + i];
      value = alpha * sum + (beta == T(0) ? T(0) : beta * value);
    }
  }
}

TYPED_TEST(BlasBatches, AtStrides) {
  using T = TypeParam;
  constexpr std::int64_t kBatch = 5, kGap = 3;
  for (const auto& shape : kShapes) {
    for (const auto place : kPlaces) {
      for (const bool one_a : {false, true}) {
        SCOPED_TRACE(::testing::Message() << shape.m << "x" << shape.n << "x" << shape.k);
        const BatchOptions batch{kBatch, one_a ? 0 : shape.size_a() + kGap, shape.size_b(),
                                 shape.size_c() + kGap};
        const auto a = integers<T>(shape.size_a() + (kBatch - 1) * batch.stride_a, 1),
                   b = integers<T>(shape.size_b() + (kBatch - 1) * batch.stride_b, 2);
        auto c = integers<T>(shape.size_c() + (kBatch - 1) * batch.stride_c, 3);
        const auto dc = put(c);
        device().blas().gemm_batched(put(a), put(b), dc, shape.options(), batch,
                                     scalar(T(2), place), scalar(T(-1), place));
        for (std::int64_t i = 0; i < kBatch; ++i) {
          multiply(shape, T(2), a.data() + i * batch.stride_a, b.data() + i * batch.stride_b, T(-1),
                   c.data() + i * batch.stride_c);
        }
        EXPECT_EQ(device().download(dc), c);
      }
    }
  }
}

TYPED_TEST(BlasBatches, ABufferEach) {
  using T = TypeParam;
  for (const auto& shape : kShapes) {
    // More than go with one launch of the kernel that writes their addresses.
    for (const std::size_t batch : {std::size_t{1}, std::size_t{3}, std::size_t{120}}) {
      SCOPED_TRACE(::testing::Message()
                   << shape.m << "x" << shape.n << "x" << shape.k << " " << batch);
      std::vector<GpuRef<T>> as, bs, cs;
      std::vector<std::vector<T>> expected;
      for (std::size_t i = 0; i < batch; ++i) {
        const auto a = integers<T>(shape.size_a(), 3 * i),
                   b = integers<T>(shape.size_b(), 3 * i + 1);
        auto c = integers<T>(shape.size_c(), 3 * i + 2);
        as.push_back(put(a)), bs.push_back(put(b)), cs.push_back(put(c));
        multiply(shape, T(1), a.data(), b.data(), T(3), c.data());
        expected.push_back(std::move(c));
      }
      device().blas().gemm_batched(as, bs, cs, shape.options(), T(1), T(3)).get();
      for (std::size_t i = 0; i < batch; ++i) EXPECT_EQ(device().download(cs[i]), expected[i]);
    }
  }
}

TYPED_TEST(BlasBatches, AtPlacesThatDeviceMemoryTells) {
  using T = TypeParam;
  constexpr std::int64_t kBatch = 40;
  for (const auto& shape : kShapes) {
    SCOPED_TRACE(::testing::Message() << shape.m << "x" << shape.n << "x" << shape.k);
    const auto a = integers<T>(2 * shape.size_a(), 1), b = integers<T>(3 * shape.size_b(), 2);
    auto c = integers<T>(kBatch * shape.size_c(), 3);
    std::vector<std::int64_t> offsets;
    std::mt19937_64 random(4);
    for (std::int64_t i = 0; i < kBatch; ++i)
      offsets.push_back(static_cast<std::int64_t>(random() % 2) * shape.size_a());
    for (std::int64_t i = 0; i < kBatch; ++i)
      offsets.push_back(static_cast<std::int64_t>(random() % 3) * shape.size_b());
    std::vector<std::int64_t> order(kBatch);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    for (const auto place : order) offsets.push_back(place * shape.size_c());
    const auto dc = put(c);
    device()
        .blas()
        .gemm_indexed(put(a), put(b), dc, put(offsets), shape.options(), T(1), T(2))
        .get();
    for (std::size_t i = 0; i < kBatch; ++i) {
      multiply(shape, T(1), a.data() + offsets[i], b.data() + offsets[kBatch + i], T(2),
               c.data() + offsets[2 * kBatch + i]);
    }
    EXPECT_EQ(device().download(dc), c);
  }
}

TYPED_TEST(BlasBatches, AnOffsetOutsideFailsAndSpoilsTheResult) {
  using T = TypeParam;
  const Shape shape{2, 2, 2, 0};
  const auto a = put(integers<T>(8, 1)), b = put(integers<T>(8, 2)),
             neighbour = put(integers<T>(8, 4));
  for (const std::int64_t wrong : {std::int64_t{-1}, std::int64_t{5}, std::int64_t{1} << 60}) {
    const auto c = put(integers<T>(8, 3));
    const auto future = device().blas().gemm_indexed(
        a, b, c, put(std::vector<std::int64_t>{0, 4, 0, 4, wrong, 4}), shape.options());
    EXPECT_EQ(future.wait().code(), Errc::invalid);
    EXPECT_NE(future.wait().error().message.find("1 offsets"), std::string::npos);
    EXPECT_EQ(device().blas().scal(T(2), c).wait().code(), Errc::stale);
  }
  EXPECT_EQ(device().download(neighbour), integers<T>(8, 4));
  (void)device().take_error();
}

TYPED_TEST(BlasBatches, BetaZeroIgnoresWhatWasThere) {
  using T = TypeParam;
  const T nan = std::numeric_limits<T>::quiet_NaN();
  const Shape shape{1, 1, 1, 0};
  const auto two = put(std::vector<T>{2, 3}), c = put(std::vector<T>{nan, nan});
  device().blas().gemm_batched(two, two, c, shape.options(), BatchOptions{2, 1, 1, 1});
  EXPECT_EQ(device().download(c), (std::vector<T>{4, 9}));
  const std::vector<GpuRef<T>> as{two.slice(0, 1), two.slice(1, 1)},
      cs{put(std::vector<T>{nan}), put(std::vector<T>{nan})};
  device().blas().gemm_batched(as, as, cs, shape.options());
  EXPECT_EQ(device().download(cs[1]), (std::vector<T>{9}));
}

TYPED_TEST(BlasBatches, OfNothing) {
  using T = TypeParam;
  const auto c = put(std::vector<T>{1, 2});
  device().blas().gemm_batched(c, c, c.slice(0, 0), {}, BatchOptions{}).get();
  device().blas().gemm_batched<T>({}, {}, {}, {.m = 1, .n = 1, .k = 1}).get();
  EXPECT_EQ(device().download(c), (std::vector<T>{1, 2}));
}

TEST_F(BadArguments, OfBatches) {
  using namespace blas;
  const auto y_ref = put(std::vector<double>(16, 0.0));
  const auto y = y_ref.operand();
  const auto cell = device().submitter().result_cell(sizeof(std::int64_t)).take();
  GemmBatched good;
  good.dtype = DType::f64;
  good.m = good.n = good.k = good.lda = good.ldb = good.ldc = 2;
  good.batch = 4, good.stride_a = good.stride_b = good.stride_c = 4;
  good.alpha = one;
  good.a = good.b = x, good.c = y;
  const auto with = [&](auto change, Errc code = Errc::invalid) {
    auto op = good;
    change(op);
    expect_refused(op, code);
  };
  with([](auto& op) { op.batch = 5; });
  with([](auto& op) { op.batch = -1; });
  with([](auto& op) { op.stride_a = 5; });
  with([](auto& op) { op.stride_b = -4; });
  with([](auto& op) { op.stride_c = 3; });
  with([](auto& op) { op.stride_a = std::int64_t{1} << 62; });
  with([](auto& op) { op.ldc = 1; });
  with([](auto& op) { op.transpose_b = static_cast<Transpose>(3); });
  with([&](auto& op) { op.alpha = short_scalar; });
  with([&](auto& op) { op.c = op.a; });
  with([&](auto& op) { op.b = absent; });
  with([&](auto& op) { op.a = op.b = op.c = absent; });
  with([](auto& op) { op.dtype = DType::i32; }, Errc::unsupported);

  auto listed = good;
  listed.a = listed.b = listed.c = absent;
  listed.batch = 1;
  const auto refused = [&](const GemmBatched& op, const std::vector<TailOperand>& tail) {
    const auto future = detail::submit(device().submitter(), op, tail);
    ASSERT_TRUE(future.ready());
    EXPECT_EQ(future.wait().code(), Errc::invalid);
  };
  const TailOperand a{x, GemmBatched::of_a, Access::read}, b{x, GemmBatched::of_b, Access::read},
      c{y, GemmBatched::of_c, Access::write};
  refused(listed, {a, b});
  refused(listed, {b, a, c});
  refused(listed, {a, b, {y, GemmBatched::of_c, Access::read}});
  refused(listed, {a, b, {y, GemmBatched::of_c, Access::update}});
  refused(listed, {a, b, {x, GemmBatched::of_c, Access::write}});
  refused(listed, {a, {absent, GemmBatched::of_b, Access::read}, c});
  refused(good, {a, b, c});

  GemmIndexed indexed;
  indexed.dtype = DType::f64;
  indexed.m = indexed.n = indexed.k = indexed.lda = indexed.ldb = indexed.ldc = 2;
  indexed.batch = 2;
  indexed.alpha = one;
  indexed.a = indexed.b = x, indexed.c = y;
  indexed.offsets = i, indexed.outside = cell.where;  // 16 i32: room for 8 offsets
  auto op = indexed;
  op.batch = 3;
  expect_refused(op);
  op = indexed, op.offsets = absent;
  expect_refused(op);
  op = indexed, op.outside = absent;
  expect_refused(op);
  op = indexed, op.m = op.lda = op.ldc = 9;
  expect_refused(op);
}

}  // namespace
}  // namespace troupe::test::reference
