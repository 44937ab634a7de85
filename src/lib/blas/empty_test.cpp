// Sums of nothing: extents of 0, and scalars of 0 before what is not a number.
#include <functional>
#include <string_view>

#include "dense_reference.hpp"

namespace troupe::test::reference {
namespace {

using blas::Diagonal;

template <class T>
class BlasEmpty : public Typed<T> {};
TYPED_TEST_SUITE(BlasEmpty, Numbers);

template <class T>
GpuRef<T> filled_with(std::int64_t count, double value) {
  const auto buffer = device().alloc<T>(count);
  device().fill(buffer, T(static_cast<RealOf<T>>(value)));
  return buffer;
}
template <class T>
MatrixRef<GpuRef<T>> as_matrix(const GpuRef<T>& buffer, std::int64_t rows, std::int64_t columns) {
  return {buffer, rows, columns, std::max<std::int64_t>(1, rows)};
}

constexpr double kUnread = std::numeric_limits<double>::quiet_NaN();

/// y = alpha f(nan) + beta y, whatever f is; y has 4 elements, a 2 x 2 matrix, or two vectors.
template <class T>
struct ScaledSum {
  const char* name;
  /// `inner`: the extent that f adds up over, where it has one.
  std::function<Future<void>(T alpha, T beta, std::int64_t inner, const GpuRef<T>& nan,
                             const GpuRef<T>& y, Place place)>
      run;
  bool has_inner = true;
  bool has_beta = true;
  std::vector<std::size_t> written = {0, 1, 2, 3};
  bool may_lack = false;  ///< the cuda engine's library may not have it
};

/// The sums that multiply a matrix by a vector.
template <class T>
std::vector<ScaledSum<T>> sums_of_vectors() {
  using G = const GpuRef<T>&;
  auto blas = device().blas();
  std::vector<ScaledSum<T>> all;
  for (const auto transpose : kTransposes) {
    const bool plain = transpose == Transpose::no;
    all.push_back({"gemv", [=](T alpha, T beta, std::int64_t k, G nan, G y, Place place) mutable {
                     return blas.gemv(transpose, scalar(alpha, place),
                                      plain ? as_matrix(nan, 4, k) : as_matrix(nan, k, 4),
                                      nan.slice(0, k), scalar(beta, place), y);
                   }});
    all.push_back({"gbmv", [=](T alpha, T beta, std::int64_t k, G nan, G y, Place place) mutable {
                     return blas.gbmv(transpose, plain ? 4 : k, 1, 1, scalar(alpha, place),
                                      as_matrix(nan, 3, plain ? k : 4), nan.slice(0, k),
                                      scalar(beta, place), y);
                   }});
    const auto shape = [=](std::int64_t k) {
      return GemvOptions{.m = plain ? 2 : k,
                         .n = plain ? k : 2,
                         .lda = std::max<std::int64_t>(1, plain ? 2 : k),
                         .transpose = transpose};
    };
    all.push_back(
        {"gemv_batched", [=](T alpha, T beta, std::int64_t k, G nan, G y, Place place) mutable {
           return blas.gemv_batched(nan, nan, y, shape(k), BatchOptions{2, 4, 2, 2},
                                    scalar(alpha, place), scalar(beta, place));
         }});
    all.push_back(
        {"gemv_batched of lists",
         [=](T alpha, T beta, std::int64_t k, G nan, G y, Place place) mutable {
           const std::vector<GpuRef<T>> of_nan{nan, nan}, of_y{y.slice(0, 2), y.slice(2, 2)};
           return blas.gemv_batched(of_nan, of_nan, of_y, shape(k), scalar(alpha, place),
                                    scalar(beta, place));
         }});
  }
  all.push_back({"symv",
                 [=](T alpha, T beta, std::int64_t, G nan, G y, Place place) mutable {
                   return blas.symv(Uplo::lower, scalar(alpha, place), as_matrix(nan, 4, 4),
                                    nan.slice(0, 4), scalar(beta, place), y);
                 },
                 false});
  if constexpr (RealElement<T>) {
    all.push_back({"sbmv",
                   [=](T alpha, T beta, std::int64_t, G nan, G y, Place place) mutable {
                     return blas.sbmv(Uplo::lower, 1, scalar(alpha, place), as_matrix(nan, 2, 4),
                                      nan.slice(0, 4), scalar(beta, place), y);
                   },
                   false});
    all.push_back({"spmv",
                   [=](T alpha, T beta, std::int64_t, G nan, G y, Place place) mutable {
                     return blas.spmv(Uplo::upper, scalar(alpha, place), nan.slice(0, 10),
                                      nan.slice(0, 4), scalar(beta, place), y);
                   },
                   false});
  } else {
    all.push_back({"hemv",
                   [=](T alpha, T beta, std::int64_t, G nan, G y, Place place) mutable {
                     return blas.hemv(Uplo::upper, scalar(alpha, place), as_matrix(nan, 4, 4),
                                      nan.slice(0, 4), scalar(beta, place), y);
                   },
                   false});
    all.push_back({"hpmv",
                   [=](T alpha, T beta, std::int64_t, G nan, G y, Place place) mutable {
                     return blas.hpmv(Uplo::lower, scalar(alpha, place), nan.slice(0, 10),
                                      nan.slice(0, 4), scalar(beta, place), y);
                   },
                   false});
  }
  return all;
}

/// The sums that combine matrices.
template <class T>
std::vector<ScaledSum<T>> sums_of_matrices() {
  using G = const GpuRef<T>&;
  auto blas = device().blas();
  std::vector<ScaledSum<T>> all;
  const std::vector<std::size_t> lower{0, 1, 3};
  for (const auto transpose : kTransposes) {
    const bool plain = transpose == Transpose::no;
    const auto factor = [=](G nan, std::int64_t k) {
      return plain ? as_matrix(nan, 2, k) : as_matrix(nan, k, 2);
    };
    all.push_back({"gemm", [=](T alpha, T beta, std::int64_t k, G nan, G y, Place place) mutable {
                     return blas.gemm(transpose, Transpose::no, scalar(alpha, place),
                                      factor(nan, k), as_matrix(nan, k, 2), scalar(beta, place),
                                      as_matrix(y, 2, 2));
                   }});
    const GemmOptions shape{.m = 2, .n = 1, .k = 0, .ldb = 2, .transpose_a = transpose};
    const auto shape_of = [=](std::int64_t k) {
      auto one = shape;
      one.k = k, one.lda = std::max<std::int64_t>(1, plain ? 2 : k);
      return one;
    };
    all.push_back(
        {"gemm_batched", [=](T alpha, T beta, std::int64_t k, G nan, G y, Place place) mutable {
           return blas.template gemm_batched<T>(nan, nan, y, shape_of(k), BatchOptions{2, 4, 2, 2},
                                                scalar(alpha, place), scalar(beta, place));
         }});
    all.push_back(
        {"gemm_batched of lists",
         [=](T alpha, T beta, std::int64_t k, G nan, G y, Place place) mutable {
           const std::vector<GpuRef<T>> of_nan{nan, nan}, of_y{y.slice(0, 2), y.slice(2, 2)};
           return blas.template gemm_batched<T>(of_nan, of_nan, of_y, shape_of(k),
                                                scalar(alpha, place), scalar(beta, place));
         }});
    all.push_back({"matmul",
                   [=](T alpha, T beta, std::int64_t k, G nan, G y, Place place) mutable {
                     MatmulOptions options;
                     options.transpose_a = transpose;
                     return blas.matmul(scalar(alpha, place), factor(nan, k), as_matrix(nan, k, 2),
                                        scalar(beta, place), as_matrix(y, 2, 2), as_matrix(y, 2, 2),
                                        options);
                   },
                   true,
                   true,
                   {0, 1, 2, 3},
                   true});
    if (transpose == Transpose::conjugate) continue;
    all.push_back({"syrk",
                   [=](T alpha, T beta, std::int64_t k, G nan, G y, Place place) mutable {
                     return blas.syrk(Uplo::lower, transpose, scalar(alpha, place), factor(nan, k),
                                      scalar(beta, place), as_matrix(y, 2, 2));
                   },
                   true, true, lower});
    all.push_back({"syr2k",
                   [=](T alpha, T beta, std::int64_t k, G nan, G y, Place place) mutable {
                     return blas.syr2k(Uplo::lower, transpose, scalar(alpha, place), factor(nan, k),
                                       factor(nan, k), scalar(beta, place), as_matrix(y, 2, 2));
                   },
                   true, true, lower});
    all.push_back({"syrkx",
                   [=](T alpha, T beta, std::int64_t k, G nan, G y, Place place) mutable {
                     return blas.syrkx(Uplo::lower, transpose, scalar(alpha, place), factor(nan, k),
                                       factor(nan, k), scalar(beta, place), as_matrix(y, 2, 2));
                   },
                   true, true, lower});
  }
  if constexpr (!RealElement<T>) {
    all.push_back({"herk",
                   [=](T alpha, T beta, std::int64_t k, G nan, G y, Place place) mutable {
                     return blas.herk(Uplo::lower, Transpose::no, scalar(alpha.real(), place),
                                      as_matrix(nan, 2, k), scalar(beta.real(), place),
                                      as_matrix(y, 2, 2));
                   },
                   true, true, lower});
    all.push_back({"her2k",
                   [=](T alpha, T beta, std::int64_t k, G nan, G y, Place place) mutable {
                     return blas.her2k(Uplo::lower, Transpose::no, scalar(alpha, place),
                                       as_matrix(nan, 2, k), as_matrix(nan, 2, k),
                                       scalar(beta.real(), place), as_matrix(y, 2, 2));
                   },
                   true, true, lower});
    all.push_back({"hemm",
                   [=](T alpha, T beta, std::int64_t, G nan, G y, Place place) mutable {
                     return blas.hemm(Side::right, Uplo::lower, scalar(alpha, place),
                                      as_matrix(nan, 2, 2), as_matrix(nan, 2, 2),
                                      scalar(beta, place), as_matrix(y, 2, 2));
                   },
                   false});
  } else {
    all.push_back({"gemm_grouped", [=](T alpha, T beta, std::int64_t k, G nan, G y, Place) mutable {
                     GemmGroupOf<GpuRef<T>> group;
                     group.alpha = alpha, group.beta = beta;
                     group.a = {as_matrix(nan, 2, k)}, group.b = {as_matrix(nan, k, 2)};
                     group.c = {as_matrix(y, 2, 2)};
                     return blas.template gemm_grouped<T>({group});
                   }});
  }
  all.push_back({"symm",
                 [=](T alpha, T beta, std::int64_t, G nan, G y, Place place) mutable {
                   return blas.symm(Side::left, Uplo::lower, scalar(alpha, place),
                                    as_matrix(nan, 2, 2), as_matrix(nan, 2, 2), scalar(beta, place),
                                    as_matrix(y, 2, 2));
                 },
                 false});
  all.push_back({"geam",
                 [=](T alpha, T beta, std::int64_t, G nan, G y, Place place) mutable {
                   return blas.geam(Transpose::yes, Transpose::no, scalar(alpha, place),
                                    as_matrix(nan, 2, 2), scalar(beta, place), as_matrix(y, 2, 2),
                                    as_matrix(y, 2, 2));
                 },
                 false});
  all.push_back({"trmm",
                 [=](T alpha, T, std::int64_t, G nan, G y, Place place) mutable {
                   return blas.trmm(Side::left, Uplo::lower, Transpose::no, Diagonal::stored,
                                    scalar(alpha, place), as_matrix(nan, 2, 2),
                                    as_matrix(nan, 2, 2), as_matrix(y, 2, 2));
                 },
                 false, false});
  all.push_back({"trsm",
                 [=](T alpha, T, std::int64_t, G nan, G y, Place place) mutable {
                   return blas.trsm(Side::left, Uplo::lower, Transpose::no, Diagonal::stored,
                                    scalar(alpha, place), as_matrix(nan, 2, 2), as_matrix(y, 2, 2));
                 },
                 false, false});
  return all;
}

/// Runs a sum of nothing, or of nothing that counts: y becomes beta times what it was, and with
/// beta = 0 it is not read.
template <class T>
void check_scaled(const ScaledSum<T>& sum, T alpha, T beta, std::int64_t inner, Place place) {
  SCOPED_TRACE(::testing::Message()
               << sum.name << ", alpha " << alpha << ", beta " << beta << ", inner extent " << inner
               << (place == Place::device ? ", scalars on the device" : ""));
  // cuBLAS may multiply what is there by an alpha of 0.
  const bool may_be_read = device().info().engine != "cpu" && alpha == T(0) && inner > 0;
  const auto nan = filled_with<T>(16, may_be_read ? 2.0 : kUnread);
  const bool reads_y = may_be_read && std::string_view(sum.name) == "trsm";
  const auto y = filled_with<T>(4, beta == T(0) && !reads_y ? kUnread : 3.0);
  if (const auto ran = sum.run(alpha, beta, inner, nan, y, place).wait();
      sum.may_lack && ran.code() == Errc::unsupported) {
    static_cast<void>(device().take_error());
    return;
  }
  const auto after = device().download(y);
  for (const auto i : sum.written) EXPECT_EQ(after[i], T(3) * beta) << "element " << i;
}
template <class T>
void check_all_scaled(const std::vector<ScaledSum<T>>& sums) {
  for (const auto& sum : sums) {
    for (const auto place : {Place::host, Place::device}) {
      for (const T beta : {T(0), T(1), T(2)}) {
        if (beta != T(0) && !sum.has_beta) continue;
        check_scaled(sum, T(0), beta, 2, place);
        if (sum.has_inner) check_scaled(sum, T(1), beta, 0, place);
      }
    }
  }
}

TYPED_TEST(BlasEmpty, VectorsAreScaled) {
  check_all_scaled(sums_of_vectors<TypeParam>());
}
TYPED_TEST(BlasEmpty, MatricesAreScaled) {
  check_all_scaled(sums_of_matrices<TypeParam>());
}

/// A gap between the elements of y, and either direction.
TYPED_TEST(BlasEmpty, GapsStay) {
  using T = TypeParam;
  for (const std::int64_t increment : {2, -2}) {
    const auto nothing = device().alloc<T>(0);
    const auto y = filled_with<T>(5, 3);
    device().blas().gemv(Transpose::no, T(1), as_matrix(nothing, 3, 0), nothing, T(2),
                         VectorRef(y, 3, increment));
    EXPECT_EQ(device().download(y), (std::vector<T>{6, 3, 6, 3, 6}));
  }
}

/// Nothing is added by alpha = 0, whatever stands in x.
TYPED_TEST(BlasEmpty, NothingIsAdded) {
  using T = TypeParam;
  auto blas = device().blas();
  const auto x = filled_with<T>(2, kUnread), y = filled_with<T>(4, 3);
  const auto a = as_matrix(y, 2, 2);
  const T zero{};
  blas.axpy(zero, x, y.slice(1, 2)), blas.ger(zero, x, x, a);
  blas.syr(Uplo::lower, zero, x, a), blas.syr2(Uplo::upper, zero, x, x, a);
  if constexpr (RealElement<T>) {
    blas.spr(Uplo::lower, zero, x, y.slice(0, 3)),
        blas.spr2(Uplo::lower, zero, x, x, y.slice(0, 3));
  } else {
    blas.gerc(zero, x, x, a), blas.her2(Uplo::lower, zero, x, x, a);
    blas.her(Uplo::upper, RealOf<T>(0), x, a);
  }
  EXPECT_EQ(device().download(y), std::vector<T>(4, T(3)));
}

/// To scale is to multiply: what is not a number stays so, also by zero. Sums and norms keep it.
TYPED_TEST(BlasEmpty, WhatIsNoNumberStays) {
  using T = TypeParam;
  const auto is_nan = [](auto x) { return std::isnan(std::real(x)) || std::isnan(std::imag(x)); };
  auto blas = device().blas();
  const auto x = filled_with<T>(3, 1);
  device().fill(x.slice(1, 1), T(static_cast<RealOf<T>>(kUnread)));
  const auto norm = device().alloc<RealOf<T>>(1);
  const auto dot = device().alloc<T>(1);
  blas.nrm2(x, norm);
  EXPECT_TRUE(is_nan(device().download(norm)[0]));
  blas.asum(x, norm);
  EXPECT_TRUE(is_nan(device().download(norm)[0]));
  blas.dot(x, x, dot);
  EXPECT_TRUE(is_nan(device().download(dot)[0]));
  blas.scal(T(0), x);
  const auto scaled = device().download(x);
  EXPECT_TRUE(is_nan(scaled[1]));
  EXPECT_EQ(scaled[0], T(0));
  EXPECT_EQ(scaled[2], T(0));
}

/// The same of 16 bits, whose sums are troupe's own on the cpu engine.
TEST(BlasEmptyNarrow, SumsAndEpilogues) {
  constexpr Half kOne{0x3c00}, kNone{0x7e00}, kInfinite{0x7c00};
  const auto put_halves = [](const std::vector<Half>& values) { return put(values); };
  auto blas = device().blas();
  const auto y = put_halves({kOne, kOne});
  blas.axpy(0.0f, put_halves({kNone, kInfinite}), y);
  for (const auto half : device().download(y)) EXPECT_EQ(half.bits, kOne.bits);
  const auto norm = device().alloc<Half>(1);
  blas.nrm2(put_halves({kInfinite, kNone}), norm);
  // cuBLAS has infinity there.
  EXPECT_GT(device().download(norm)[0].bits & 0x7fff,
            device().info().engine == "cpu" ? 0x7c00 : 0x7bff);
  const auto rest = put_halves({kNone, kNone});
  blas.gemv_batched(put_halves({kNone, kNone, kNone, kNone}), put_halves({kNone, kNone}), rest,
                    {.m = 2, .n = 2}, {1, 4, 2, 2}, 0.0f, 0.0f);
  for (const auto half : device().download(rest)) EXPECT_EQ(half.bits, 0);
}

/// Epilogues keep what is not a number, and end where their formulas overflow on the way. cuBLASLt
/// has formulas of its own.
TEST(BlasEmptyEpilogues, FarOut) {
  if (device().info().engine != "cpu") GTEST_SKIP() << "cuBLASLt has formulas of its own";
  using blas::Epilogue;
  constexpr auto kFar = std::numeric_limits<float>::infinity();
  const auto of = [](Epilogue epilogue, float x, float aux) {
    MatmulOptions options;
    options.epilogue = epilogue;
    const auto before = put(std::vector<float>(8, aux));
    if (epilogue == Epilogue::dgelu) options.aux = before, options.ld_aux = 8;
    const auto d = filled_with<float>(1, -7);
    device().blas().matmul(as_matrix(put(std::vector{1.0f}), 1, 1),
                           as_matrix(put(std::vector{x}), 1, 1), as_matrix(d, 1, 1), options);
    return device().download(d)[0];
  };
  EXPECT_EQ(of(Epilogue::relu, -kFar, 0), 0);
  EXPECT_EQ(of(Epilogue::relu, kFar, 0), kFar);
  EXPECT_EQ(of(Epilogue::gelu, kFar, 0), kFar);
  for (const float x : {-kFar, -1e20f, -1e30f}) EXPECT_EQ(of(Epilogue::gelu, x, 0), 0) << x;
  EXPECT_EQ(of(Epilogue::gelu, 1e30f, 0), 1e30f);
  for (const float x : {100.0f, 1e19f, 1e30f, kFar}) {
    EXPECT_EQ(of(Epilogue::dgelu, 2, x), 2) << x;
    EXPECT_EQ(of(Epilogue::dgelu, 2, -x), 0) << x;
  }
  for (const auto epilogue : {Epilogue::relu, Epilogue::gelu})
    EXPECT_TRUE(std::isnan(of(epilogue, static_cast<float>(kUnread), 0)));
  EXPECT_TRUE(std::isnan(of(Epilogue::dgelu, 1, static_cast<float>(kUnread))));
}

}  // namespace
}  // namespace troupe::test::reference
