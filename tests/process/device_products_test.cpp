#include <gtest/gtest.h>

#include <cstdlib>
#include <numbers>
#include <random>

#include <troupe/lib/fft.hpp>
#include <troupe/lib/sparse.hpp>

#include "common/core/narrow.hpp"
#include "common/core/narrow_float.hpp"
#include "device_rig.hpp"

// --check products: right products are never called wrong; one that is wrong is done again, and
// twice wrong it is corrupt.

namespace troupe::test::products {
namespace {

using blas::Compute;
using blas::Epilogue;
using blas::Transpose;

/// A device that looks at all products that it can look at.
class LookingRig {
 public:
  LookingRig() : rig_(options()) {}
  Device* operator->() { return &rig_.device(); }
  Device& operator*() { return rig_.device(); }

 private:
  static std::vector<std::string> options() {
    ::setenv("TESTING_TROUPE_ALL_PRODUCTS", "1", 1);  // the device host inherits it
    return {"--check", "products", "--standby", "off"};
  }
  DeviceRig rig_;
};

enum class Numbers { normal, positive, tiny, huge, special };

template <class T>
T of_double(double x) {
  if constexpr (NarrowElement<T>) {
    return from_float<T>(static_cast<float>(x));
  } else if constexpr (std::is_same_v<T, Float8E4M3> || std::is_same_v<T, Float8E5M2>) {
    return narrow<T>(static_cast<float>(x));
  } else if constexpr (ComplexElement<T>) {
    return static_cast<RealOf<T>>(x);
  } else {
    return static_cast<T>(x);
  }
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : random_(seed) {}

  std::int64_t below(std::int64_t end) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(end));
  }
  template <class Choices>
  auto one_of(const Choices& choices) {
    return *(std::begin(choices) + below(std::ssize(choices)));
  }
  double number(Numbers which) {
    switch (which) {
      case Numbers::normal: return normal_(random_);
      case Numbers::positive: return 0.1;
      case Numbers::tiny: return 1e-42 * normal_(random_);
      case Numbers::huge: return 1e36 * normal_(random_);
      case Numbers::special: break;
    }
    const double kSpecial[] = {std::nan(""), INFINITY, -INFINITY, 0, -0.0};
    return below(20) == 0 ? one_of(kSpecial) : normal_(random_);
  }
  template <class T>
  std::vector<T> numbers(std::int64_t count, Numbers which) {
    std::vector<T> all(static_cast<std::size_t>(count));
    for (auto& x : all) {
      if constexpr (ComplexElement<T>) {
        x = T(static_cast<RealOf<T>>(number(which)), static_cast<RealOf<T>>(number(which)));
      } else if constexpr (std::is_integral_v<T>) {
        x = static_cast<T>(below(255) - 127);
      } else {
        x = of_double<T>(number(which));
      }
    }
    return all;
  }

 private:
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
};

template <class T>
GpuRef<T> put(Device& device, const std::vector<T>& values) {
  auto ref = device.alloc<T>(std::ssize(values));
  device.upload<T>(values, ref).get();
  return ref;
}

constexpr Transpose kTransposes[] = {Transpose::no, Transpose::yes, Transpose::conjugate};
constexpr std::int64_t kExtents[] = {0, 1, 2, 3, 5, 17, 64, 100};
constexpr Numbers kAll[] = {Numbers::normal, Numbers::positive, Numbers::tiny, Numbers::huge,
                            Numbers::special};
constexpr double kFactors[] = {0, 1, -1, 0.3, 1e3};

/// The answer that is expected of a product.
::testing::AssertionResult right(const Future<void>& future) {
  const auto outcome = future.wait();
  if (outcome.ok() || outcome.code() == Errc::unsupported) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << outcome.error().to_string();
}

