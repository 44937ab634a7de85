#include <array>

#include "call.hpp"

namespace troupe::judge {
namespace {

// A matrix NAME is the arrays "NAME_begin", "NAME_index" and "NAME_value": `outer`, `inner` and
// `value` of sparse::Form. "NAME" has its extents, [rows, columns], in elements, or in blocks for
// bsr; "NAME_format" its format; "NAME_block", "NAME_order", … have the rest.

/// The array of that name, or a null reference if the request's "without" names it.
template <class T>
GpuRef<T> given(Call& c, std::string_view name) {
  const auto without =
      c.has("without") ? c.get<std::vector<std::string>>("without") : std::vector<std::string>{};
  const bool is_there = std::find(without.begin(), without.end(), name) == without.end();
  return is_there ? c.buffer<T>(name) : GpuRef<T>{};
}
std::array<std::int64_t, 2> extents(const Call& c, std::string_view name) {
  return c.get<std::array<std::int64_t, 2>>(name);
}
blas::Order order(const Call& c, std::string_view name) {
  return c.choice<blas::Order>(name, {"column", "row"});
}

template <class T, class I>
CsrMatrix<T, I> csr(Call& c, const std::string& name) {
  const auto [rows, columns] = extents(c, name);
  return {rows, columns, given<I>(c, name + "_begin"), given<I>(c, name + "_index"),
          given<T>(c, name + "_value")};
}
template <class T, class I>
CscMatrix<T, I> csc(Call& c, const std::string& name) {
  const auto [rows, columns] = extents(c, name);
  return {rows, columns, given<I>(c, name + "_begin"), given<I>(c, name + "_index"),
          given<T>(c, name + "_value")};
}
template <class T, class I>
CooMatrix<T, I> coo(Call& c, const std::string& name) {
  const auto [rows, columns] = extents(c, name);
  return {rows, columns, given<I>(c, name + "_begin"), given<I>(c, name + "_index"),
          given<T>(c, name + "_value")};
}
template <class T, class I>
BsrMatrix<T, I> bsr(Call& c, const std::string& name) {
  const auto [block_rows, block_columns] = extents(c, name);
  return {block_rows,
          block_columns,
          c.integer(name + "_block"),
          c.choice<BlockOrder>(name + "_order", {"row", "column"}),
          given<I>(c, name + "_begin"),
          given<I>(c, name + "_index"),
          given<T>(c, name + "_value")};
}
template <class T, class I>
SellMatrix<T, I> sell(Call& c, const std::string& name) {
  const auto [rows, columns] = extents(c, name);
  return {rows,
          columns,
          c.integer(name + "_nonzeros"),
          c.integer(name + "_slice"),
          given<I>(c, name + "_begin"),
          given<I>(c, name + "_index"),
          given<T>(c, name + "_value")};
}
template <class T, class I>
BlockedEllMatrix<T, I> blocked_ell(Call& c, const std::string& name) {
  const auto [rows, columns] = extents(c, name);
  return {rows,
          columns,
          c.integer(name + "_block"),
          c.integer(name + "_width"),
          given<I>(c, name + "_index"),
          given<T>(c, name + "_value")};
}

/// Calls `use` with a matrix whose elements are listed one by one.
template <class T, class I, class Use>
auto with_listed(Call& c, const std::string& name, const Use& use) {
  const auto format = c.get<std::string>(name + "_format");
  if (format == "csr") return use(csr<T, I>(c, name));
  if (format == "csc") return use(csc<T, I>(c, name));
  check(format == "coo", "an unknown format in a request");
  return use(coo<T, I>(c, name));
}
/// A matrix in any format.
template <class T, class I>
SparseRef<T, I> any(Call& c, const std::string& name) {
  const auto format = c.get<std::string>(name + "_format");
  if (format == "bsr") return bsr<T, I>(c, name);
  if (format == "sell") return sell<T, I>(c, name);
  if (format == "blocked_ell") return blocked_ell<T, I>(c, name);
  return with_listed<T, I>(c, name, [](const auto& a) { return SparseRef<T, I>(a); });
}
/// The array "NAME", which is stored by columns of what is a row-major matrix if `how` says so.
template <class T>
MatrixRef<GpuRef<T>> dense(Call& c, std::string_view name, blas::Order how) {
  auto matrix = c.matrix<T>(name);
  if (how == blas::Order::row) std::swap(matrix.rows, matrix.columns);
  return matrix;
}

template <class T, class I>
class Sparse {
 public:
  explicit Sparse(Call& c) : c_(&c), lib_(c.device().sparse()) {}

