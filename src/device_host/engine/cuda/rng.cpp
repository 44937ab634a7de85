#include "device_host/engine/cuda/cuda_engine.hpp"
#include "device_host/engine/cuda/factors.hpp"
#include "device_host/engine/cuda/status.hpp"

namespace troupe::host::cuda {
namespace {

curandStatus_t generate_uniform(curandGenerator_t generator, float* out, std::size_t n) {
  return curandGenerateUniform(generator, out, n);
}
curandStatus_t generate_uniform(curandGenerator_t generator, double* out, std::size_t n) {
  return curandGenerateUniformDouble(generator, out, n);
}
curandStatus_t generate_normal(curandGenerator_t generator, float* out, std::size_t n, double mean,
                               double deviation) {
  return curandGenerateNormal(generator, out, n, static_cast<float>(mean),
                              static_cast<float>(deviation));
}
curandStatus_t generate_normal(curandGenerator_t generator, double* out, std::size_t n, double mean,
                               double deviation) {
  return curandGenerateNormalDouble(generator, out, n, mean, deviation);
}

}  // namespace

Result<void> CudaEngine::open_rng() {
  TROUPE_CUDA_TRY(curandCreateGenerator(rng_.generator.out(), CURAND_RNG_PSEUDO_PHILOX4_32_10));
  TROUPE_CUDA_TRY(curandSetStream(rng_.generator.get(), stream(Lane::rng)));
  rng_.seed.reset();
  return {};
}

/// Puts the generator where the numbers start. The position is absolute and set every time: where a
/// call leaves it depends on type and length, so only so is a number a function of seed,
/// subsequence, offset and index.
Result<void> CudaEngine::seek(std::uint64_t seed, std::uint64_t subsequence, std::uint64_t offset) {
  enter();
  check(static_cast<bool>(rng_.generator), "the rng lane is not open");
  if (rng_.seed != seed) {
    rng_.seed.reset();
    TROUPE_CUDA_TRY(curandSetPseudoRandomGeneratorSeed(rng_.generator.get(), seed));
    rng_.seed = seed;
  }
  TROUPE_CUDA_TRY(curandSetGeneratorOffset(rng_.generator.get(),
                                           subsequence * rng::kSubsequenceStride + offset));
  return {};
}

Result<void> CudaEngine::run(const rng::Uniform& op, const Call& call) {
  if (op.n == 0) return {};
  TROUPE_CUDA_PROPAGATE(seek(op.seed, op.subsequence, op.offset));
  return for_real(op.dtype, [&]<class T>(T) -> Result<void> {
    TROUPE_CUDA_TRY(generate_uniform(rng_.generator.get(), call.at<T>(op.destination),
                                     static_cast<std::size_t>(op.n)));
    return {};
  });
}

Result<void> CudaEngine::run(const rng::Normal& op, const Call& call) {
  if (op.n == 0) return {};
  TROUPE_CUDA_PROPAGATE(seek(op.seed, op.subsequence, op.offset));
  return for_real(op.dtype, [&]<class T>(T) -> Result<void> {
    TROUPE_CUDA_TRY(generate_normal(rng_.generator.get(), call.at<T>(op.destination),
                                    static_cast<std::size_t>(op.n), op.mean, op.deviation));
    return {};
  });
}

}  // namespace troupe::host::cuda
