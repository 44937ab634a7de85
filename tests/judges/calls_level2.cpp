#include "call.hpp"

namespace troupe::judge {
namespace {

template <class T>
void add_vector_products(Runs& runs) {
  const auto add = calls_of<T>(runs, [](Device& device) { return device.blas(); });
  add("gemv", [](Call& c, auto blas) {
    blas.gemv(c.transpose(), c.factor<T>("alpha"), c.matrix<T>("a"), c.vector<T>("x"),
              c.factor<T>("beta"), c.vector<T>("y"))
        .get();
  });
  add("gbmv", [](Call& c, auto blas) {
    blas.gbmv(c.transpose(), c.integer("m"), c.integer("kl"), c.integer("ku"), c.factor<T>("alpha"),
              c.matrix<T>("a"), c.vector<T>("x"), c.factor<T>("beta"), c.vector<T>("y"))
        .get();
  });
  add("symv", [](Call& c, auto blas) {
    blas.symv(c.uplo(), c.factor<T>("alpha"), c.matrix<T>("a"), c.vector<T>("x"),
              c.factor<T>("beta"), c.vector<T>("y"))
        .get();
  });
  if constexpr (ComplexElement<T>) {
    add("hemv", [](Call& c, auto blas) {
      blas.hemv(c.uplo(), c.factor<T>("alpha"), c.matrix<T>("a"), c.vector<T>("x"),
                c.factor<T>("beta"), c.vector<T>("y"))
          .get();
    });
    add("hbmv", [](Call& c, auto blas) {
      blas.hbmv(c.uplo(), c.integer("k"), c.factor<T>("alpha"), c.matrix<T>("a"), c.vector<T>("x"),
                c.factor<T>("beta"), c.vector<T>("y"))
          .get();
    });
    add("hpmv", [](Call& c, auto blas) {
      blas.hpmv(c.uplo(), c.factor<T>("alpha"), c.buffer<T>("a"), c.vector<T>("x"),
                c.factor<T>("beta"), c.vector<T>("y"))
          .get();
    });
  } else {
    add("sbmv", [](Call& c, auto blas) {
      blas.sbmv(c.uplo(), c.integer("k"), c.factor<T>("alpha"), c.matrix<T>("a"), c.vector<T>("x"),
                c.factor<T>("beta"), c.vector<T>("y"))
          .get();
    });
    add("spmv", [](Call& c, auto blas) {
      blas.spmv(c.uplo(), c.factor<T>("alpha"), c.buffer<T>("a"), c.vector<T>("x"),
                c.factor<T>("beta"), c.vector<T>("y"))
          .get();
    });
  }
}

template <class T>
void add_updates(Runs& runs) {
  using R = RealOf<T>;
  const auto add = calls_of<T>(runs, [](Device& device) { return device.blas(); });
  add("ger", [](Call& c, auto blas) {
    blas.ger(c.factor<T>("alpha"), c.vector<T>("x"), c.vector<T>("y"), c.matrix<T>("a")).get();
  });
  add("syr", [](Call& c, auto blas) {
    blas.syr(c.uplo(), c.factor<T>("alpha"), c.vector<T>("x"), c.matrix<T>("a")).get();
  });
  add("syr2", [](Call& c, auto blas) {
    blas.syr2(c.uplo(), c.factor<T>("alpha"), c.vector<T>("x"), c.vector<T>("y"), c.matrix<T>("a"))
        .get();
  });
  if constexpr (ComplexElement<T>) {
    add("gerc", [](Call& c, auto blas) {
      blas.gerc(c.factor<T>("alpha"), c.vector<T>("x"), c.vector<T>("y"), c.matrix<T>("a")).get();
    });
    add("her", [](Call& c, auto blas) {
      blas.her(c.uplo(), c.factor<R>("alpha"), c.vector<T>("x"), c.matrix<T>("a")).get();
    });
    add("hpr", [](Call& c, auto blas) {
      blas.hpr(c.uplo(), c.factor<R>("alpha"), c.vector<T>("x"), c.buffer<T>("a")).get();
    });
    add("her2", [](Call& c, auto blas) {
      blas.her2(c.uplo(), c.factor<T>("alpha"), c.vector<T>("x"), c.vector<T>("y"),
                c.matrix<T>("a"))
          .get();
    });
    add("hpr2", [](Call& c, auto blas) {
      blas.hpr2(c.uplo(), c.factor<T>("alpha"), c.vector<T>("x"), c.vector<T>("y"),
                c.buffer<T>("a"))
          .get();
    });
  } else {
    add("spr", [](Call& c, auto blas) {
      blas.spr(c.uplo(), c.factor<T>("alpha"), c.vector<T>("x"), c.buffer<T>("a")).get();
    });
    add("spr2", [](Call& c, auto blas) {
      blas.spr2(c.uplo(), c.factor<T>("alpha"), c.vector<T>("x"), c.vector<T>("y"),
                c.buffer<T>("a"))
          .get();
    });
  }
}

template <class T>
void add_triangles(Runs& runs) {
  const auto add = calls_of<T>(runs, [](Device& device) { return device.blas(); });
  add("trmv", [](Call& c, auto blas) {
    blas.trmv(c.uplo(), c.transpose(), c.diagonal(), c.matrix<T>("a"), c.vector<T>("x")).get();
  });
  add("trsv", [](Call& c, auto blas) {
    blas.trsv(c.uplo(), c.transpose(), c.diagonal(), c.matrix<T>("a"), c.vector<T>("x")).get();
  });
  add("tbmv", [](Call& c, auto blas) {
    blas.tbmv(c.uplo(), c.transpose(), c.diagonal(), c.integer("k"), c.matrix<T>("a"),
              c.vector<T>("x"))
        .get();
  });
  add("tbsv", [](Call& c, auto blas) {
    blas.tbsv(c.uplo(), c.transpose(), c.diagonal(), c.integer("k"), c.matrix<T>("a"),
              c.vector<T>("x"))
        .get();
  });
  add("tpmv", [](Call& c, auto blas) {
    blas.tpmv(c.uplo(), c.transpose(), c.diagonal(), c.buffer<T>("a"), c.vector<T>("x")).get();
  });
  add("tpsv", [](Call& c, auto blas) {
    blas.tpsv(c.uplo(), c.transpose(), c.diagonal(), c.buffer<T>("a"), c.vector<T>("x")).get();
  });
}

}  // namespace

void add_level2(Runs& runs) {
  for_numbers([&runs]<class T>(T) {
    add_vector_products<T>(runs);
    add_updates<T>(runs);
    add_triangles<T>(runs);
  });
}

}  // namespace troupe::judge
