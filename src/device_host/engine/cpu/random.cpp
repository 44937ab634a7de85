#include "device_host/engine/cpu/random.hpp"

#ifdef TROUPE_HAVE_CURAND
#include <curand.h>
#include <dlfcn.h>
#endif

#include <type_traits>

#include "device_host/engine/cpu/philox.hpp"

namespace troupe::host::cpu {

#ifdef TROUPE_HAVE_CURAND

namespace {

/// The part of libcurand that is used. Loaded, not linked: this engine runs where there is no CUDA.
struct Curand {
  decltype(&::curandCreateGeneratorHost) create = nullptr;
  decltype(&::curandDestroyGenerator) destroy = nullptr;
  decltype(&::curandSetPseudoRandomGeneratorSeed) set_seed = nullptr;
  decltype(&::curandSetGeneratorOffset) set_offset = nullptr;
  decltype(&::curandGenerateUniform) uniform_f32 = nullptr;
  decltype(&::curandGenerateUniformDouble) uniform_f64 = nullptr;
  decltype(&::curandGenerateNormal) normal_f32 = nullptr;
  decltype(&::curandGenerateNormalDouble) normal_f64 = nullptr;
  decltype(&::curandGetVersion) get_version = nullptr;
  bool loaded = false;

  Curand() {
    void* library = ::dlopen("libcurand.so.10", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) library = ::dlopen(TROUPE_CURAND_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return;
    loaded = find(library, "curandCreateGeneratorHost", create) &&
             find(library, "curandDestroyGenerator", destroy) &&
             find(library, "curandSetPseudoRandomGeneratorSeed", set_seed) &&
             find(library, "curandSetGeneratorOffset", set_offset) &&
             find(library, "curandGenerateUniform", uniform_f32) &&
             find(library, "curandGenerateUniformDouble", uniform_f64) &&
             find(library, "curandGenerateNormal", normal_f32) &&
             find(library, "curandGenerateNormalDouble", normal_f64) &&
             find(library, "curandGetVersion", get_version);
  }
  template <class Function>
  static bool find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(library, name));
    return function != nullptr;
  }
};

const Curand& curand() {
  static const Curand library;  // stays loaded: its threads and handlers do not survive unloading
  return library;
}

void require(::curandStatus_t status, const char* what) {
  if (status != CURAND_STATUS_SUCCESS) throw Exception({Errc::library, status, what});
}

}  // namespace

struct Random::Generator {
  ::curandGenerator_t handle = nullptr;
  Generator() {
    require(curand().create(&handle, CURAND_RNG_PSEUDO_PHILOX4_32_10), "curandCreateGeneratorHost");
  }
  ~Generator() { curand().destroy(handle); }
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;
  void seek(const RandomRange& range) const {
    require(curand().set_seed(handle, range.seed), "curandSetPseudoRandomGeneratorSeed");
    require(curand().set_offset(handle, range.position), "curandSetGeneratorOffset");
  }
};

template <class T>
void Random::uniform(const RandomRange& range, T* destination) {
  if (range.n <= 0) return;
  if (!curand().loaded) return Philox(range.seed, range.position).uniform(destination, range.n);
  if (!generator_) generator_ = std::make_unique<Generator>();
  generator_->seek(range);
  const auto n = static_cast<std::size_t>(range.n);
  if constexpr (std::is_same_v<T, float>) {
    require(curand().uniform_f32(generator_->handle, destination, n), "curandGenerateUniform");
  } else {
    require(curand().uniform_f64(generator_->handle, destination, n),
            "curandGenerateUniformDouble");
  }
}

template <class T>
void Random::normal(const RandomRange& range, T mean, T deviation, T* destination) {
  if (range.n <= 0) return;
  if (!curand().loaded)
    return Philox(range.seed, range.position).normal(destination, range.n, mean, deviation);
  if (!generator_) generator_ = std::make_unique<Generator>();
  generator_->seek(range);
  const auto n = static_cast<std::size_t>(range.n);
  if constexpr (std::is_same_v<T, float>) {
    require(curand().normal_f32(generator_->handle, destination, n, mean, deviation),
            "curandGenerateNormal");
  } else {
    require(curand().normal_f64(generator_->handle, destination, n, mean, deviation),
            "curandGenerateNormalDouble");
  }
}

std::string random_library() {
  int version = 0;
  if (!curand().loaded || curand().get_version(&version) != CURAND_STATUS_SUCCESS)
    return "own Philox4x32-10";
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 100) + "." +
         std::to_string(version % 100);
}

#else

struct Random::Generator {};

template <class T>
void Random::uniform(const RandomRange& range, T* destination) {
  Philox(range.seed, range.position).uniform(destination, range.n);
}

template <class T>
void Random::normal(const RandomRange& range, T mean, T deviation, T* destination) {
  Philox(range.seed, range.position).normal(destination, range.n, mean, deviation);
}

std::string random_library() {
  return "own Philox4x32-10";
}

#endif

Random::Random() = default;
Random::~Random() = default;

template void Random::uniform(const RandomRange&, float*);
template void Random::uniform(const RandomRange&, double*);
template void Random::normal(const RandomRange&, float, float, float*);
template void Random::normal(const RandomRange&, double, double, double*);

}  // namespace troupe::host::cpu
