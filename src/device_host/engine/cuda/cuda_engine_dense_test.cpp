// The CUDA engine's vector operations, BLAS and random numbers against host loops.

#include <algorithm>
#include <cmath>
#include <limits>

#include <cuda_runtime_api.h>
#include <curand.h>

#include "cuda_engine_rig.hpp"

namespace troupe::host {
namespace {

template <class T>
class CudaReals : public CudaEngine {};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(CudaReals, Reals);

TYPED_TEST(CudaReals, MultipliesAndDivides) {
  using T = TypeParam;
  for (const std::size_t n : {0u, 1u, 3u, 1000u, 1000003u}) {
    for (const std::uint64_t skew : {std::size_t{0}, sizeof(T)}) {
      this->used_ = 0;
      const auto x = random_values<T>(n, 1), y = random_values<T>(n, 2, 0.5, 2);
      std::vector<T> product(n), quotient(n);
      for (std::size_t i = 0; i < n; ++i) {
        product[i] = x[i] * y[i];
        quotient[i] = x[i] / y[i];
      }
      const auto dx = this->put(x, skew), dy = this->put(y);
      const auto dz = this->space(n * sizeof(T));
      const auto length = static_cast<std::int64_t>(n);
      this->run(vectors::Multiply{dtype_of<T>, length, dx, dy, dz});
      EXPECT_EQ(this->template get<T>(dz), product);
      this->run(vectors::Divide{dtype_of<T>, length, dx, dy, dx});  // in place
      EXPECT_EQ(this->template get<T>(dx), quotient);
    }
  }
}

TYPED_TEST(CudaReals, AxpbyTakesFactorsFromEverywhere) {
  using T = TypeParam;
  constexpr std::size_t kLength = 10001;
  const auto x = random_values<T>(kLength, 1), y = random_values<T>(kLength, 2);
  for (const bool alpha_there : {false, true}) {
    for (const bool beta_there : {false, true}) {
      this->used_ = 0;
      std::vector<T> wanted(kLength);
      for (std::size_t i = 0; i < kLength; ++i) wanted[i] = T(1.5) * x[i] + T(-0.25) * y[i];
      const auto dx = this->put(x), dy = this->put(y);
      this->run(vectors::Axpby{dtype_of<T>, kLength, this->template scalar<T>(1.5, alpha_there),
                               this->template scalar<T>(-0.25, beta_there), dx, dy});
      expect_near(this->template get<T>(dy), wanted);
    }
  }
  // beta = 0 by value: y is not read.
  const auto dx = this->put(x);
  const auto dy = this->put(std::vector<T>(kLength, std::numeric_limits<T>::quiet_NaN()));
  this->run(vectors::Axpby{dtype_of<T>, kLength, Scalar::of(T(1)), Scalar::of(T(0)), dx, dy});
  EXPECT_EQ(this->template get<T>(dy), x);
}

TYPED_TEST(CudaReals, BlasLevelOne) {
  using T = TypeParam;
  constexpr std::size_t kLength = 5001;
  const auto x = random_values<T>(kLength, 3), y = random_values<T>(kLength, 4);
  double dot = 0, square = 0;
  for (std::size_t i = 0; i < kLength; ++i) {
    dot += double(x[i]) * double(y[i]);
    square += double(x[i]) * double(x[i]);
  }
  const auto dx = this->put(x), dy = this->put(y), result = this->space(sizeof(T));
  this->run(blas::Dot{dtype_of<T>, kLength, 1, 1, dx, dy, result});
  EXPECT_NEAR(this->template get<T>(result)[0], dot, tolerance<T>() * 100);
  this->run(blas::Nrm2{dtype_of<T>, kLength, 1, dx, result});
  EXPECT_NEAR(this->template get<T>(result)[0], std::sqrt(square), tolerance<T>() * 100);
  this->run(blas::Dot{dtype_of<T>, 0, 1, 1, dx, dy, result});
  EXPECT_EQ(this->template get<T>(result)[0], T(0));

  for (const bool there : {true, false, true}) {
    const auto target = this->put(y);
    std::vector<T> wanted(kLength);
    for (std::size_t i = 0; i < kLength; ++i) wanted[i] = T(0.75) * x[i] + y[i];
    this->run(
        blas::Axpy{dtype_of<T>, kLength, 1, 1, this->template scalar<T>(0.75, there), dx, target});
    expect_near(this->template get<T>(target), wanted);
    for (auto& v : wanted) v *= T(-2);
    this->run(blas::Scal{dtype_of<T>, kLength, 1, this->template scalar<T>(-2, there), target});
    expect_near(this->template get<T>(target), wanted);
  }
  const auto strided = this->put(std::vector<T>(2 * kLength, T(7)));
  this->run(blas::Copy{dtype_of<T>, kLength, 1, 2, dx, strided});
  const auto copied = this->template get<T>(strided);
  for (std::size_t i = 0; i < kLength; ++i) {
    ASSERT_EQ(copied[2 * i], x[i]);
    ASSERT_EQ(copied[2 * i + 1], T(7));
  }
}

TYPED_TEST(CudaReals, GemvAndGemmWithMixedFactors) {
  using T = TypeParam;
  constexpr std::size_t kM = 37, kN = 29, kK = 41;
  const auto at = [](const std::vector<T>& a, std::size_t rows, blas::Transpose t, std::size_t i,
                     std::size_t j) {
    return double(t == blas::Transpose::no ? a[i + j * rows] : a[j + i * rows]);
  };
  const auto no = blas::Transpose::no, yes = blas::Transpose::yes;
  for (int mix = 0; mix < 4; ++mix) {
    const bool alpha_there = mix & 1, beta_there = mix & 2;
    for (const auto ta : {no, yes}) {
      this->used_ = 0;
      const auto a = random_values<T>(kM * kN, 5);
      const std::size_t in = ta == no ? kN : kM, out = ta == no ? kM : kN;
      const auto x = random_values<T>(in, 6), y = random_values<T>(out, 7);
      std::vector<T> wanted(out);
      for (std::size_t i = 0; i < out; ++i) {
        double sum = 0;
        for (std::size_t j = 0; j < in; ++j) sum += at(a, kM, ta, i, j) * double(x[j]);
        wanted[i] = static_cast<T>(1.5 * sum - 0.5 * double(y[i]));
      }
      const auto da = this->put(a), dx = this->put(x), dy = this->put(y);
      this->run(blas::Gemv{dtype_of<T>, ta, 0, kM, kN, kM, 1, 1,
                           this->template scalar<T>(1.5, alpha_there),
                           this->template scalar<T>(-0.5, beta_there), da, dx, dy});
      expect_near(this->template get<T>(dy), wanted);

      for (const auto tb : {no, yes}) {
        this->used_ = 0;
        const std::size_t lda = ta == no ? kM : kK, ldb = tb == no ? kK : kN;
        const auto ga = random_values<T>(kM * kK, 8), gb = random_values<T>(kK * kN, 9),
                   gc = random_values<T>(kM * kN, 10);
        std::vector<T> product(kM * kN);
        for (std::size_t i = 0; i < kM; ++i) {
          for (std::size_t j = 0; j < kN; ++j) {
            double sum = 0;
            for (std::size_t k = 0; k < kK; ++k) {
              sum += at(ga, lda, ta, i, k) * at(gb, ldb, tb, k, j);
            }
            product[i + j * kM] = static_cast<T>(1.5 * sum - 0.5 * double(gc[i + j * kM]));
          }
        }
        const auto dga = this->put(ga), dgb = this->put(gb), dgc = this->put(gc);
        this->run(blas::Gemm{dtype_of<T>, ta, tb, kM, kN, kK, static_cast<std::int64_t>(lda),
                             static_cast<std::int64_t>(ldb), kM,
                             this->template scalar<T>(1.5, alpha_there),
                             this->template scalar<T>(-0.5, beta_there), dga, dgb, dgc});
        expect_near(this->template get<T>(dgc), product);
      }
    }
  }
  // Empty matrices do nothing; an empty inner dimension scales.
  const auto c = this->put(std::vector<T>{1, 2, 3, 4});
  this->run(blas::Gemm{dtype_of<T>, no, no, 0, 0, 0, 0, 0, 0, Scalar::of(T(1)), Scalar::of(T(0)), c,
                       c, c});
  this->run(blas::Gemm{dtype_of<T>, no, no, 2, 2, 0, 2, 0, 2, Scalar::of(T(1)), Scalar::of(T(3)), c,
                       c, c});
  EXPECT_EQ(this->template get<T>(c), (std::vector<T>{3, 6, 9, 12}));
}

TYPED_TEST(CudaReals, RandomNumbersAreAFunctionOfTheirPlace) {
  using T = TypeParam;
  constexpr std::size_t kLength = 200000;
  const auto out = this->space(kLength * sizeof(T));
  const auto uniform = [&](std::uint64_t seed, std::uint64_t subsequence, std::uint64_t offset) {
    this->run(rng::Uniform{dtype_of<T>, kLength, seed, subsequence, offset, out});
    return this->template get<T>(out);
  };
  const auto first = uniform(1, 0, 0);
  double sum = 0, square = 0;
  for (const auto v : first) {
    ASSERT_TRUE(v > 0 && v <= 1);
    sum += double(v);
    square += double(v) * double(v);
  }
  EXPECT_NEAR(sum / kLength, 0.5, 0.005);
  EXPECT_NEAR(square / kLength, 1.0 / 3, 0.005);
  EXPECT_NE(uniform(1, 1, 0), first);
  EXPECT_NE(uniform(2, 0, 0), first);
  EXPECT_NE(uniform(1, 0, 4), first);
  // Whatever was generated in between, and in pieces of any length.
  this->run(rng::Uniform{dtype_of<T>, 13, 1, 0, 0, out});
  EXPECT_EQ(uniform(1, 0, 0), first);
  this->run(rng::Uniform{dtype_of<T>, 1000, 1, 0, 0, out});
  const auto shorter = this->template get<T>(out);
  EXPECT_TRUE(std::equal(shorter.begin(), shorter.begin() + 1000, first.begin()));

  const auto normal = [&] {
    this->run(rng::Normal{dtype_of<T>, kLength, 3, 2, 0, 2, 0.5, out});
    return this->template get<T>(out);
  };
  const auto numbers = normal();
  sum = square = 0;
  for (const auto v : numbers) sum += double(v);
  for (const auto v : numbers) square += (double(v) - 2) * (double(v) - 2);
  EXPECT_NEAR(sum / kLength, 2, 0.01);
  EXPECT_NEAR(square / kLength, 0.25, 0.01);
  EXPECT_EQ(normal(), numbers);
}

/// cuRAND's own generator on the device, which the engine's kernels repeat.
class HostGenerator {
 public:
  HostGenerator(std::uint64_t seed, std::uint64_t position) {
    check(curandCreateGenerator(&generator_, CURAND_RNG_PSEUDO_PHILOX4_32_10) ==
                  CURAND_STATUS_SUCCESS &&
              curandSetPseudoRandomGeneratorSeed(generator_, seed) == CURAND_STATUS_SUCCESS &&
              curandSetGeneratorOffset(generator_, position) == CURAND_STATUS_SUCCESS,
          "cuRAND's generator");
  }
  ~HostGenerator() { curandDestroyGenerator(generator_); }
  template <class T>
  std::vector<T> uniform(std::size_t n) const {
    return fetch<T>(n, [&](T* to) {
      if constexpr (sizeof(T) == 4) return curandGenerateUniform(generator_, to, n);
      if constexpr (sizeof(T) == 8) return curandGenerateUniformDouble(generator_, to, n);
    });
  }
  std::vector<std::uint32_t> bits(std::size_t n) const {
    return fetch<std::uint32_t>(
        n, [&](std::uint32_t* to) { return curandGenerate(generator_, to, n); });
  }
  template <class T>
  std::vector<T> normal(std::size_t n, T mean, T deviation) const {
    return fetch<T>(n, [&](T* to) {
      if constexpr (sizeof(T) == 4) return curandGenerateNormal(generator_, to, n, mean, deviation);
      if constexpr (sizeof(T) == 8)
        return curandGenerateNormalDouble(generator_, to, n, mean, deviation);
    });
  }

