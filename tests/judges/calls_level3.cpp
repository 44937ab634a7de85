#include "call.hpp"

namespace troupe::judge {
namespace {

template <class T>
void add_gemm(Runs& runs) {
  using F = ScalarTypeOf<T>;
  const auto add = calls_of<T>(runs, [](Device& device) { return device.blas(); });
  add("gemm", [](Call& c, auto blas) {
    blas.gemm(c.transpose("transpose_a"), c.transpose("transpose_b"), c.factor<F>("alpha"),
              c.matrix<T>("a"), c.matrix<T>("b"), c.factor<F>("beta"), c.matrix<T>("c"))
        .get();
  });
}

template <class T>
void add_matrix_products(Runs& runs) {
  using R = RealOf<T>;
  const auto add = calls_of<T>(runs, [](Device& device) { return device.blas(); });
  add("symm", [](Call& c, auto blas) {
    blas.symm(c.side(), c.uplo(), c.factor<T>("alpha"), c.matrix<T>("a"), c.matrix<T>("b"),
              c.factor<T>("beta"), c.matrix<T>("c"))
        .get();
  });
  add("syrk", [](Call& c, auto blas) {
    blas.syrk(c.uplo(), c.transpose(), c.factor<T>("alpha"), c.matrix<T>("a"), c.factor<T>("beta"),
              c.matrix<T>("c"))
        .get();
  });
  add("syr2k", [](Call& c, auto blas) {
    blas.syr2k(c.uplo(), c.transpose(), c.factor<T>("alpha"), c.matrix<T>("a"), c.matrix<T>("b"),
               c.factor<T>("beta"), c.matrix<T>("c"))
        .get();
  });
  if constexpr (ComplexElement<T>) {
    add("hemm", [](Call& c, auto blas) {
      blas.hemm(c.side(), c.uplo(), c.factor<T>("alpha"), c.matrix<T>("a"), c.matrix<T>("b"),
                c.factor<T>("beta"), c.matrix<T>("c"))
          .get();
    });
    add("herk", [](Call& c, auto blas) {
      blas.herk(c.uplo(), c.transpose(), c.factor<R>("alpha"), c.matrix<T>("a"),
                c.factor<R>("beta"), c.matrix<T>("c"))
          .get();
    });
    add("her2k", [](Call& c, auto blas) {
      blas.her2k(c.uplo(), c.transpose(), c.factor<T>("alpha"), c.matrix<T>("a"), c.matrix<T>("b"),
                 c.factor<R>("beta"), c.matrix<T>("c"))
          .get();
    });
  }
}

template <class T>
void add_others(Runs& runs) {
  const auto add = calls_of<T>(runs, [](Device& device) { return device.blas(); });
  add("trmm", [](Call& c, auto blas) {
    blas.trmm(c.side(), c.uplo(), c.transpose(), c.diagonal(), c.factor<T>("alpha"),
              c.matrix<T>("a"), c.matrix<T>("b"), c.matrix<T>("c"))
        .get();
  });
  add("trsm", [](Call& c, auto blas) {
    blas.trsm(c.side(), c.uplo(), c.transpose(), c.diagonal(), c.factor<T>("alpha"),
              c.matrix<T>("a"), c.matrix<T>("b"))
        .get();
  });
  add("geam", [](Call& c, auto blas) {
    blas.geam(c.transpose("transpose_a"), c.transpose("transpose_b"), c.factor<T>("alpha"),
              c.matrix<T>("a"), c.factor<T>("beta"), c.matrix<T>("b"), c.matrix<T>("c"))
        .get();
  });
  add("dgmm", [](Call& c, auto blas) {
    blas.dgmm(c.side(), c.matrix<T>("a"), c.vector<T>("x"), c.matrix<T>("c")).get();
  });
  add("tpttr", [](Call& c, auto blas) {
    blas.tpttr(c.uplo(), c.buffer<T>("packed"), c.matrix<T>("a")).get();
  });
  add("trttp", [](Call& c, auto blas) {
    blas.trttp(c.uplo(), c.matrix<T>("a"), c.buffer<T>("packed")).get();
  });
}

}  // namespace

void add_level3(Runs& runs) {
  for_types<Half, BFloat16, float, double, std::complex<float>, std::complex<double>>(
      [&runs]<class T>(T) { add_gemm<T>(runs); });
  for_numbers([&runs]<class T>(T) {
    add_matrix_products<T>(runs);
    add_others<T>(runs);
  });
}

}  // namespace troupe::judge
