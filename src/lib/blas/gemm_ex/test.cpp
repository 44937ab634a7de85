// Products that say what they are computed in.
#include "dense_reference.hpp"

namespace troupe::test::reference {
namespace {

using blas::Compute;

class BlasProductsInTypes : public ::testing::Test {
 protected:
  /// Exact: small integers are in every type.
  template <Compute compute, class A, class C>
  void multiplies() {
    using F = detail::ScaleOf<A, compute>;
    SCOPED_TRACE(::testing::Message()
                 << to_string(dtype_of<A>) << " into " << to_string(dtype_of<C>) << " computed in "
                 << static_cast<int>(compute));
    using N = std::conditional_t<ComplexElement<A>, A, float>;
    constexpr std::int64_t m = 8, n = 12, k = 20;
    for (const auto ta : {Transpose::no, Transpose::yes}) {
      for (const auto tb : {Transpose::no, Transpose::yes}) {
        const auto a = ta == Transpose::no ? random_matrix<N>(m, k, 1, Data::integers)
                                           : random_matrix<N>(k, m, 1, Data::integers);
        const auto b = tb == Transpose::no ? random_matrix<N>(k, n, 2, Data::integers)
                                           : random_matrix<N>(n, k, 2, Data::integers);
        const auto c = random_matrix<N>(m, n, 3, Data::integers);
        const auto dc = MatrixRef(put_any<C>(spread(c, m + 4)), m, n, m + 4);
        const auto future = device().blas().gemm_ex<compute, A, C>(
            ta, tb, from_wide<F>(1), MatrixRef(put_any<A>(a.element), a.rows, a.columns),
            MatrixRef(put_any<A>(spread(b, b.rows + 4)), b.rows, b.columns, b.rows + 4),
            from_wide<F>(1), dc);
        if (future.wait().code() == Errc::unsupported) {
          // Emulation is not in every GPU and cuBLAS; all else is.
          EXPECT_GE(compute, Compute::f32_by_bf16x9) << future.wait().error().message;
          (void)device().take_error();
          continue;
        }
        ASSERT_TRUE(future.wait().ok()) << future.wait().error().message;
        EXPECT_EQ(got(dc.buffer), spread(op(a, ta) * op(b, tb) + c, m + 4));
      }
    }
  }
};

TEST_F(BlasProductsInTypes, OfSixteenBits) {
  multiplies<Compute::f16, Half, Half>();
  multiplies<Compute::f32, Half, Half>();
  multiplies<Compute::f32, Half, float>();
  multiplies<Compute::f32, BFloat16, BFloat16>();
  multiplies<Compute::f32, BFloat16, float>();
}
TEST_F(BlasProductsInTypes, OfIntegers) {
  multiplies<Compute::f32, std::int8_t, float>();
  multiplies<Compute::i32, std::int8_t, std::int32_t>();
}
TEST_F(BlasProductsInTypes, OfSinglePrecision) {
  multiplies<Compute::f32, float, float>();
  multiplies<Compute::tf32, float, float>();
  multiplies<Compute::f32_by_f16, float, float>();
  multiplies<Compute::f32_by_bf16, float, float>();
  multiplies<Compute::f32_by_bf16x9, float, float>();
  multiplies<Compute::f32, std::complex<float>, std::complex<float>>();
  multiplies<Compute::tf32, std::complex<float>, std::complex<float>>();
}
TEST_F(BlasProductsInTypes, OfDoublePrecision) {
  multiplies<Compute::f64, double, double>();
  multiplies<Compute::f64_by_fixed_point, double, double>();
  multiplies<Compute::f64, std::complex<double>, std::complex<double>>();
}

/// 1 + 2^-20 is in f32, and not in tf32: a product that is computed in f32 keeps it.
TEST_F(BlasProductsInTypes, WhatIsNotAskedForIsNotRounded) {
  constexpr std::int64_t n = 256;
  const float fine = 1 + 0x1p-20f;
  std::vector<float> a(n * n, 0.0f), ones(n * n, 0.0f);
  for (std::int64_t i = 0; i < n; ++i) {
    a[static_cast<std::size_t>(i * n + i)] = fine;
    ones[static_cast<std::size_t>(i * n + i)] = 1;
  }
  const MatrixRef da(put(a), n, n), db(put(ones), n, n);
  const auto fresh = [&] { return MatrixRef(device().alloc<float>(n * n), n, n); };
  const auto plain = fresh(), fast = fresh(), behind = fresh();
  auto blas = device().blas();
  const auto no = Transpose::no;
  blas.gemm(no, no, 1.0f, da, db, 0.0f, plain);
  blas.gemm_ex<Compute::tf32>(no, no, 1.0f, da, db, 0.0f, fast);
  blas.gemm(no, no, 1.0f, da, db, 0.0f, behind);  // the mode was of that call alone
  EXPECT_EQ(device().download(plain.buffer), a);
  EXPECT_EQ(device().download(behind.buffer), a);
  for (const auto value : device().download(fast.buffer))
    EXPECT_TRUE(value == 0 || std::abs(value - 1) <= 0x1p-9f) << value;
}

TEST_F(BadArguments, OfProductsInTypes) {
  using namespace blas;
  const auto y_ref = put(std::vector<double>(16, 0.0));
  GemmEx good;
  good.dtype = good.c_dtype = DType::f32, good.compute = Compute::f32;
  good.m = good.n = good.k = good.lda = good.ldb = good.ldc = 4;
  good.a = good.b = x, good.c = y_ref.operand();
  const auto refused = [&](auto change, Errc code = Errc::invalid) {
    auto op = good;
    change(op);
    expect_refused(op, code);
  };
  refused([](auto& op) { op.compute = Compute::f64; }, Errc::unsupported);
  refused([](auto& op) { op.compute = static_cast<Compute>(77); }, Errc::unsupported);
  refused([](auto& op) { op.c_dtype = DType::f64; }, Errc::unsupported);
  refused([](auto& op) { op.dtype = DType::f16, op.c_dtype = DType::bf16; }, Errc::unsupported);
  refused([](auto& op) { op.dtype = DType::u8; }, Errc::unsupported);
  refused([](auto& op) { op.transpose_a = static_cast<Transpose>(3); });
  refused([](auto& op) { op.ldc = 3; });
  refused([](auto& op) { op.m = op.lda = op.ldc = 9; });
  refused([](auto& op) { op.n = -1; });
  refused([&](auto& op) { op.c = x; });
  refused([](auto& op) {
    op.dtype = DType::i8, op.c_dtype = DType::i32, op.compute = Compute::i32, op.lda = 5;
  });
  refused([](auto& op) {
    op.dtype = DType::i8, op.c_dtype = DType::i32, op.compute = Compute::i32, op.a.offset += 1,
    op.a.bytes -= 1;
  });
}

}  // namespace
}  // namespace troupe::test::reference
