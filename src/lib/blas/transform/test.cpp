// Changes of order.
#include "dense_reference.hpp"

namespace troupe::test::reference {
namespace {

using blas::Order;

class BlasTransform : public ::testing::Test {
 protected:
  static constexpr std::int64_t kRows = 12, kColumns = 7, kGap = 3;
  static constexpr Order kOrders[] = {Order::column, Order::row};

  /// Whether the command ended well. cuBLASLt need not transform every type on every GPU.
  static bool ended(const Future<void>& future) {
    const auto outcome = future.wait();
    if (outcome.code() == Errc::unsupported) {
      EXPECT_TRUE(outcome.error().message.starts_with("blas.transform")) << outcome.error().message;
      EXPECT_NE(device().info().engine, "cpu");
      (void)device().take_error();
      return false;
    }
    EXPECT_TRUE(outcome.ok()) << outcome.error().message;
    return outcome.ok();
  }
  template <class T>
  static Dense random(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
    using N = std::conditional_t<ComplexElement<T>, T, float>;
    return random_matrix<N>(rows, columns, seed, Data::integers);
  }
  template <class T>
  static MatrixRef<GpuRef<T>> put_in(Order order, const Dense& a, std::int64_t gap = kGap) {
    const auto leading = (order == Order::column ? a.rows : a.columns) + gap;
    return {put_any<T>(spread_in(order, a, leading)), a.rows, a.columns, leading};
  }

  template <class T>
  static std::vector<Wide> stored(std::vector<Wide> values) {
    for (auto& value : values) value = to_wide(from_wide<T>(value));
    return values;
  }

