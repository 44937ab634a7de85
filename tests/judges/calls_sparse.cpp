#include "call.hpp"

namespace troupe::judge {
namespace {

/// A matrix by rows: "NAME_begin", "NAME_index", "NAME_value", with the extents that the request
/// gives as "NAME": [rows, columns].
template <class T, class I>
CsrMatrix<T, I> csr(Call& c, const std::string& name) {
  const auto extents = c.get<std::vector<std::int64_t>>(name);
  return {extents.at(0), extents.at(1), c.buffer<I>(name + "_begin"), c.buffer<I>(name + "_index"),
          c.buffer<T>(name + "_value")};
}
blas::Order order(const Call& c, const std::string& name) {
  return c.choice<blas::Order>(name, {"column", "row"});
}
/// The array "NAME", which is stored by columns of what is a row-major matrix if `how` says so.
template <class T>
MatrixRef<GpuRef<T>> dense(Call& c, const std::string& name, blas::Order how) {
  auto matrix = c.matrix<T>(name);
  if (how == blas::Order::row) std::swap(matrix.rows, matrix.columns);
  return matrix;
}

template <class T, class I>
class Sparse {
 public:
  explicit Sparse(Call& c) : c_(&c), lib_(c.device().sparse()) {}

  void spmv() const {
    lib()
        .spmv(csr<T, I>(*c_, "a"), c_->buffer<T>("x"), c_->buffer<T>("y"), c_->factor<T>("alpha"),
              c_->factor<T>("beta"))
        .get();
  }
  void gather() const {
    lib().gather(c_->buffer<T>("x"), c_->buffer<I>("index"), c_->buffer<T>("y")).get();
  }
  void spgemm() const {
    const auto extents = c_->get<std::vector<std::int64_t>>("c");
    const CsrMatrix<T, I> product{extents.at(0), extents.at(1), c_->buffer<I>("c_begin"),
                                  c_->buffer<I>("c_index"), c_->buffer<T>("c_value")};
    c_->answer("count", lib().spgemm(csr<T, I>(*c_, "a"), csr<T, I>(*c_, "b"), product).get());
  }
  void transpose() const { lib().transpose(csr<T, I>(*c_, "a"), csr<T, I>(*c_, "t")).get(); }
  void spmm() const {
    const SpmmOptions options{c_->transpose(), order(*c_, "order_b"), order(*c_, "order_c")};
    lib()
        .spmm(c_->factor<T>("alpha"), csr<T, I>(*c_, "a"), dense<T>(*c_, "b", options.order_b),
              c_->factor<T>("beta"), dense<T>(*c_, "c", options.order_c), options)
        .get();
  }
  void sddmm() const {
    const SddmmOptions options{c_->transpose("transpose_a"), c_->transpose("transpose_b"),
                               order(*c_, "order_a"), order(*c_, "order_b")};
    lib()
        .sddmm(c_->factor<T>("alpha"), dense<T>(*c_, "a", options.order_a),
               dense<T>(*c_, "b", options.order_b), c_->factor<T>("beta"), csr<T, I>(*c_, "c"),
               options)
        .get();
  }

 private:
  [[nodiscard]] troupe::Sparse lib() const { return lib_; }

  Call* c_;
  troupe::Sparse lib_;
};

/// A call of either width of indices, which the request names.
template <class T>
auto with_indices(void (Sparse<T, std::int32_t>::*narrow)() const,
                  void (Sparse<T, std::int64_t>::*wide)() const) {
  return [narrow, wide](Call& c) {
    if (c.get<std::string>("indices") == "i32")
      (Sparse<T, std::int32_t>(c).*narrow)();
    else
      (Sparse<T, std::int64_t>(c).*wide)();
  };
}

template <class T>
void add_of_sparse(Runs& runs) {
  const auto name = [](const char* call) {
    return std::string(call) + " " + std::string(to_string(dtype_of<T>));
  };
  using Narrow = Sparse<T, std::int32_t>;
  using Wide = Sparse<T, std::int64_t>;
  runs[name("transpose")] = with_indices<T>(&Narrow::transpose, &Wide::transpose);
  runs[name("spmm")] = with_indices<T>(&Narrow::spmm, &Wide::spmm);
  runs[name("sddmm")] = with_indices<T>(&Narrow::sddmm, &Wide::sddmm);
  if constexpr (RealElement<T>) {
    runs[name("spmv")] = with_indices<T>(&Narrow::spmv, &Wide::spmv);
    runs[name("gather")] = with_indices<T>(&Narrow::gather, &Wide::gather);
    runs[name("spgemm")] = with_indices<T>(&Narrow::spgemm, &Wide::spgemm);
  }

  const auto add = calls_of<T>(runs, [](Device& device) { return device.sparse(); });
  const auto three = [](Call& c) {
    return Tridiagonal(c.buffer<T>("lower"), c.buffer<T>("diagonal"), c.buffer<T>("upper"));
  };
  add("gtsv", [three](Call& c, auto lib) { lib.gtsv(three(c), c.matrix<T>("b")).get(); });
  add("gtsv_strided", [three](Call& c, auto lib) {
    lib.gtsv_strided(three(c), c.buffer<T>("x"), c.integer("n"), c.integer("batch"),
                     c.integer("stride"))
        .get();
  });
  add("gtsv_interleaved", [three](Call& c, auto lib) {
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

}  // namespace

void add_sparse(Runs& runs) {
  for_numbers([&]<class T>(T) { add_of_sparse<T>(runs); });
}

}  // namespace troupe::judge
