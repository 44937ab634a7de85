#include "call.hpp"

namespace troupe::judge {
namespace {

/// The matrix is the arrays "a_begin", "a_index" and "a_value"; "a" has its extents.
template <class T, class I>
CsrMatrix<T, I> matrix_of(Call& c) {
  const auto extents = c.get<std::array<std::int64_t, 2>>("a");
  return {extents[0], extents[1], c.buffer<I>("a_begin"), c.buffer<I>("a_index"),
          c.buffer<T>("a_value")};
}

direct::Options options_of(const Call& c) {
  return {
      c.choice<direct::Kind>("kind", {"general", "symmetric", "hermitian", "positive_definite"}),
      c.choice<direct::View>("view", {"full", "lower", "upper"}), c.get<bool>("matching")};
}

template <class T, class I>
void analyse(Call& c, const Direct& lib) {
  c.answer("told", lib.solver(matrix_of<T, I>(c), options_of(c)).analyse().get());
}

template <class T, class I>
void factor(Call& c, const Direct& lib) {
  c.answer("told", lib.solver(matrix_of<T, I>(c), options_of(c)).factor().get());
}

/// With "before", factors of these values are there first, and are released if "release" says so.
template <class T, class I>
void solve(Call& c, const Direct& lib) {
  const auto a = matrix_of<T, I>(c);
  auto solver = lib.solver(a, options_of(c));
  if (c.has("before")) {
    const auto values = c.device().download(a.value);
    c.device().copy(c.buffer<T>("before_value"), a.value);
    solver.factor().get();
    if (c.get<bool>("release")) solver.release().get();
    c.device().upload<T>(values, a.value);
  }
  const auto b = c.matrix<T>("b"), x = c.matrix<T>("x");
  const auto told =
      solver.solve(b, x, {c.transpose(), static_cast<int>(c.integer("refinement"))}).get();
  c.answer("told", told);
}

template <class T, class I>
void schur(Call& c, const Direct& lib) {
  auto solver = lib.solver(matrix_of<T, I>(c), options_of(c));
  c.answer("told", solver.schur(c.buffer<I>("rows"), c.matrix<T>("s")).get());
}

template <class T>
void add_of(Runs& runs) {
  const auto add = calls_of<T>(runs, [](Device& device) { return direct::on(device); });
  static constexpr auto by_index = [](const Call& c) {
    return c.get<std::string>("indices") == "i32";
  };
  add("direct_analyse", [](Call& c, const Direct& lib) {
    by_index(c) ? analyse<T, std::int32_t>(c, lib) : analyse<T, std::int64_t>(c, lib);
  });
  add("direct_factor", [](Call& c, const Direct& lib) {
    by_index(c) ? factor<T, std::int32_t>(c, lib) : factor<T, std::int64_t>(c, lib);
  });
  add("direct_solve", [](Call& c, const Direct& lib) {
    by_index(c) ? solve<T, std::int32_t>(c, lib) : solve<T, std::int64_t>(c, lib);
  });
  add("direct_schur", [](Call& c, const Direct& lib) {
    by_index(c) ? schur<T, std::int32_t>(c, lib) : schur<T, std::int64_t>(c, lib);
  });
}

}  // namespace

void add_direct(Runs& runs) {
  for_numbers([&]<class T>(T) { add_of<T>(runs); });
}

}  // namespace troupe::judge
