#include "call.hpp"

namespace troupe::judge {
namespace {

template <class T>
void add_for_narrow_too(Runs& runs) {
  using F = ScalarTypeOf<T>;
  const auto add = calls_of<T>(runs, [](Device& device) { return device.blas(); });
  add("axpy", [](Call& c, auto blas) {
    blas.axpy(c.factor<F>("alpha"), c.vector<T>("x"), c.vector<T>("y")).get();
  });
  add("scal", [](Call& c, auto blas) { blas.scal(c.factor<F>("alpha"), c.vector<T>("x")).get(); });
  add("dot", [](Call& c, auto blas) {
    blas.dot(c.vector<T>("x"), c.vector<T>("y"), c.buffer<T>("result")).get();
  });
  add("nrm2",
      [](Call& c, auto blas) { blas.nrm2(c.vector<T>("x"), c.buffer<RealOf<T>>("result")).get(); });
}

template <class T>
void add_for_numbers(Runs& runs) {
  using R = RealOf<T>;
  const auto add = calls_of<T>(runs, [](Device& device) { return device.blas(); });
  add("asum", [](Call& c, auto blas) { blas.asum(c.vector<T>("x"), c.buffer<R>("result")).get(); });
  add("iamax", [](Call& c, auto blas) {
    blas.iamax(c.vector<T>("x"), c.buffer<std::int64_t>("result")).get();
  });
  add("iamin", [](Call& c, auto blas) {
    blas.iamin(c.vector<T>("x"), c.buffer<std::int64_t>("result")).get();
  });
  add("copy", [](Call& c, auto blas) { blas.copy(c.vector<T>("x"), c.vector<T>("y")).get(); });
  add("swap", [](Call& c, auto blas) { blas.swap(c.vector<T>("x"), c.vector<T>("y")).get(); });
  add("rot", [](Call& c, auto blas) {
    blas.rot(c.vector<T>("x"), c.vector<T>("y"), c.factor<R>("c"), c.factor<T>("s")).get();
  });
  add("rotg", [](Call& c, auto blas) {
    blas.template rotg<T>(c.buffer<T>("a"), c.buffer<T>("b"), c.buffer<R>("c"), c.buffer<T>("s"))
        .get();
  });
  if constexpr (ComplexElement<T>) {
    add("dotc", [](Call& c, auto blas) {
      blas.dotc(c.vector<T>("x"), c.vector<T>("y"), c.buffer<T>("result")).get();
    });
    add("scal_real",
        [](Call& c, auto blas) { blas.scal_real(c.factor<R>("alpha"), c.vector<T>("x")).get(); });
    add("rot_real", [](Call& c, auto blas) {
      blas.rot_real(c.vector<T>("x"), c.vector<T>("y"), c.factor<R>("c"), c.factor<R>("s")).get();
    });
  } else {
    add("rotm", [](Call& c, auto blas) {
      blas.rotm(c.vector<T>("x"), c.vector<T>("y"), c.buffer<T>("param")).get();
    });
    add("rotmg", [](Call& c, auto blas) {
      blas.template rotmg<T>(c.buffer<T>("d1"), c.buffer<T>("d2"), c.buffer<T>("x1"),
                             c.buffer<T>("y1"), c.buffer<T>("param"))
          .get();
    });
  }
}

}  // namespace

void add_level1(Runs& runs) {
  for_types<Half, BFloat16, float, double, std::complex<float>, std::complex<double>>(
      [&runs]<class T>(T) { add_for_narrow_too<T>(runs); });
  for_numbers([&runs]<class T>(T) { add_for_numbers<T>(runs); });
}

}  // namespace troupe::judge