  void spmv() {
    const auto a = any<T, I>(*c_, "a");
    lib_.spmv(c_->transpose(), c_->factor<T>("alpha"), a, c_->buffer<T>("x"), c_->factor<T>("beta"),
              c_->buffer<T>("y"))
        .get();
  }
  void spmm() {
    const SpmmOptions options{c_->transpose(), order("order_b"), order("order_c")};
    const auto a = any<T, I>(*c_, "a");
    lib_.spmm(c_->factor<T>("alpha"), a, dense<T>(*c_, "b", options.order_b), c_->factor<T>("beta"),
              dense<T>(*c_, "c", options.order_c), options)
        .get();
  }
  void sddmm() {
    const SddmmOptions options{c_->transpose("transpose_a"), c_->transpose("transpose_b"),
                               order("order_a"), order("order_b")};
    const auto c = any<T, I>(*c_, "c");
    lib_.sddmm(c_->factor<T>("alpha"), dense<T>(*c_, "a", options.order_a),
               dense<T>(*c_, "b", options.order_b), c_->factor<T>("beta"), c, options)
        .get();
  }
  void transpose() { lib_.transpose(csr("a"), csr("t")).get(); }

  void gather() {
    lib_.gather(c_->buffer<T>("x"), c_->buffer<I>("index"), c_->buffer<T>("y")).get();
  }
  void scatter() {
    lib_.scatter(c_->buffer<T>("x"), c_->buffer<I>("index"), c_->buffer<T>("y")).get();
  }
  void axpby() {
    lib_.axpby(c_->factor<T>("alpha"), c_->buffer<T>("x"), c_->buffer<I>("index"),
               c_->factor<T>("beta"), c_->buffer<T>("y"))
        .get();
  }
  void rot() {
    lib_.rot(c_->buffer<T>("x"), c_->buffer<I>("index"), c_->buffer<T>("y"),
             c_->factor<RealOf<T>>("c"), c_->factor<T>("s"))
        .get();
  }
  void spvv() {
    lib_.spvv(c_->buffer<T>("x"), c_->buffer<I>("index"), c_->buffer<T>("y"),
              c_->buffer<T>("result"), c_->choice<blas::Conjugate>("conjugate", {"no", "yes"}))
        .get();
  }

  void geam() {
    counted(lib_.geam(c_->factor<T>("alpha"), csr("a"), c_->factor<T>("beta"), csr("b"), csr("c"),
                      on_failure(*c_)));
  }
  void spgemm() { counted(lib_.spgemm(csr("a"), csr("b"), csr("c"), on_failure(*c_))); }
  void spgemm_reuse() { lib_.spgemm_reuse(csr("a"), csr("b"), csr("c")).get(); }

  void spsv() {
    const auto options = triangle();
    const auto x = c_->buffer<T>("x"), b = given<T>(*c_, "b");
    lib_.spsv(any<T, I>(*c_, "a"), b ? b : x, x, options, c_->factor<T>("alpha")).get();
  }
  void spsm() {
    auto options = triangle();
    options.order_b = order("order_b"), options.order_x = order("order_x");
    const auto x = dense<T>(*c_, "x", options.order_x);
    const auto b = c_->has("without") ? x : dense<T>(*c_, "b", options.order_b);
    lib_.spsm(any<T, I>(*c_, "a"), b, x, options, c_->factor<T>("alpha")).get();
  }

  void sparse_to_dense() {
    const auto how = order("order_d");
    const auto full = dense<T>(*c_, "d", how);
    with_listed<T, I>(*c_, "a", [&](const auto& a) { lib_.sparse_to_dense(a, full, how).get(); });
  }
  void blocked_ell_to_dense() {
    const auto how = order("order_d");
    lib_.sparse_to_dense(blocked_ell<T, I>(*c_, "a"), dense<T>(*c_, "d", how), how).get();
  }
  void dense_to_sparse() {
    const DenseToSparseOptions options{order("order_d"), on_failure(*c_)};
    const auto full = dense<T>(*c_, "d", options.order);
    with_listed<T, I>(*c_, "a",
                      [&](const auto& a) { counted(lib_.dense_to_sparse(full, a, options)); });
  }
  void csr2bsr() { counted(lib_.csr2bsr(csr("a"), bsr<T, I>(*c_, "b"), on_failure(*c_))); }
  void bsr2csr() { lib_.bsr2csr(bsr<T, I>(*c_, "a"), csr("b")).get(); }
  void csr2sell() { counted(lib_.csr2sell(csr("a"), sell<T, I>(*c_, "b"), on_failure(*c_))); }
  void csr2blocked_ell() {
    counted(lib_.csr2blocked_ell(csr("a"), blocked_ell<T, I>(*c_, "b"), on_failure(*c_)));
  }

