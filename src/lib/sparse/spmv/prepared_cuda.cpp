#include "lib/sparse/spmv/prepared_cuda.hpp"

#include <algorithm>

#include "lib/sparse/common/status_cuda.hpp"
#include "lib/sparse/transpose/columns_cuda.hpp"

namespace troupe::host::cuda {
namespace {

cusparseStatus_t describe(const PreparedMatrix::Key& key, cusparseConstSpMatDescr_t* matrix) {
  const auto& form = key.form;
  const auto type = value_type(key.dtype);
  const auto index = index_type(form.index_dtype);
  switch (form.format) {
    case sparse::Format::coo:
      return cusparseCreateConstCoo(matrix, form.rows, form.columns, form.nonzeros, key.outer,
                                    key.inner, key.value, index, CUSPARSE_INDEX_BASE_ZERO, type);
    case sparse::Format::sell:
      return cusparseCreateConstSlicedEll(matrix, form.rows, form.columns, form.nonzeros,
                                          form.stored, form.block, key.outer, key.inner, key.value,
                                          index, index, CUSPARSE_INDEX_BASE_ZERO, type);
    default:
      return cusparseCreateConstCsr(matrix, form.rows, form.columns, form.nonzeros, key.outer,
                                    key.inner, key.value, index, index, CUSPARSE_INDEX_BASE_ZERO,
                                    type);
  }
}

}  // namespace

cusparseSpMVAlg_t PreparedMatrix::algorithm() const noexcept {
  switch (key.form.format) {
    case sparse::Format::coo: return CUSPARSE_SPMV_COO_ALG2;
    case sparse::Format::sell: return CUSPARSE_SPMV_SELL_ALG1;
    default: return CUSPARSE_SPMV_CSR_ALG2;
  }
}

Result<PreparedMatrix*> PreparedMatrices::find(Services& services, Queue queue,
                                               cusparseHandle_t handle,
                                               const PreparedMatrix::Key& key,
                                               const VectorOperands& vectors) {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const PreparedMatrix& entry) { return entry.key == key; });
  if (found != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, found);
    TROUPE_CUDA_TRY(cusparseDnVecSetValues(entries_.front().x.get(), vectors.x));
    TROUPE_CUDA_TRY(cusparseDnVecSetValues(entries_.front().y.get(), vectors.y));
    return &entries_.front();
  }

  if (services.records()) return Services::not_recorded("what it prepares for a matrix");
  std::list<PreparedMatrix> one(1);
  auto& made = one.front();
  made.key = key;
  const auto sum_type = value_type(key.sum_dtype);
  constexpr auto kPlain = CUSPARSE_OPERATION_NON_TRANSPOSE;
  TROUPE_CUDA_TRY(describe(key, made.matrix.out()));
  TROUPE_CUDA_TRY(
      cusparseCreateDnVec(made.x.out(), key.form.columns, vectors.x, value_type(key.dtype)));
  TROUPE_CUDA_TRY(
      cusparseCreateDnVec(made.y.out(), key.form.rows, vectors.y, value_type(key.y_dtype)));
  std::size_t bytes = 0;
  TROUPE_CUDA_TRY(cusparseSpMV_bufferSize(handle, kPlain, vectors.alpha, made.matrix.get(),
                                          made.x.get(), vectors.beta, made.y.get(), sum_type,
                                          made.algorithm(), &bytes));
  forget(services, kMost - 1);
  const auto workspace = made.workspace.reserve(bytes, services.stream(queue));
  if (!workspace) return workspace.error();
  // A matrix in coordinate form has nothing that could be prepared.
  if (key.form.format != sparse::Format::coo) {
    TROUPE_CUDA_TRY(cusparseSpMV_preprocess(handle, kPlain, vectors.alpha, made.matrix.get(),
                                            made.x.get(), vectors.beta, made.y.get(), sum_type,
                                            made.algorithm(), *workspace));
  }
  entries_.splice(entries_.begin(), one);
  return &entries_.front();
}

void PreparedMatrices::overwrites(Services& services, const Operand& range) {
  std::erase_if(entries_, [&](const PreparedMatrix& entry) {
    if (!overlap(entry.structure[0], range) && !overlap(entry.structure[1], range)) return false;
    services.note_given_back();
    return true;
  });
}

void PreparedMatrices::forget(Services& services, std::size_t keep) {
  while (entries_.size() > keep) {
    entries_.pop_back();
    services.note_given_back();
  }
}

}  // namespace troupe::host::cuda