template <class A, class C, Compute compute>
void multiply_at_random(LookingRig& rig, std::uint64_t seed) {
  using F = detail::ScaleOf<A, compute>;
  Random random(seed);
  const auto m = random.one_of(kExtents), n = random.one_of(kExtents);
  const auto k = random.below(10) == 0 ? 5000 : random.one_of(kExtents);
  const auto ta = random.one_of(kTransposes), tb = random.one_of(kTransposes);
  const auto which = random.one_of(kAll);
  const auto gap = random.below(3);
  SCOPED_TRACE(::testing::Message()
               << to_string(dtype_of<A>) << " to " << to_string(dtype_of<C>) << " in "
               << static_cast<int>(compute) << ", " << m << " x " << n << " x " << k
               << ", transposes " << static_cast<int>(ta) << static_cast<int>(tb) << ", numbers "
               << static_cast<int>(which) << ", seed " << seed);
  const auto matrix = [&]<class T>(T, std::int64_t rows, std::int64_t columns) {
    auto leading = std::max<std::int64_t>(1, rows) + gap;
    if (compute == Compute::i32) leading = (leading + 3) / 4 * 4;
    return MatrixRef(put(*rig, random.numbers<T>(leading * columns + 1, which)), rows, columns,
                     leading);
  };
  const auto a = ta == Transpose::no ? matrix(A{}, m, k) : matrix(A{}, k, m);
  const auto b = tb == Transpose::no ? matrix(A{}, k, n) : matrix(A{}, n, k);
  const auto c = matrix(C{}, m, n);
  const auto factor = [&] {
    const double x = random.one_of(kFactors);
    if constexpr (std::is_same_v<F, std::int32_t>) {
      return static_cast<F>(x);
    } else {
      return of_double<F>(x);
    }
  };
  EXPECT_TRUE(
      right(rig->blas().template gemm_ex<compute, A, C>(ta, tb, factor(), a, b, factor(), c)));
  (void)rig->take_error();
}

TEST(DeviceProducts, OfMatricesAreNotCalledWrong) {
  LookingRig rig;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    multiply_at_random<float, float, Compute::f32>(rig, seed);
    multiply_at_random<float, float, Compute::tf32>(rig, seed);
    multiply_at_random<float, float, Compute::f32_by_f16>(rig, seed);
    multiply_at_random<float, float, Compute::f32_by_bf16>(rig, seed);
    multiply_at_random<double, double, Compute::f64>(rig, seed);
    multiply_at_random<std::complex<float>, std::complex<float>, Compute::f32>(rig, seed);
    multiply_at_random<std::complex<double>, std::complex<double>, Compute::f64>(rig, seed);
    multiply_at_random<Half, Half, Compute::f32>(rig, seed);
    multiply_at_random<Half, float, Compute::f32>(rig, seed);
    multiply_at_random<BFloat16, BFloat16, Compute::f32>(rig, seed);
    multiply_at_random<BFloat16, float, Compute::f32>(rig, seed);
    multiply_at_random<std::int8_t, std::int32_t, Compute::i32>(rig, seed);
    multiply_at_random<std::int8_t, float, Compute::f32>(rig, seed);
  }
}

/// A sum of equal numbers that are not exact is as far off as sums are.
TEST(DeviceProducts, LongSumsAreNotCalledWrong) {
  LookingRig rig;
  for (const std::int64_t k : {20'000, 300'000}) {
    Random random(static_cast<std::uint64_t>(k));
    for (const auto which : {Numbers::normal, Numbers::positive}) {
      const auto multiply = [&]<class T>(T) {
        const MatrixRef a(put(*rig, random.numbers<T>(3 * k, which)), 3, k);
        const MatrixRef b(put(*rig, random.numbers<T>(2 * k, which)), k, 2);
        const MatrixRef c(put(*rig, random.numbers<T>(6, which)), 3, 2);
        EXPECT_TRUE(right(rig->blas().gemm(Transpose::no, Transpose::no, 1, a, b, 0, c)));
      };
      multiply(float{});
      multiply(double{});
      multiply(Half{});
      multiply(BFloat16{});
    }
  }
}