  /// Exact: sums of small integers, also in formats of 8 bits.
  template <class T>
  static void transforms() {
    SCOPED_TRACE(to_string(dtype_of<T>));
    using F = detail::TransformFactorOf<T>;
    const auto alpha = ComplexElement<T> ? Wide(2, -1) : Wide(2);
    for (const auto order_a : kOrders) {
      for (const auto order_c : kOrders) {
        for (const auto ta : kTransposes) {
          if (ta == Transpose::conjugate && !ComplexElement<T>) continue;
          const auto tb = ta == Transpose::no ? Transpose::yes : Transpose::no;
          const auto a =
              ta == Transpose::no ? random<T>(kRows, kColumns, 1) : random<T>(kColumns, kRows, 1);
          const auto b =
              tb == Transpose::no ? random<T>(kRows, kColumns, 2) : random<T>(kColumns, kRows, 2);
          const auto order_b = order_a == order_c ? Order::row : Order::column;
          const TransformOptions options{ta, tb, order_a, order_b, order_c};
          const auto x = put_in<T>(order_a, a), y = put_in<T>(order_b, b);
          const auto c = put_in<T>(order_c, Dense{kRows, kColumns});
          const auto expect = [&](const Dense& matrix) {
            EXPECT_EQ(got(c.buffer), stored<T>(spread_in(order_c, matrix, c.leading)))
                << "order " << static_cast<int>(order_a) << " to " << static_cast<int>(order_c)
                << ", transposed " << static_cast<int>(ta);
          };
          if (!ended(device().blas().transform<T>(x, c, options))) {
            EXPECT_TRUE(ta == Transpose::conjugate || blas::is_f8(dtype_of<T>));
            continue;
          }
          expect(op(a, ta));
          ASSERT_TRUE(ended(device().blas().transform<T>(from_wide<F>(alpha), x, from_wide<F>(-1),
                                                         y, c, options)));
          expect(alpha * op(a, ta) + Wide(-1) * op(b, tb));
        }
      }
    }
  }
};

TEST_F(BlasTransform, OfNumbers) {
  transforms<float>();
  transforms<double>();
  transforms<std::complex<float>>();
  transforms<std::complex<double>>();
}
TEST_F(BlasTransform, OfSixteenBits) {
  transforms<Half>();
  transforms<BFloat16>();
}
TEST_F(BlasTransform, OfIntegers) {
  transforms<std::int8_t>();
  transforms<std::int32_t>();
}
TEST_F(BlasTransform, OfEightBits) {
  transforms<Float8E4M3>();
  transforms<Float8E5M2>();
}

TEST_F(BlasTransform, BatchesAndDevicesFactors) {
  constexpr std::int64_t batch = 3;
  const auto a = random<float>(kRows, kColumns * batch, 1);
  const auto x = put_any<float>(a.element), half = put(std::vector<float>{0.5f});
  const auto c = device().alloc<float>(kRows * kColumns * batch);
  if (!ended(device().blas().transform<float>(half, MatrixRef(x, kRows, kColumns),
                                              blas::row_major(c, kRows, kColumns),
                                              {.order_c = Order::row, .batch = batch})))
    return;
  std::vector<Wide> expected;
  for (std::int64_t of = 0; of < batch; ++of) {
    for (std::int64_t i = 0; i < kRows; ++i) {
      for (std::int64_t j = 0; j < kColumns; ++j)
        expected.push_back(Wide(0.5) * a(i, of * kColumns + j));
    }
  }
  EXPECT_EQ(got(c), expected);
}

/// On the cpu engine they saturate, and halves go to the even neighbour. cuBLASLt cuts off both.
TEST_F(BlasTransform, RoundsIntegers) {
  if (on_cuda()) GTEST_SKIP() << "cuBLASLt neither rounds nor saturates";
  const auto a = put(std::vector<std::int8_t>{3, 5, -3, 127, -128, 1});
  const auto c = put(std::vector<std::int8_t>(6));
  if (!ended(device().blas().transform<std::int8_t>(0.5f, MatrixRef(a, 6, 1), MatrixRef(c, 6, 1))))
    return;
  EXPECT_EQ(device().download(c), (std::vector<std::int8_t>{2, 2, -2, 64, -64, 0}));
  ASSERT_TRUE(
      ended(device().blas().transform<std::int8_t>(3.0f, MatrixRef(a, 6, 1), MatrixRef(c, 6, 1))));
  EXPECT_EQ(device().download(c), (std::vector<std::int8_t>{9, 15, -9, 127, -128, 3}));
}

TEST_F(BadArguments, OfTransform) {
  using namespace blas;
  const auto y = put(std::vector<double>(16, 0.0));
  Transform good;
  good.dtype = DType::f64;
  good.m = 4, good.n = 2, good.lda = good.ldc = 4;
  good.alpha = Scalar::of(1.0), good.beta = Scalar::of(0.0);
  good.a = x, good.c = y.operand();
  const auto refused = [&](auto change, Errc code = Errc::invalid) {
    auto op = good;
    change(op);
    expect_refused(op, code);
  };
  refused([](auto& op) { op.dtype = DType::u8; }, Errc::unsupported);
  refused([](auto& op) { op.dtype = DType::f4e2m1x2; }, Errc::unsupported);
  refused([](auto& op) { op.dtype = static_cast<DType>(77); }, Errc::unsupported);
  refused([](auto& op) { op.order_a = static_cast<Order>(2); });
  refused([](auto& op) { op.transpose_b = static_cast<Transpose>(3); });
  refused([](auto& op) { op.n = -1; });
  refused([](auto& op) { op.ldc = 3; });
  refused([](auto& op) { op.order_a = Order::row, op.lda = 1; });
  refused([](auto& op) { op.transpose_a = Transpose::yes, op.order_a = Order::row, op.lda = 3; });
  refused([](auto& op) { op.lda = 64; });
  refused([](auto& op) { op.batch = -1; });
  refused([](auto& op) { op.batch = 2; });  // overlap
  refused([](auto& op) { op.batch = 3, op.stride_a = op.stride_c = 8; });
  refused([](auto& op) { op.beta = Scalar::of(1.0); });  // without b
  refused([](auto& op) { op.c = op.a; });
  refused([this](auto& op) { op.alpha = short_scalar; });
}

}  // namespace
}  // namespace troupe::test::reference
