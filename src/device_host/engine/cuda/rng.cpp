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

Result<void> CudaEngine::open_rng(Queue queue) {
  auto& state = rng(queue);
  TROUPE_CUDA_TRY(curandCreateGenerator(state.generator.out(), CURAND_RNG_PSEUDO_PHILOX4_32_10));
  TROUPE_CUDA_TRY(curandSetStream(state.generator.get(), stream(queue)));
  state.seed.reset();
  return {};
}

/// Puts the generator where the numbers start. The position is absolute and set every time: where a
/// call leaves it depends on type and length, so only so is a number a function of seed,
/// subsequence, offset and index.
Result<curandGenerator_t> CudaEngine::seek(Queue queue, std::uint64_t seed,
                                           std::uint64_t subsequence, std::uint64_t offset) {
  enter();
  auto& state = rng(queue);
  check(static_cast<bool>(state.generator), "the rng lane is not open");
  const auto generator = state.generator.get();
  if (state.seed != seed) {
    state.seed.reset();
    TROUPE_CUDA_TRY(curandSetPseudoRandomGeneratorSeed(generator, seed));
    state.seed = seed;
  }
  TROUPE_CUDA_TRY(
      curandSetGeneratorOffset(generator, subsequence * troupe::rng::kSubsequenceStride + offset));
  return generator;
}

Result<void> CudaEngine::run(const rng::Uniform& op, const Call& call) {
  if (op.n == 0) return {};
  const auto generator = seek(call.queue(), op.seed, op.subsequence, op.offset);
  if (!generator) return generator.error();
  return for_real(op.dtype, [&]<class T>(T) -> Result<void> {
    TROUPE_CUDA_TRY(
        generate_uniform(*generator, call.at<T>(op.destination), static_cast<std::size_t>(op.n)));
    return {};
  });
}

Result<void> CudaEngine::run(const rng::Normal& op, const Call& call) {
  if (op.n == 0) return {};
  const auto generator = seek(call.queue(), op.seed, op.subsequence, op.offset);
  if (!generator) return generator.error();
  return for_real(op.dtype, [&]<class T>(T) -> Result<void> {
    TROUPE_CUDA_TRY(generate_normal(*generator, call.at<T>(op.destination),
                                    static_cast<std::size_t>(op.n), op.mean, op.deviation));
    return {};
  });
}

}  // namespace troupe::host::cuda