template <class A, class B, class C, class D>
void multiply_with_epilogue(LookingRig& rig, std::uint64_t seed) {
  using F = detail::MatmulScaleOf<A, D>;
  Random random(seed);
  constexpr std::int64_t kM = 32, kN = 48, kK = 64;
  MatmulOptions options{.transpose_a = Transpose::yes};
  GpuRef<D> bias;
  if (std::is_same_v<D, float> || NarrowElement<D>) {
    if constexpr (sizeof(A) > 1) {
      bias = put(*rig, random.numbers<D>(kM, Numbers::normal));
      if (random.below(2) == 0) options.epilogue = Epilogue::bias, options.bias = bias;
    }
  }
  const MatrixRef a(put(*rig, random.numbers<A>(kK * kM, Numbers::normal)), kK, kM);
  const MatrixRef b(put(*rig, random.numbers<B>(kK * kN, Numbers::normal)), kK, kN);
  const MatrixRef c(put(*rig, random.numbers<C>(kM * kN, Numbers::normal)), kM, kN);
  const MatrixRef d(put(*rig, random.numbers<D>(kM * kN, Numbers::normal)), kM, kN);
  SCOPED_TRACE(::testing::Message() << to_string(dtype_of<A>) << " and " << to_string(dtype_of<B>)
                                    << " to " << to_string(dtype_of<D>) << ", seed " << seed);
  const bool whole = std::is_same_v<F, std::int32_t>;
  const auto alpha = of_double<F>(whole ? 1 : 0.5), beta = of_double<F>(whole ? 1 : -2);
  EXPECT_TRUE(right(rig->blas().matmul<A, B, C, D>(alpha, a, b, beta, c, d, options)));
  EXPECT_TRUE(right(rig->blas().matmul<A, B, D>(a, b, d, options)));
  (void)rig->take_error();
}

TEST(DeviceProducts, OfMatmulAreNotCalledWrong) {
  LookingRig rig;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    multiply_with_epilogue<float, float, float, float>(rig, seed);
    multiply_with_epilogue<double, double, double, double>(rig, seed);
    multiply_with_epilogue<std::complex<float>, std::complex<float>, std::complex<float>,
                           std::complex<float>>(rig, seed);
    multiply_with_epilogue<Half, Half, Half, Half>(rig, seed);
    multiply_with_epilogue<BFloat16, BFloat16, float, float>(rig, seed);
    multiply_with_epilogue<Float8E4M3, Float8E4M3, float, float>(rig, seed);
    multiply_with_epilogue<Float8E4M3, Float8E5M2, BFloat16, BFloat16>(rig, seed);
    multiply_with_epilogue<std::int8_t, std::int8_t, std::int32_t, std::int32_t>(rig, seed);
  }
}

/// Carries the product out undisturbed, with one fault and with two. `multiply` returns where the
/// result is, and the answer.
template <class Multiply>
void expect_found(LookingRig& rig, Multiply&& multiply) {
  const auto [undisturbed, well] = multiply();
  if (well.wait().code() == Errc::unsupported) return;  // of these extents
  ASSERT_TRUE(well.wait().ok()) << well.wait().error().to_string();
  rig->inject(SilentFault::wrong_product);
  const auto [repeated, repeats] = multiply();
  ASSERT_TRUE(repeats.wait().ok()) << repeats.wait().error().to_string();
  const auto bytes = [&](const auto& ref) {
    const auto values = rig->download(ref);
    std::vector<std::byte> all(values.size() * sizeof values[0]);
    std::memcpy(all.data(), values.data(), all.size());
    return all;
  };
  EXPECT_EQ(bytes(repeated), bytes(undisturbed));
  rig->inject(SilentFault::wrong_products);
  const auto [wrong, fails] = multiply();
  EXPECT_EQ(fails.wait().code(), Errc::corrupt);
  EXPECT_NE(fails.wait().error().message.find("wrong twice"), std::string::npos)
      << fails.wait().error().message;
  EXPECT_FALSE(wrong.valid());
  (void)rig->take_error();
  const auto [behind, goes_on] = multiply();
  ASSERT_TRUE(goes_on.wait().ok()) << goes_on.wait().error().to_string();
  EXPECT_EQ(bytes(behind), bytes(undisturbed));
}

