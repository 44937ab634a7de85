#include "lib/rng/random_cpu.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "lib/rng/philox.hpp"
#include "lib/rng/sequences/curand_library.hpp"

namespace troupe::host::cpu {

namespace {

using rng_numbers::Curand;
using rng_numbers::curand;

void require(Curand::Status status, const char* what) {
  if (status != Curand::kSuccess) throw Exception({Errc::library, status, what});
}

}  // namespace

struct Random::Generator {
  Curand::Handle handle = nullptr;
  Generator() {
    require(curand().create_host(&handle, Curand::kPhilox), "curandCreateGeneratorHost");
  }
  ~Generator() { curand().destroy(handle); }
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;
  void seek(const RandomRange& range) const {
    require(curand().set_seed(handle, range.seed), "curandSetPseudoRandomGeneratorSeed");
    require(curand().set_offset(handle, range.position), "curandSetGeneratorOffset");
  }
};

Random::Generator& Random::at(const RandomRange& range) {
  if (!generator_) generator_ = std::make_unique<Generator>();
  generator_->seek(range);
  return *generator_;
}

void Random::bits(const RandomRange& range, std::uint32_t* destination) {
  if (range.n <= 0) return;
  if (!curand().loaded) return Philox(range.seed, range.position).bits(destination, range.n);
  require(curand().bits(at(range).handle, destination, static_cast<std::size_t>(range.n)),
          "curandGenerate");
}

template <class T>
void Random::uniform(const RandomRange& range, T* destination) {
  if (range.n <= 0) return;
  if (!curand().loaded) return Philox(range.seed, range.position).uniform(destination, range.n);
  const auto handle = at(range).handle;
  const auto n = static_cast<std::size_t>(range.n);
  if constexpr (std::is_same_v<T, float>) {
    require(curand().uniform_f32(handle, destination, n), "curandGenerateUniform");
  } else {
    require(curand().uniform_f64(handle, destination, n), "curandGenerateUniformDouble");
  }
}

template <class T>
void Random::normal(const RandomRange& range, T mean, T deviation, T* destination) {
  if (range.n <= 0) return;
  if (!curand().loaded)
    return Philox(range.seed, range.position).normal(destination, range.n, mean, deviation);
  const auto handle = at(range).handle;
  const auto n = static_cast<std::size_t>(range.n);
  if constexpr (std::is_same_v<T, float>) {
    require(curand().normal_f32(handle, destination, n, mean, deviation), "curandGenerateNormal");
  } else {
    require(curand().normal_f64(handle, destination, n, mean, deviation),
            "curandGenerateNormalDouble");
  }
}

template <class T>
void Random::log_normal(const RandomRange& range, T mean, T deviation, T* destination) {
  if (range.n <= 0) return;
  const auto n = static_cast<std::size_t>(range.n);
  if (!curand().loaded) {
    Philox(range.seed, range.position).normal(destination, range.n, mean, deviation);
    std::for_each(destination, destination + n, [](T& value) { value = std::exp(value); });
    return;
  }
  const auto handle = at(range).handle;
  if constexpr (std::is_same_v<T, float>) {
    require(curand().log_normal_f32(handle, destination, n, mean, deviation),
            "curandGenerateLogNormal");
  } else {
    require(curand().log_normal_f64(handle, destination, n, mean, deviation),
            "curandGenerateLogNormalDouble");
  }
}

std::string random_library() {
  int version = 0;
  if (!curand().loaded || curand().get_version(&version) != Curand::kSuccess)
    return "own Philox4x32-10";
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 100) + "." +
         std::to_string(version % 100);
}

const void* random_symbol() {
  return reinterpret_cast<const void*>(curand().get_version);
}

Random::Random() = default;
Random::~Random() = default;

template void Random::uniform(const RandomRange&, float*);
template void Random::uniform(const RandomRange&, double*);
template void Random::normal(const RandomRange&, float, float, float*);
template void Random::normal(const RandomRange&, double, double, double*);
template void Random::log_normal(const RandomRange&, float, float, float*);
template void Random::log_normal(const RandomRange&, double, double, double*);

}  // namespace troupe::host::cpu