  void coosort() {
    const auto a = coo<T, I>(*c_, "a");
    const CooMatrix<T, I> sorted{a.rows, a.columns, given<I>(*c_, "t_begin"),
                                 given<I>(*c_, "t_index"), given<T>(*c_, "t_value")};
    lib_.coosort(a, sorted, c_->choice<sparse::SortBy>("by", {"row", "column"}),
                 given<I>(*c_, "permutation"))
        .get();
  }
  void csrsort() {
    const auto a = csr("a");
    const CsrMatrix<T, I> sorted{a.rows, a.columns, a.row_begin, given<I>(*c_, "t_index"),
                                 given<T>(*c_, "t_value")};
    lib_.csrsort(a, sorted, given<I>(*c_, "permutation")).get();
  }

 private:
  [[nodiscard]] CsrMatrix<T, I> csr(const std::string& name) { return judge::csr<T, I>(*c_, name); }
  [[nodiscard]] blas::Order order(std::string_view name) const { return judge::order(*c_, name); }
  [[nodiscard]] TriangularOptions triangle() const {
    return {.uplo = c_->uplo(), .diagonal = c_->diagonal(), .transpose = c_->transpose()};
  }
  void counted(Future<std::int64_t> count) { c_->answer("count", count.get()); }

  Call* c_;
  troupe::Sparse lib_;
};

template <class T>
void add_of_sparse(Runs& runs) {
  // Calls of either width of indices, which the request names.
  const auto add = [&runs]<class Run>(std::string_view call, Run) {
    add_run(runs, call, dtype_of<T>, [](Call& c) {
      if (c.get<std::string>("indices") == "i32")
        Run{}(Sparse<T, std::int32_t>(c));
      else
        Run{}(Sparse<T, std::int64_t>(c));
    });
  };
  add("spmv", [](auto s) { s.spmv(); });
  add("spmm", [](auto s) { s.spmm(); });
  add("sddmm", [](auto s) { s.sddmm(); });
  add("transpose", [](auto s) { s.transpose(); });
  add("gather", [](auto s) { s.gather(); });
  add("scatter", [](auto s) { s.scatter(); });
  add("axpby", [](auto s) { s.axpby(); });
  add("rot", [](auto s) { s.rot(); });
  add("spvv", [](auto s) { s.spvv(); });
  add("geam", [](auto s) { s.geam(); });
  add("spgemm_reuse", [](auto s) { s.spgemm_reuse(); });
  add("spsv", [](auto s) { s.spsv(); });
  add("spsm", [](auto s) { s.spsm(); });
  add("sparse_to_dense", [](auto s) { s.sparse_to_dense(); });
  add("blocked_ell_to_dense", [](auto s) { s.blocked_ell_to_dense(); });
  add("dense_to_sparse", [](auto s) { s.dense_to_sparse(); });
  add("csr2bsr", [](auto s) { s.csr2bsr(); });
  add("bsr2csr", [](auto s) { s.bsr2csr(); });
  add("csr2sell", [](auto s) { s.csr2sell(); });
  add("csr2blocked_ell", [](auto s) { s.csr2blocked_ell(); });
  add("coosort", [](auto s) { s.coosort(); });
  add("csrsort", [](auto s) { s.csrsort(); });
  if constexpr (RealElement<T>) add("spgemm", [](auto s) { s.spgemm(); });
}

template <class T>
void add_tridiagonal(Runs& runs) {
  const auto add = calls_of<T>(runs, [](Device& device) { return device.sparse(); });
  static constexpr auto three = [](Call& c) {
    return Tridiagonal(c.buffer<T>("lower"), c.buffer<T>("diagonal"), c.buffer<T>("upper"));
  };
  add("gtsv", [](Call& c, auto lib) { lib.gtsv(three(c), c.matrix<T>("b")).get(); });
  add("gtsv_strided", [](Call& c, auto lib) {
    lib.gtsv_strided(three(c), c.buffer<T>("x"), c.integer("n"), c.integer("batch"),
                     c.integer("stride"))
        .get();
  });
  add("gtsv_interleaved", [](Call& c, auto lib) {
    lib.gtsv_interleaved(three(c), c.buffer<T>("x"), c.integer("n"), c.integer("batch"),
                         c.choice<sparse::Elimination>("elimination", {"thomas", "lu", "qr"}))
        .get();
  });
  add("gpsv_interleaved", [](Call& c, auto lib) {
    lib.gpsv_interleaved(
           Pentadiagonal(c.buffer<T>("lower2"), c.buffer<T>("lower"), c.buffer<T>("diagonal"),
                         c.buffer<T>("upper"), c.buffer<T>("upper2")),
           c.buffer<T>("x"), c.integer("n"), c.integer("batch"))
        .get();
  });
}

/// "spmv_ex RESULT", "spmm_ex RESULT"
template <class In, class Out>
void add_narrow_products(Runs& runs) {
  using Sum = detail::SumOf<Out>;
  const auto add = calls_of<In>(runs, [](Device& device) { return device.sparse(); });
  static constexpr auto with_indices = [](Call& c, const auto& use) {
    c.get<std::string>("indices") == "i32" ? use(any<In, std::int32_t>(c, "a"))
                                           : use(any<In, std::int64_t>(c, "a"));
  };
  const auto result = " " + std::string(to_string(dtype_of<Out>));
  add("spmv_ex" + result, [](Call& c, auto lib) {
    with_indices(c, [&](const auto& a) {
      lib.spmv_ex(c.transpose(), c.factor<Sum>("alpha"), a, c.buffer<In>("x"),
                  c.factor<Sum>("beta"), c.buffer<Out>("y"))
          .get();
    });
  });
  add("spmm_ex" + result, [](Call& c, auto lib) {
    const SpmmOptions options{c.transpose(), order(c, "order_b"), order(c, "order_c")};
    with_indices(c, [&](const auto& a) {
      lib.spmm_ex(c.factor<Sum>("alpha"), a, dense<In>(c, "b", options.order_b),
                  c.factor<Sum>("beta"), dense<Out>(c, "c", options.order_c), options)
          .get();
    });
  });
}

template <class I>
void add_rows_of_elements(Runs& runs) {
  const auto add = calls_of<I>(runs, [](Device& device) { return device.sparse(); });
  add("csr2coo",
      [](Call& c, auto lib) { lib.csr2coo(c.buffer<I>("begin"), c.buffer<I>("row")).get(); });
  add("coo2csr",
      [](Call& c, auto lib) { lib.coo2csr(c.buffer<I>("row"), c.buffer<I>("begin")).get(); });
  add("examine", [](Call& c, auto) {
    const auto extents = c.get<std::array<std::int64_t, 2>>("a");
    const auto begin = c.buffer<I>("begin"), index = c.buffer<I>("index");
    const sparse::Form form{.format = sparse::Format::csr,
                            .index_dtype = dtype_of<I>,
                            .rows = extents[0],
                            .columns = extents[1],
                            .nonzeros = index.length(),
                            .stored = index.length()};
    const auto rule = sparse::rule_of(form, begin.operand(), index.operand(), true);
    const auto found = detail::submit_for_value<sparse::Finding>(
        c.device().submitter(), sparse::examination_of(rule, OnFailure::report));
    c.answer("found", found.get());
  });
}

}  // namespace

void add_sparse(Runs& runs) {
  for_numbers([&]<class T>(T) {
    add_of_sparse<T>(runs);
    add_tridiagonal<T>(runs);
  });
  add_narrow_products<std::int8_t, std::int32_t>(runs);
  add_narrow_products<std::int8_t, float>(runs);
  add_narrow_products<Half, Half>(runs);
  add_narrow_products<Half, float>(runs);
  add_narrow_products<BFloat16, BFloat16>(runs);
  add_narrow_products<BFloat16, float>(runs);
  add_rows_of_elements<std::int32_t>(runs);
  add_rows_of_elements<std::int64_t>(runs);
}

}  // namespace troupe::judge