template <class A, class C, Compute compute>
void find_wrong_product(LookingRig& rig) {
  using F = detail::ScaleOf<A, compute>;
  SCOPED_TRACE(::testing::Message() << to_string(dtype_of<A>) << " to " << to_string(dtype_of<C>)
                                    << " in " << static_cast<int>(compute));
  for (const double beta : {0.0, 1.0}) {
    for (const std::int64_t n : {1, 40}) {
      expect_found(rig, [&] {
        Random random(5);
        const MatrixRef a(put(*rig, random.numbers<A>(64 * 100, Numbers::normal)), 64, 100);
        const MatrixRef b(put(*rig, random.numbers<A>(100 * n, Numbers::normal)), 100, n);
        const MatrixRef c(put(*rig, random.numbers<C>(64 * n, Numbers::normal)), 64, n);
        return std::pair(c.buffer, rig->blas().template gemm_ex<compute, A, C>(
                                       Transpose::no, Transpose::no, of_double<F>(1), a, b,
                                       of_double<F>(beta), c));
      });
    }
  }
}

TEST(DeviceProducts, OfMatricesAreDoneAgainIfTheyAreWrong) {
  LookingRig rig;
  find_wrong_product<float, float, Compute::f32>(rig);
  find_wrong_product<float, float, Compute::tf32>(rig);
  find_wrong_product<double, double, Compute::f64>(rig);
  find_wrong_product<std::complex<float>, std::complex<float>, Compute::f32>(rig);
  find_wrong_product<std::complex<double>, std::complex<double>, Compute::f64>(rig);
  find_wrong_product<Half, Half, Compute::f32>(rig);
  find_wrong_product<BFloat16, BFloat16, Compute::f32>(rig);
  find_wrong_product<BFloat16, float, Compute::f32>(rig);
  find_wrong_product<std::int8_t, std::int32_t, Compute::i32>(rig);
}

/// The last matrix of a batch is wrong.
TEST(DeviceProducts, OfBatchesAreDoneAgainIfTheyAreWrong) {
  LookingRig rig;
  expect_found(rig, [&] {
    Random random(6);
    const auto a = put(*rig, random.numbers<double>(7 * 12, Numbers::normal));
    const auto b = put(*rig, random.numbers<double>(7 * 20, Numbers::normal));
    const auto c = put(*rig, random.numbers<double>(7 * 15, Numbers::normal));
    return std::pair(c, rig->blas().gemm_batched<double>(
                            a, b, c, {.m = 3, .n = 5, .k = 4},
                            {.batch = 7, .stride_a = 12, .stride_b = 20, .stride_c = 15}, 1, 0.5));
  });
}

/// With a bias, and with C in place of D.
TEST(DeviceProducts, OfMatmulAreDoneAgainIfTheyAreWrong) {
  LookingRig rig;
  for (const bool in_place : {false, true}) {
    expect_found(rig, [&] {
      Random random(7);
      const MatrixRef a(put(*rig, random.numbers<Half>(32 * 64, Numbers::normal)), 32, 64);
      const MatrixRef b(put(*rig, random.numbers<Half>(64 * 48, Numbers::normal)), 64, 48);
      const MatrixRef c(put(*rig, random.numbers<Half>(32 * 48, Numbers::normal)), 32, 48);
      const auto d = in_place ? c : MatrixRef(rig->alloc<Half>(32 * 48), 32, 48);
      const MatmulOptions options{.epilogue = Epilogue::bias,
                                  .bias = put(*rig, random.numbers<Half>(32, Numbers::normal))};
      return std::pair(d.buffer,
                       rig->blas().matmul<Half, Half, Half, Half>(0.5f, a, b, 1.0f, c, d, options));
    });
  }
}

/// Six of seven elements in each row of a matrix are zeros.
template <class T>
CsrMatrix<T, std::int32_t> random_csr(Device& device, std::int64_t rows, std::int64_t columns) {
  Random random(8);
  std::vector<std::int32_t> begin{0}, column;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j)
      if (random.below(7) == 0) column.push_back(static_cast<std::int32_t>(j));
    begin.push_back(static_cast<std::int32_t>(column.size()));
  }
  return {rows, columns, put(device, begin), put(device, column),
          put(device, random.numbers<T>(std::ssize(column), Numbers::normal))};
}

