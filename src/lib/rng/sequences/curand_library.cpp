#include "lib/rng/sequences/curand_library.hpp"

#include <dlfcn.h>

namespace troupe::host::rng_numbers {

namespace {

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

}  // namespace

Curand::Curand() {
  void* library = ::dlopen("libcurand.so.10", RTLD_NOW | RTLD_LOCAL);
#ifdef TROUPE_CURAND_LIBRARY  // where the build has found one
  if (library == nullptr) library = ::dlopen(TROUPE_CURAND_LIBRARY, RTLD_NOW | RTLD_LOCAL);
#endif
  if (library == nullptr) {
    why = ::dlerror();
    return;
  }
  loaded = find(library, "curandCreateGeneratorHost", create_host) &&
           find(library, "curandCreateGenerator", create) &&
           find(library, "curandDestroyGenerator", destroy) &&
           find(library, "curandSetStream", set_stream) &&
           find(library, "curandSetGeneratorOrdering", set_ordering) &&
           find(library, "curandSetQuasiRandomGeneratorDimensions", set_dimensions) &&
           find(library, "curandSetPseudoRandomGeneratorSeed", set_seed) &&
           find(library, "curandSetGeneratorOffset", set_offset) &&
           find(library, "curandGenerate", bits) &&
           find(library, "curandGenerateLongLong", wide_bits) &&
           find(library, "curandGenerateUniform", uniform_f32) &&
           find(library, "curandGenerateUniformDouble", uniform_f64) &&
           find(library, "curandGenerateNormal", normal_f32) &&
           find(library, "curandGenerateNormalDouble", normal_f64) &&
           find(library, "curandGenerateLogNormal", log_normal_f32) &&
           find(library, "curandGenerateLogNormalDouble", log_normal_f64) &&
           find(library, "curandGeneratePoisson", poisson) &&
           find(library, "curandGetVersion", get_version);
  if (!loaded) why = "it lacks a function";
}

const Curand& curand() {
  static const Curand library;
  return library;
}

}  // namespace troupe::host::rng_numbers
