#include "device_host/engine/cuda/stream_memory.hpp"
#include "lib/sparse/common/products_cuda.hpp"
#include "lib/sparse/looks/kernels.cuh"

/// The looks at products of sparse matrices on the cuda engine: see sums.hpp.
namespace troupe::host::cuda {
namespace {

/// A look at one product of elements T, on its stream.
template <class T>
class SparseLook {
 public:
  SparseLook(const CheckedProduct& product, const Call& call, Sparse& library)
      : product_(product),
        call_(call),
        library_(library),
        stream_(library.services.stream(call.queue())),
        c_(call.at<Native<T>>(product.c.operand)) {}

  Result<void> before() {
    const auto verdict = verdict_.reserve(sizeof(kernels::SparseVerdict), stream_);
    if (!verdict) return verdict.error();
    if (!product_.reads_c()) return {};
    const auto saved = saved_.reserve(product_.bytes_of_c(), stream_);
    if (!saved) return saved.error();
    TROUPE_CUDA_TRY(copy(*saved, c_));
    return {};
  }

  Result<WrongProduct> after(bool wrong) {
    const auto& c = product_.c;
    if (wrong) {
      const auto at = c.rows / 2 * c.row_step + product_.n / 2 * c.column_step;
      TROUPE_CUDA_TRY(kernels::spoil(library_.services.launch(call_.queue()), c_ + at));
    }
    constexpr kernels::SparseVerdict kRight;
    TROUPE_CUDA_TRY(
        cudaMemcpyAsync(verdict_.get(), &kRight, sizeof kRight, cudaMemcpyHostToDevice, stream_));
    const auto judged =
        with_index(product_.form.index_dtype, [&]<class I>(I) { return judge<I>(); });
    if (!judged.ok()) return judged.error();
    kernels::SparseVerdict verdict;
    TROUPE_CUDA_TRY(
        cudaMemcpyAsync(&verdict, verdict_.get(), sizeof verdict, cudaMemcpyDeviceToHost, stream_));
    TROUPE_CUDA_TRY(cudaStreamSynchronize(stream_));
    if (verdict.first == kernels::SparseVerdict::kNothingWrong) return WrongProduct();
    return WrongProduct(
        describe(product_, static_cast<std::int64_t>(verdict.first), verdict.judged));
  }

  Result<void> restore() {
    if (product_.reads_c()) TROUPE_CUDA_TRY(copy(c_, saved_.get()));
    return {};
  }

 private:
  template <class I>
  Result<void> judge() {
    using N = Native<T>;
    const auto judged_by = [&](const auto& product) -> Result<void> {
      TROUPE_CUDA_TRY(kernels::judge(library_.services.launch(call_.queue()), product,
                                     reinterpret_cast<const N*>(saved_.get()), product_.rounding(),
                                     reinterpret_cast<kernels::SparseVerdict*>(verdict_.get())));
      return {};
    };
    const auto& form = product_.form;
    if (form.format == sparse::Format::sell && product_.transpose == blas::Transpose::no) {
      kernels::Pattern<I> slices;
      slices.row_begin = call_.at<const I>(product_.outer);
      slices.column = call_.at<const I>(product_.inner);
      return judged_by(kernels::SlicedProduct<N, I>{
          {operands(), slices, call_.at<const N>(product_.value), false}, form.block});
    }
    const SparseArgument a{product_.form, product_.transpose, product_.outer, product_.inner,
                           product_.value};
    const auto pattern = pattern_of<I>(a, call_, library_);
    if (!pattern) return pattern.error();
    return judged_by(
        kernels::SparseProduct<N, I>{operands(), *pattern, call_.at<const N>(product_.value),
                                     product_.transpose == blas::Transpose::conjugate});
  }
  [[nodiscard]] kernels::DenseOperands<Native<T>> operands() const {
    kernels::DenseOperands<Native<T>> dense;
    dense.rows = product_.c.rows, dense.columns = product_.n;
    dense.b = call_.at<const Native<T>>(product_.b.operand), dense.c = c_;
    dense.b_row_step = product_.b.row_step, dense.b_column_step = product_.b.column_step;
    dense.c_row_step = product_.c.row_step, dense.c_column_step = product_.c.column_step;
    dense.alpha = native_scalar<T>(product_.alpha, call_);
    dense.beta = native_scalar<T>(product_.beta, call_);
    return dense;
  }
  cudaError_t copy(void* to, const void* from) const {
    return cudaMemcpyAsync(to, from, product_.bytes_of_c(), cudaMemcpyDeviceToDevice, stream_);
  }

  const CheckedProduct& product_;
  const Call& call_;
  Sparse& library_;
  const cudaStream_t stream_;
  Native<T>* const c_;
  StreamMemory verdict_, saved_;
};

/// As of an H200, by multiprocessor.
CheckCost cost_of(const CheckedProduct& product, const Services& services) {
  const double multiprocessors = services.multiprocessors();
  return host::cost_of(
      product,
      {.bytes = 24 * multiprocessors, .products = multiprocessors, .start = 4000, .check = 60'000});
}
template <class Op>
Result<void> carry_out_looked_at(const Op& op, const Call& call, Sparse& library) {
  if (!library.looks.on()) return library.carry_out(op, call);
  const auto product = product_of(op);
  const auto cost = product ? std::optional(cost_of(*product, library.services)) : std::nullopt;
  if (!library.looks.due(call, library.services.records(), cost)) {
    if (cost) library.looks.count(*cost);
    return library.carry_out(op, call);
  }
  return with_number(op.dtype, [&]<class T>(T) {
    SparseLook<T> look(*product, call, library);
    return library.looks.carry_out(Op::kName, *cost, look,
                                   [&] { return library.carry_out(op, call); });
  });
}

}  // namespace

bool is_looked_at(const OperationInfo& info, const std::byte* op, const Call& call,
                  Sparse& library) {
  if (!library.looks.on()) return false;
  const auto due = [&](const std::optional<CheckedProduct>& product) {
    return product &&
           library.looks.due(call, library.services.records(), cost_of(*product, library.services));
  };
  if (info.opcode == opcode_of<sparse::Spmv>)
    return due(product_of(*reinterpret_cast<const sparse::Spmv*>(op)));
  return info.opcode == opcode_of<sparse::Spmm> &&
         due(product_of(*reinterpret_cast<const sparse::Spmm*>(op)));
}
Result<void> run_or_look(const sparse::Spmv& op, const Call& call, Sparse& library) {
  return carry_out_looked_at(op, call, library);
}
Result<void> run_or_look(const sparse::Spmm& op, const Call& call, Sparse& library) {
  return carry_out_looked_at(op, call, library);
}

}  // namespace troupe::host::cuda