 private:
  template <class T, class Generate>
  static std::vector<T> fetch(std::size_t n, Generate generate) {
    T* device = nullptr;
    std::vector<T> values(n);
    check(cudaMalloc(&device, n * sizeof(T)) == cudaSuccess, "memory");
    const bool made =
        generate(device) == CURAND_STATUS_SUCCESS &&
        cudaMemcpy(values.data(), device, n * sizeof(T), cudaMemcpyDefault) == cudaSuccess;
    cudaFree(device);
    check(made, "cuRAND's numbers");
    return values;
  }
  curandGenerator_t generator_ = nullptr;
};

TYPED_TEST(CudaReals, RandomNumbersAreThoseOfCurandsGeneratorBitForBit) {
  using T = TypeParam;
  // Beyond 4 x 65536 numbers the streams are visited a second time.
  for (const std::uint64_t position : {0ull, 2ull, 6ull, 262142ull, 262144ull, 1000002ull,
                                       (3ull << 40) + 17 * 4, (9ull << 40) + 12345678ull}) {
    for (const std::size_t n : {2ul, 4ul, 1002ul, 600006ul}) {
      SCOPED_TRACE(std::to_string(n) + " at " + std::to_string(position));
      const auto subsequence = position / rng::kSubsequenceStride;
      const auto offset = position % rng::kSubsequenceStride;
      this->used_ = 0;
      const auto out = this->space(n * sizeof(T));
      this->run(
          rng::Uniform{dtype_of<T>, static_cast<std::int64_t>(n), 77, subsequence, offset, out});
      EXPECT_EQ(this->template get<T>(out), HostGenerator(77, position).template uniform<T>(n));
      this->run(rng::Normal{dtype_of<T>, static_cast<std::int64_t>(n), 77, subsequence, offset, 0.1,
                            1.7, out});
      EXPECT_EQ(this->template get<T>(out),
                HostGenerator(77, position).template normal<T>(n, T(0.1), T(1.7)));
    }
  }
  // Uniform numbers may begin and end anywhere in a group of four.
  for (const std::uint64_t position : {1, 3, 5}) {
    this->used_ = 0;
    const auto out = this->space(1003 * sizeof(T));
    this->run(rng::Uniform{dtype_of<T>, 1003, 5, 0, position, out});
    EXPECT_EQ(this->template get<T>(out), HostGenerator(5, position).template uniform<T>(1003));
  }
}

TEST_F(CudaEngine, RandomBitsAreThoseOfCurandsGenerator) {
  for (const std::uint64_t position : {0, 3, 262143}) {
    used_ = 0;
    const auto out = space(600006 * sizeof(std::uint32_t));
    run(rng::Bits{DType::u32, 600006, 77, 0, position, out});
    EXPECT_EQ(get<std::uint32_t>(out), HostGenerator(77, position).bits(600006));
  }
}

TEST_F(CudaEngine, OffsetSkipsNumbersOfTheSequence) {
  const auto out = space(1000 * sizeof(float));
  run(rng::Uniform{DType::f32, 1000, 5, 0, 0, out});
  const auto whole = get<float>(out);
  run(rng::Uniform{DType::f32, 900, 5, 0, 100, out});
  const auto rest = get<float>(out);
  EXPECT_TRUE(std::equal(whole.begin() + 100, whole.end(), rest.begin()));
}

}  // namespace
}  // namespace troupe::host
