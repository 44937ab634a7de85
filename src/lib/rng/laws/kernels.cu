#include "device_host/engine/cuda/launch.cuh"
#include "lib/rng/kernels.cuh"
#include "lib/rng/laws/laws.hpp"

// One thread makes a number by itself, of the words that belong to its place.

namespace troupe::host::cuda::kernels {
namespace {

using namespace rng_numbers;

template <class Law, class T>
__global__ void draw_kernel(std::uint64_t seed, std::uint64_t position, std::uint64_t n, Law law,
                            T* destination) {
  for (auto i = first_index(); i < n; i += index_step()) {
    Draw numbers(seed, position + i);
    destination[i] = static_cast<T>(law(numbers));
  }
}

}  // namespace

cudaError_t preload_laws() {
  using std::uint32_t;
  return load_all(draw_kernel<ExponentialLaw, float>, draw_kernel<ExponentialLaw, double>,
                  draw_kernel<CauchyLaw, float>, draw_kernel<CauchyLaw, double>,
                  draw_kernel<GammaLaw, float>, draw_kernel<GammaLaw, double>,
                  draw_kernel<BetaLaw, float>, draw_kernel<BetaLaw, double>,
                  draw_kernel<PoissonLaw, uint32_t>, draw_kernel<BinomialLaw, uint32_t>,
                  draw_kernel<DiscreteLaw, uint32_t>);
}

template <class Law, class T>
cudaError_t draw(const Launch& launch, const RandomRange& range, const Law& law, T* destination) {
  if (range.n <= 0) return cudaSuccess;
  const auto n = static_cast<std::uint64_t>(range.n);
  return queue(launch, n, draw_kernel<Law, T>, range.seed, range.position, n, law, destination);
}

template cudaError_t draw(const Launch&, const RandomRange&, const ExponentialLaw&, float*);
template cudaError_t draw(const Launch&, const RandomRange&, const ExponentialLaw&, double*);
template cudaError_t draw(const Launch&, const RandomRange&, const CauchyLaw&, float*);
template cudaError_t draw(const Launch&, const RandomRange&, const CauchyLaw&, double*);
template cudaError_t draw(const Launch&, const RandomRange&, const GammaLaw&, float*);
template cudaError_t draw(const Launch&, const RandomRange&, const GammaLaw&, double*);
template cudaError_t draw(const Launch&, const RandomRange&, const BetaLaw&, float*);
template cudaError_t draw(const Launch&, const RandomRange&, const BetaLaw&, double*);
template cudaError_t draw(const Launch&, const RandomRange&, const PoissonLaw&, std::uint32_t*);
template cudaError_t draw(const Launch&, const RandomRange&, const BinomialLaw&, std::uint32_t*);
template cudaError_t draw(const Launch&, const RandomRange&, const DiscreteLaw&, std::uint32_t*);

}  // namespace troupe::host::cuda::kernels
