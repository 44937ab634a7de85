#include "call.hpp"

// A request of the solver's is a chain: what factorises, and what works with the factors.

namespace troupe::judge {
namespace {

template <class T>
void add_factorisations(Runs& runs) {
  const auto add = calls_of<T>(runs, [](Device& device) { return device.solver(); });
  using Pivot = std::int64_t;
  add("potrf",
      [](Call& c, auto solver) { solver.template potrf<T>(c.uplo(), c.matrix<T>("a")).get(); });
  add("potrs", [](Call& c, auto solver) {
    const auto a = c.matrix<T>("a");
    solver.template potrf<T>(c.uplo(), a).get();
    solver.template potrs<T>(c.uplo(), a, c.matrix<T>("b")).get();
  });
  add("potri", [](Call& c, auto solver) {
    const auto a = c.matrix<T>("a");
    solver.template potrf<T>(c.uplo(), a).get();
    solver.template potri<T>(c.uplo(), a).get();
  });
  add("trtri", [](Call& c, auto solver) {
    solver.template trtri<T>(c.uplo(), c.diagonal(), c.matrix<T>("a")).get();
  });
  add("lauum",
      [](Call& c, auto solver) { solver.template lauum<T>(c.uplo(), c.matrix<T>("a")).get(); });
  add("getrf", [](Call& c, auto solver) {
    solver.template getrf<T>(c.matrix<T>("a"), c.buffer<Pivot>("pivots")).get();
  });
  add("getrs", [](Call& c, auto solver) {
    const auto a = c.matrix<T>("a");
    const auto pivots = c.buffer<Pivot>("pivots");
    solver.template getrf<T>(a, pivots).get();
    solver.template getrs<T>(c.transpose(), a, pivots, c.matrix<T>("b")).get();
  });
  add("laswp", [](Call& c, auto solver) {
    solver
        .template laswp<T>(c.matrix<T>("a"), c.integer("first"), c.integer("last"),
                           c.buffer<Pivot>("pivots"))
        .get();
  });
  add("sytrs", [](Call& c, auto solver) {
    const auto a = c.matrix<T>("a");
    const auto pivots = c.buffer<Pivot>("pivots");
    solver.template sytrf<T>(c.uplo(), a, pivots).get();
    solver.template sytrs<T>(c.uplo(), a, pivots, c.matrix<T>("b")).get();
  });
  add("sytri", [](Call& c, auto solver) {
    const auto a = c.matrix<T>("a");
    const auto pivots = c.buffer<Pivot>("pivots");
    solver.template sytrf<T>(c.uplo(), a, pivots).get();
    solver.template sytri<T>(c.uplo(), a, pivots).get();
  });
  add("gesv", [](Call& c, auto solver) {
    solver.template gesv<T>(c.matrix<T>("a"), c.matrix<T>("b"), c.matrix<T>("x")).get();
  });
  add("gels", [](Call& c, auto solver) {
    solver.template gels<T>(c.matrix<T>("a"), c.matrix<T>("b"), c.matrix<T>("x")).get();
  });
}

template <class T>
void add_orthogonal(Runs& runs) {
  using R = RealOf<T>;
  const auto add = calls_of<T>(runs, [](Device& device) { return device.solver(); });
  static constexpr auto make_q = [](auto& solver, const auto& a, std::int64_t k, const auto& tau) {
    if constexpr (ComplexElement<T>)
      return solver.template ungqr<T>(a, k, tau);
    else
      return solver.template orgqr<T>(a, k, tau);
  };
  add("geqrf", [](Call& c, auto solver) {
    solver.template geqrf<T>(c.matrix<T>("a"), c.buffer<T>("tau")).get();
  });
  // Q from its reflectors, and op(Q) C, with the R of another copy.
  add("orgqr", [](Call& c, auto solver) {
    const auto a = c.matrix<T>("a");
    const auto tau = c.buffer<T>("tau");
    solver.template geqrf<T>(a, tau).get();
    make_q(solver, a, std::min(a.rows, a.columns), tau).get();
  });
  add("ormqr", [](Call& c, auto solver) {
    const auto a = c.matrix<T>("a");
    const auto tau = c.buffer<T>("tau");
    solver.template geqrf<T>(a, tau).get();
    if constexpr (ComplexElement<T>)
      solver.template unmqr<T>(c.side(), c.transpose(), a, tau, c.matrix<T>("c")).get();
    else
      solver.template ormqr<T>(c.side(), c.transpose(), a, tau, c.matrix<T>("c")).get();
  });
  add("larft", [](Call& c, auto solver) {
    const auto a = c.matrix<T>("a");
    const auto tau = c.buffer<T>("tau");
    solver.template geqrf<T>(a, tau).get();
    solver.template larft<T>(a, tau, c.matrix<T>("t")).get();
  });
  add("orgtr", [](Call& c, auto solver) {
    const auto a = c.matrix<T>("a");
    const auto tau = c.buffer<T>("tau");
    solver.template sytrd<T>(c.uplo(), a, c.buffer<R>("d"), c.buffer<R>("e"), tau).get();
    solver.template orgtr<T>(c.uplo(), a, tau).get();
  });
  add("ormtr", [](Call& c, auto solver) {
    const auto a = c.matrix<T>("a");
    const auto tau = c.buffer<T>("tau");
    solver.template sytrd<T>(c.uplo(), a, c.buffer<R>("d"), c.buffer<R>("e"), tau).get();
    solver
        .template ormtr<T>(blas::Side::left, c.uplo(), blas::Transpose::no, a, tau,
                           c.matrix<T>("c"))
        .get();
  });
  add("gebrd", [](Call& c, auto solver) {
    solver
        .template gebrd<T>(c.matrix<T>("a"), c.buffer<R>("d"), c.buffer<R>("e"),
                           c.buffer<T>("tau_q"), c.buffer<T>("tau_p"))
        .get();
  });
  add("orgbr", [](Call& c, auto solver) {
    const auto a = c.matrix<T>("a");
    const auto tau_q = c.buffer<T>("tau_q"), tau_p = c.buffer<T>("tau_p");
    solver.template gebrd<T>(a, c.buffer<R>("d"), c.buffer<R>("e"), tau_q, tau_p).get();
    solver.template orgbr<T>(blas::Side::left, a, tau_q).get();
  });
}

}  // namespace

void add_linear(Runs& runs) {
  for_numbers([&runs]<class T>(T) {
    add_factorisations<T>(runs);
    add_orthogonal<T>(runs);
  });
}

}  // namespace troupe::judge
