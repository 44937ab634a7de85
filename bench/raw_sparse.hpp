#pragma once

#include <cusparse.h>

#include "raw_cuda.hpp"

/// Calls of cuSPARSE as a raw program makes them, with everything prepared beforehand. All matrices
/// are f64 with i32 indices.
namespace troupe::bench {

inline void must(cusparseStatus_t status) {
  if (status != CUSPARSE_STATUS_SUCCESS) throw std::runtime_error(cusparseGetErrorString(status));
}

/// y = A x, of a matrix that `describe` describes. Algorithms are those that troupe's engine takes,
/// because they alone repeat their bits.
class RawSpmv {
 public:
  RawSpmv(Raw& raw, cusparseSpMatDescr_t matrix, cusparseSpMVAlg_t algorithm, std::int64_t rows,
          double* x, double* y)
      : raw_(&raw), matrix_(matrix), algorithm_(algorithm) {
    must(cusparseCreate(&handle_));
    must(cusparseSetStream(handle_, raw.stream()));
    must(cusparseCreateDnVec(&x_, rows, x, CUDA_R_64F));
    must(cusparseCreateDnVec(&y_, rows, y, CUDA_R_64F));
    std::size_t bytes = 0;
    must(cusparseSpMV_bufferSize(handle_, CUSPARSE_OPERATION_NON_TRANSPOSE, &kOne, matrix_, x_,
                                 &kZero, y_, CUDA_R_64F, algorithm_, &bytes));
    workspace_ = raw.device(bytes + 1);
    must(cusparseSpMV_preprocess(handle_, CUSPARSE_OPERATION_NON_TRANSPOSE, &kOne, matrix_, x_,
                                 &kZero, y_, CUDA_R_64F, algorithm_, workspace_));
  }
  ~RawSpmv() {
    raw_->wait();
    (void)cusparseDestroyDnVec(x_);
    (void)cusparseDestroyDnVec(y_);
    (void)cusparseDestroySpMat(matrix_);
    (void)cusparseDestroy(handle_);
  }
  RawSpmv(const RawSpmv&) = delete;
  RawSpmv& operator=(const RawSpmv&) = delete;

  void multiply() {
    must(cusparseSpMV(handle_, CUSPARSE_OPERATION_NON_TRANSPOSE, &kOne, matrix_, x_, &kZero, y_,
                      CUDA_R_64F, algorithm_, workspace_));
  }

 private:
  static constexpr double kOne = 1, kZero = 0;
  Raw* raw_;
  cusparseSpMatDescr_t matrix_;
  cusparseSpMVAlg_t algorithm_;
  cusparseHandle_t handle_ = nullptr;
  cusparseDnVecDescr_t x_ = nullptr, y_ = nullptr;
  void* workspace_ = nullptr;
};

/// C = A B, both of them row-major with `n` columns.
class RawSpmm {
 public:
  RawSpmm(Raw& raw, cusparseSpMatDescr_t matrix, std::int64_t rows, std::int64_t n, double* b,
          double* c)
      : raw_(&raw), matrix_(matrix) {
    must(cusparseCreate(&handle_));
    must(cusparseSetStream(handle_, raw.stream()));
    must(cusparseCreateDnMat(&b_, rows, n, n, b, CUDA_R_64F, CUSPARSE_ORDER_ROW));
    must(cusparseCreateDnMat(&c_, rows, n, n, c, CUDA_R_64F, CUSPARSE_ORDER_ROW));
    std::size_t bytes = 0;
    must(cusparseSpMM_bufferSize(handle_, kPlain, kPlain, &kOne, matrix_, b_, &kZero, c_,
                                 CUDA_R_64F, CUSPARSE_SPMM_CSR_ALG2, &bytes));
    workspace_ = raw.device(bytes + 1);
    must(cusparseSpMM_preprocess(handle_, kPlain, kPlain, &kOne, matrix_, b_, &kZero, c_,
                                 CUDA_R_64F, CUSPARSE_SPMM_CSR_ALG2, workspace_));
  }
  ~RawSpmm() {
    raw_->wait();
    (void)cusparseDestroyDnMat(b_);
    (void)cusparseDestroyDnMat(c_);
    (void)cusparseDestroySpMat(matrix_);
    (void)cusparseDestroy(handle_);
  }
  RawSpmm(const RawSpmm&) = delete;
  RawSpmm& operator=(const RawSpmm&) = delete;

