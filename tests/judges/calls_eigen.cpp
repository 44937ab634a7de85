#include "call.hpp"

namespace troupe::judge {
namespace {

using solver::Extent;
using solver::Problem;
using solver::Vectors;

template <class T>
void add_eigenvalues(Runs& runs) {
  using R = RealOf<T>;
  const auto add = calls_of<T>(runs, [](Device& device) { return device.solver(); });
  add("syevd", [](Call& c, auto solver) {
    solver.template syevd<T>(Vectors::yes, c.uplo(), c.matrix<T>("a"), c.buffer<R>("w")).get();
  });
  add("syevj", [](Call& c, auto solver) {
    solver.template syevj<T>(Vectors::yes, c.uplo(), c.matrix<T>("a"), c.buffer<R>("w")).get();
  });
  add("syevdx", [](Call& c, auto solver) {
    solver
        .template syevdx<T>(Vectors::yes,
                            EigenRange::indices(c.integer("first"), c.integer("last")), c.uplo(),
                            c.matrix<T>("a"), c.buffer<R>("w"))
        .get();
  });
  add("sygvd", [](Call& c, auto solver) {
    solver
        .template sygvd<T>(Problem::ax_bx, Vectors::yes, c.uplo(), c.matrix<T>("a"),
                           c.matrix<T>("b"), c.buffer<R>("w"))
        .get();
  });
  add("sygvj", [](Call& c, auto solver) {
    solver
        .template sygvj<T>(Problem::ax_bx, Vectors::yes, c.uplo(), c.matrix<T>("a"),
                           c.matrix<T>("b"), c.buffer<R>("w"))
        .get();
  });
  add("sygvdx", [](Call& c, auto solver) {
    solver
        .template sygvdx<T>(Problem::ax_bx, Vectors::yes,
                            EigenRange::indices(c.integer("first"), c.integer("last")), c.uplo(),
                            c.matrix<T>("a"), c.matrix<T>("b"), c.buffer<R>("w"))
        .get();
  });
  add("geev", [](Call& c, auto solver) {
    solver.template geev<T>(c.matrix<T>("a"), c.buffer<std::complex<R>>("w")).get();
  });
}

template <class T>
void add_singular_values(Runs& runs) {
  using R = RealOf<T>;
  const auto add = calls_of<T>(runs, [](Device& device) { return device.solver(); });
  add("gesvd", [](Call& c, auto solver) {
    solver
        .template gesvd<T>(solver::Columns::some, solver::Columns::some, c.matrix<T>("a"),
                           c.buffer<R>("s"), c.matrix<T>("u"), c.matrix<T>("vt"))
        .get();
  });
  add("gesvdj", [](Call& c, auto solver) {
    solver
        .template gesvdj<T>(Extent::economy, c.matrix<T>("a"), c.buffer<R>("s"), c.matrix<T>("u"),
                            c.matrix<T>("v"))
        .get();
  });
  add("gesvdp", [](Call& c, auto solver) {
    solver
        .template gesvdp<T>(Extent::economy, c.matrix<T>("a"), c.buffer<R>("s"), c.matrix<T>("u"),
                            c.matrix<T>("v"))
        .get();
  });
  add("gesvdr", [](Call& c, auto solver) {
    solver
        .template gesvdr<T>(c.matrix<T>("a"), c.buffer<R>("s"), c.matrix<T>("u"), c.matrix<T>("v"),
                            {.rank = c.integer("rank"), .oversampling = 2})
        .get();
  });
}

/// Matrices that lie side by side are one matrix to a call.
template <class T>
void add_batches(Runs& runs) {
  using R = RealOf<T>;
  const auto add = calls_of<T>(runs, [](Device& device) { return device.solver(); });
  add("potrs_batched", [](Call& c, auto solver) {
    const auto a = c.matrices<T>("a");
    solver.template potrf_batched<T>(c.uplo(), a, c.buffer<std::int32_t>("info")).get();
    solver.template potrs_batched<T>(c.uplo(), a, c.matrices<T>("b")).get();
  });
  add("syev_batched", [](Call& c, auto solver) {
    solver
        .template syev_batched<T>(Vectors::yes, c.uplo(), c.integer("batch"), c.matrix<T>("a"),
                                  c.buffer<R>("w"), c.buffer<std::int32_t>("info"))
        .get();
  });
  add("syevj_batched", [](Call& c, auto solver) {
    solver
        .template syevj_batched<T>(Vectors::yes, c.uplo(), c.integer("batch"), c.matrix<T>("a"),
                                   c.buffer<R>("w"), c.buffer<std::int32_t>("info"))
        .get();
  });
  add("gesvdj_batched", [](Call& c, auto solver) {
    solver
        .template gesvdj_batched<T>(c.integer("batch"), c.matrix<T>("a"), c.buffer<R>("s"),
                                    c.matrix<T>("u"), c.matrix<T>("v"),
                                    c.buffer<std::int32_t>("info"))
        .get();
  });
  add("gesvda_batched", [](Call& c, auto solver) {
    solver
        .template gesvda_batched<T>(c.integer("batch"), c.integer("rank"), c.matrix<T>("a"),
                                    c.buffer<R>("s"), c.matrix<T>("u"), c.matrix<T>("v"),
                                    c.buffer<std::int32_t>("info"))
        .get();
  });
}

}  // namespace

void add_eigen(Runs& runs) {
  for_numbers([&runs]<class T>(T) {
    add_eigenvalues<T>(runs);
    add_singular_values<T>(runs);
    add_batches<T>(runs);
  });
}

}  // namespace troupe::judge