template <class T>
void find_wrong_sparse_product(LookingRig& rig) {
  SCOPED_TRACE(to_string(dtype_of<T>));
  for (const auto transpose : kTransposes) {
    for (const double beta : {0.0, 0.5}) {
      expect_found(rig, [&] {
        const auto a = random_csr<T>(*rig, 60, 40);
        Random random(9);
        const bool plain = transpose == Transpose::no;
        const auto x = put(*rig, random.numbers<T>(plain ? 40 : 60, Numbers::normal));
        const auto y = put(*rig, random.numbers<T>(plain ? 60 : 40, Numbers::normal));
        return std::pair(
            y, rig->sparse().template spmv<T>(transpose, T(2), a, x, of_double<T>(beta), y));
      });
      expect_found(rig, [&] {
        const auto a = random_csr<T>(*rig, 60, 40);
        Random random(10);
        const bool plain = transpose == Transpose::no;
        const MatrixRef b(put(*rig, random.numbers<T>(5 * 60, Numbers::normal)), plain ? 40 : 60,
                          5);
        const MatrixRef c(put(*rig, random.numbers<T>(5 * 60, Numbers::normal)), plain ? 60 : 40,
                          5);
        return std::pair(c.buffer, rig->sparse().template spmm<T>(T(2), a, b, of_double<T>(beta), c,
                                                                  {.transpose_a = transpose}));
      });
    }
  }
}

TEST(DeviceProducts, OfSparseMatricesAreDoneAgainIfTheyAreWrong) {
  LookingRig rig;
  find_wrong_sparse_product<float>(rig);
  find_wrong_sparse_product<double>(rig);
  find_wrong_sparse_product<std::complex<float>>(rig);
  find_wrong_sparse_product<std::complex<double>>(rig);
}

const std::vector<fft::Extents> kShapes = {{1},    {2},      {3},    {64},       {97},
                                           {5, 6}, {16, 16}, {7, 9}, {4, 6, 10}, {3, 5, 7},
                                           {1, 8}, {1000},   {8, 1}, {2, 2, 2},  {1023}};
std::int64_t volume_of(const fft::Extents& extents, bool half = false) {
  std::int64_t volume = 1;
  for (std::size_t i = 0; i < extents.rank; ++i)
    volume *= half && i + 1 == extents.rank ? extents.extent[i] / 2 + 1 : extents.extent[i];
  return volume;
}

/// Each kind of transform, in place or not: calls visit(transform), which returns where its result
/// is, and the answer.
template <class T, class Visit>
void each_transform(LookingRig& rig, const fft::Extents& extents, std::int64_t batch,
                    Visit&& visit) {
  using Complex = std::complex<T>;
  const FftOptions shape{.extents = extents, .batch = batch};
  const auto full = batch * volume_of(extents), half = batch * volume_of(extents, true);
  SCOPED_TRACE(::testing::Message()
               << to_string(dtype_of<T>) << ", extents " << extents.extent[0] << " "
               << extents.extent[1] << " " << extents.extent[2] << ", batch " << batch);
  const auto put_random = [&]<class N>(N, std::int64_t count) {
    return put(*rig, Random(11).numbers<N>(count, Numbers::normal));
  };
  for (const bool in_place : {false, true}) {
    SCOPED_TRACE(in_place ? "in place" : "not in place");
    visit([&] {
      const auto x = put_random(Complex{}, full), y = in_place ? x : rig->alloc<Complex>(full);
      return std::pair(y, rig->fft().template forward<T>(x, y, shape));
    });
    visit([&] {
      const auto x = put_random(Complex{}, full), y = in_place ? x : rig->alloc<Complex>(full);
      return std::pair(y, rig->fft().template inverse<T>(x, y, shape));
    });
  }
  visit([&] {
    const auto x = put_random(T{}, full);
    const auto y = rig->alloc<Complex>(half);
    return std::pair(y, rig->fft().template real_to_complex<T>(x, y, shape));
  });
  visit([&] {
    const auto x = put_random(T{}, 2 * half);
    return std::pair(x, rig->fft().template real_to_complex_in_place<T>(x, shape));
  });
  // Half spectra, in place and not.
  const auto first = put_random(T{}, full);
  const auto first_in_place = put_random(T{}, 2 * half);
  const auto transformed = rig->alloc<Complex>(half);
  rig->fft().template real_to_complex<T>(first, transformed, shape).get();
  rig->fft().template real_to_complex_in_place<T>(first_in_place, shape).get();
  const auto spectrum = rig->download(transformed);
  const auto spectrum_in_place = rig->download(first_in_place);
  visit([&] {
    const auto x = put(*rig, spectrum);
    const auto y = rig->alloc<T>(full);
    return std::pair(y, rig->fft().template complex_to_real<T>(x, y, shape));
  });
  visit([&] {
    const auto x = put(*rig, spectrum_in_place);
    return std::pair(x, rig->fft().template complex_to_real_in_place<T>(x, shape));
  });
}

