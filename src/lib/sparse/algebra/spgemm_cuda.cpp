#include "lib/sparse/algebra/spgemm_cuda.hpp"

#include <algorithm>
#include <string_view>

#include "lib/sparse/common/descriptors_cuda.hpp"
#include "lib/sparse/common/status_cuda.hpp"

namespace troupe::host::cuda {
namespace {

/// The fastest one. Its results are the same, bit for bit, in every run, and the columns within a
/// row ascend (cuSPARSE, cusparseSpGEMM).
constexpr auto kAlgorithm = CUSPARSE_SPGEMM_ALG1;

template <class T>
constexpr T kOne = 1;
template <class T>
constexpr T kZero = 0;

/// One product: its descriptors, and the calls that all take them.
class Product {
 public:
  Product(cusparseHandle_t handle, cudaStream_t stream, const CsrTypes& types)
      : handle_(handle),
        stream_(stream),
        type_(value_type(types.value)),
        index_(index_type(types.index)) {}

  /// The columns and values of C come later.
  Result<void> describe(const CsrFactor& a, const CsrFactor& b, void* c_row_begin) {
    TROUPE_CUDA_TRY(describe(a, a_.out()));
    TROUPE_CUDA_TRY(describe(b, b_.out()));
    TROUPE_CUDA_TRY(cusparseCreateCsr(c_.out(), a.rows, b.columns, 0, c_row_begin, nullptr, nullptr,
                                      index_, index_, CUSPARSE_INDEX_BASE_ZERO, type_));
    TROUPE_CUDA_TRY(cusparseSpGEMM_createDescr(descriptor_.out()));
    return {};
  }
  Result<void> estimate(StreamMemory& memory) {
    return step_within(memory, "cusparseSpGEMM_workEstimation", cusparseSpGEMM_workEstimation);
  }
  Result<void> compute(StreamMemory& memory) {
    return step_within(memory, "cusparseSpGEMM_compute", cusparseSpGEMM_compute);
  }
  /// Nonzeros of C. After compute().
  Result<std::int64_t> nonzeros() const {
    std::int64_t rows = 0, columns = 0, count = 0;
    TROUPE_CUDA_TRY(cusparseSpMatGetSize(c_.get(), &rows, &columns, &count));
    return count;
  }
  Result<void> copy(const CsrProduct& c) {
    TROUPE_CUDA_TRY(cusparseCsrSetPointers(c_.get(), c.row_begin, c.column, c.value));
    return step("cusparseSpGEMM_copy", cusparseSpGEMM_copy);
  }

 private:
  cusparseStatus_t describe(const CsrFactor& factor, cusparseConstSpMatDescr_t* matrix) const {
    return cusparseCreateConstCsr(matrix, factor.rows, factor.columns, factor.nonzeros,
                                  factor.row_begin, factor.column, factor.value, index_, index_,
                                  CUSPARSE_INDEX_BASE_ZERO, type_);
  }
  template <class Function, class... Workspace>
  Result<void> step(std::string_view name, Function* function, Workspace... workspace) {
    const bool single = type_ == CUDA_R_32F;
    const void* const one = single ? static_cast<const void*>(&kOne<float>) : &kOne<double>;
    const void* const zero = single ? static_cast<const void*>(&kZero<float>) : &kZero<double>;
    const auto status = function(handle_, CUSPARSE_OPERATION_NON_TRANSPOSE,
                                 CUSPARSE_OPERATION_NON_TRANSPOSE, one, a_.get(), b_.get(), zero,
                                 c_.get(), type_, kAlgorithm, descriptor_.get(), workspace...);
    if (status != CUSPARSE_STATUS_SUCCESS) return failure(status, name);
    return {};
  }
  /// A step that is first called without memory, to say how much it needs.
  template <class Function>
  Result<void> step_within(StreamMemory& memory, std::string_view name, Function* function) {
    std::size_t bytes = 0;
    TROUPE_CUDA_PROPAGATE(step(name, function, &bytes, nullptr));
    const auto reserved = memory.reserve(bytes, stream_);
    if (!reserved) return reserved.error();
    return step(name, function, &bytes, *reserved);
  }

  cusparseHandle_t handle_;
  cudaStream_t stream_;
  cudaDataType type_;
  cusparseIndexType_t index_;
  Matrix a_, b_;
  WritableMatrix c_;
  Handle<ProductTraits> descriptor_;
};

}  // namespace

Result<std::int64_t> Multiplication::run(cusparseHandle_t handle, cudaStream_t stream,
                                         const CsrTypes& types, CsrFactor a, CsrFactor b,
                                         CsrProduct c) {
  const auto index_bytes = size_of(types.index), value_bytes = size_of(types.value);
  const auto empty = [&]() -> Result<std::int64_t> {
    TROUPE_CUDA_TRY(cudaMemsetAsync(c.row_begin, 0,
                                    (static_cast<std::size_t>(a.rows) + 1) * index_bytes, stream));
    return std::int64_t{0};
  };
  if (a.rows == 0 || b.columns == 0 || a.nonzeros == 0 || b.nonzeros == 0) return empty();

  StreamMemory zeros;  // cuSPARSE does not count without values
  if (a.value == nullptr || b.value == nullptr) {
    const auto bytes = static_cast<std::size_t>(std::max(a.nonzeros, b.nonzeros)) * value_bytes;
    const auto reserved = zeros.reserve(bytes, stream);
    if (!reserved) return reserved.error();
    TROUPE_CUDA_TRY(cudaMemsetAsync(*reserved, 0, bytes, stream));
    a.value = b.value = *reserved;
  }
  Product product(handle, stream, types);
  TROUPE_CUDA_PROPAGATE(product.describe(a, b, c.row_begin));
  TROUPE_CUDA_PROPAGATE(product.estimate(estimation_));
  TROUPE_CUDA_PROPAGATE(product.compute(products_));
  const auto count = product.nonzeros();
  if (!count || *count == 0) return count ? empty() : count;

  StreamMemory columns_aside, values_aside;  // the row offsets come with the rest or not at all
  if (*count > c.capacity) {
    const auto elements = static_cast<std::size_t>(*count);
    const auto columns = columns_aside.reserve(elements * index_bytes, stream);
    if (!columns) return columns.error();
    const auto values = values_aside.reserve(elements * value_bytes, stream);
    if (!values) return values.error();
    c.column = *columns;
    c.value = *values;
  }
  TROUPE_CUDA_PROPAGATE(product.copy(c));
  for (auto* const memory : {&estimation_, &products_}) {
    if (memory->bytes() > kKeptBytes) memory->give_back();
  }
  return count;
}

}  // namespace troupe::host::cuda