  void multiply() {
    must(cusparseSpMM(handle_, kPlain, kPlain, &kOne, matrix_, b_, &kZero, c_, CUDA_R_64F,
                      CUSPARSE_SPMM_CSR_ALG2, workspace_));
  }

 private:
  static constexpr double kOne = 1, kZero = 0;
  static constexpr auto kPlain = CUSPARSE_OPERATION_NON_TRANSPOSE;
  Raw* raw_;
  cusparseSpMatDescr_t matrix_;
  cusparseHandle_t handle_ = nullptr;
  cusparseDnMatDescr_t b_ = nullptr, c_ = nullptr;
  void* workspace_ = nullptr;
};

/// x = the solution of the lower triangle of A.
class RawSpsv {
 public:
  RawSpsv(Raw& raw, cusparseSpMatDescr_t matrix, std::int64_t rows, double* b, double* x)
      : raw_(&raw), matrix_(matrix) {
    must(cusparseCreate(&handle_));
    must(cusparseSetStream(handle_, raw.stream()));
    auto half = CUSPARSE_FILL_MODE_LOWER;
    auto diagonal = CUSPARSE_DIAG_TYPE_NON_UNIT;
    must(cusparseSpMatSetAttribute(matrix_, CUSPARSE_SPMAT_FILL_MODE, &half, sizeof half));
    must(cusparseSpMatSetAttribute(matrix_, CUSPARSE_SPMAT_DIAG_TYPE, &diagonal, sizeof diagonal));
    must(cusparseCreateDnVec(&b_, rows, b, CUDA_R_64F));
    must(cusparseCreateDnVec(&x_, rows, x, CUDA_R_64F));
    must(cusparseSpSV_createDescr(&description_));
    std::size_t bytes = 0;
    must(cusparseSpSV_bufferSize(handle_, CUSPARSE_OPERATION_NON_TRANSPOSE, &kOne, matrix_, b_, x_,
                                 CUDA_R_64F, CUSPARSE_SPSV_ALG_DEFAULT, description_, &bytes));
    must(cusparseSpSV_analysis(handle_, CUSPARSE_OPERATION_NON_TRANSPOSE, &kOne, matrix_, b_, x_,
                               CUDA_R_64F, CUSPARSE_SPSV_ALG_DEFAULT, description_,
                               raw.device(bytes + 1)));
  }
  ~RawSpsv() {
    raw_->wait();
    (void)cusparseSpSV_destroyDescr(description_);
    (void)cusparseDestroyDnVec(b_);
    (void)cusparseDestroyDnVec(x_);
    (void)cusparseDestroySpMat(matrix_);
    (void)cusparseDestroy(handle_);
  }
  RawSpsv(const RawSpsv&) = delete;
  RawSpsv& operator=(const RawSpsv&) = delete;

  void solve() {
    must(cusparseSpSV_solve(handle_, CUSPARSE_OPERATION_NON_TRANSPOSE, &kOne, matrix_, b_, x_,
                            CUDA_R_64F, CUSPARSE_SPSV_ALG_DEFAULT, description_));
  }

 private:
  static constexpr double kOne = 1;
  Raw* raw_;
  cusparseSpMatDescr_t matrix_;
  cusparseHandle_t handle_ = nullptr;
  cusparseDnVecDescr_t b_ = nullptr, x_ = nullptr;
  cusparseSpSVDescr_t description_ = nullptr;
};

}  // namespace troupe::bench