TEST(DeviceProducts, OfFourierAreNotCalledWrong) {
  LookingRig rig;
  const auto check = [&](auto&& transform) {
    const auto [result, future] = transform();
    EXPECT_TRUE(right(future));
    (void)rig->take_error();
  };
  for (const auto& extents : kShapes) {
    for (const std::int64_t batch : {1, 3}) {
      each_transform<float>(rig, extents, batch, check);
      each_transform<double>(rig, extents, batch, check);
    }
  }
}

/// What is no half of a spectrum gives numbers that depend on the engine: no one says that they are
/// wrong.
TEST(DeviceProducts, OfFourierWithoutSymmetryAreNotCalledWrong) {
  LookingRig rig;
  for (const auto& extents : kShapes) {
    const auto half = volume_of(extents, true);
    const auto x = put(*rig, Random(12).numbers<std::complex<double>>(half, Numbers::normal));
    const auto y = rig->alloc<double>(volume_of(extents));
    EXPECT_TRUE(right(rig->fft().complex_to_real<double>(x, y, {.extents = extents})));
    (void)rig->take_error();
  }
}

/// A signal that is a chirp itself, as those of radars are, and one that is constant.
TEST(DeviceProducts, OfFourierOfRegularSignalsAreNotCalledWrong) {
  LookingRig rig;
  for (const std::int64_t n : {1 << 16, 65'537, 100'000}) {
    for (const double sweep : {0.0, 1.0, -1.0}) {
      std::vector<std::complex<float>> x(static_cast<std::size_t>(n));
      for (std::int64_t k = 0; k < n; ++k) {
        const auto turn = static_cast<double>(k * k % (2 * n)) / static_cast<double>(n);
        x[static_cast<std::size_t>(k)] =
            std::complex<float>(std::polar(1.0, sweep * std::numbers::pi * turn));
      }
      const auto dx = put(*rig, x), dy = rig->alloc<std::complex<float>>(n);
      EXPECT_TRUE(right(rig->fft().forward<float>(dx, dy, {.extents = {n}})));
      EXPECT_TRUE(right(rig->fft().inverse<float>(dx, dy, {.extents = {n}})));
      (void)rig->take_error();
    }
  }
}

TEST(DeviceProducts, OfFourierAreDoneAgainIfTheyAreWrong) {
  LookingRig rig;
  const auto find = [&](auto&& transform) { expect_found(rig, transform); };
  for (const auto& extents : {fft::Extents{64}, fft::Extents{5, 6}, fft::Extents{3, 5, 7}}) {
    for (const std::int64_t batch : {1, 3}) {
      each_transform<float>(rig, extents, batch, find);
      each_transform<double>(rig, extents, batch, find);
    }
  }
}

/// Without the setting a fault that is ordered is refused, and products go on.
TEST(DeviceProducts, AreNotLookedAtUnlessAsked) {
  DeviceRig rig;
  auto& device = rig.device();
  const auto x = put(device, std::vector<double>(16, 1.0));
  const MatrixRef a(x, 4, 4);
  const MatrixRef c(device.alloc<double>(16), 4, 4);
  device.inject(SilentFault::wrong_product);
  device.blas().gemm(Transpose::no, Transpose::no, 1, a, a, 0, c).get();
  EXPECT_EQ(device.download(c.buffer), std::vector<double>(16, 4.0));
  const auto error = device.take_error();
  ASSERT_FALSE(error.ok());
  EXPECT_NE(error.error().message.find("--check products"), std::string::npos);
}

}  // namespace
}  // namespace troupe::test::products
