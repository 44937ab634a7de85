#include <climits>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "lib/blas/cuda.hpp"

/// Lists of matrices on the cuda engine.
namespace troupe::host::cuda {
namespace {

using Task = blas::LapackBatched::Task;

/// The functions of cuBLAS that LAPACK has the names of; they count in 32 bits.
template <class T>
struct BatchedLapack;
#define TROUPE_CUBLAS_LAPACK(T, S)                           \
  template <>                                                \
  struct BatchedLapack<T> {                                  \
    static constexpr auto getrf = cublas##S##getrfBatched;   \
    static constexpr auto getrs = cublas##S##getrsBatched;   \
    static constexpr auto getri = cublas##S##getriBatched;   \
    static constexpr auto matinv = cublas##S##matinvBatched; \
    static constexpr auto geqrf = cublas##S##geqrfBatched;   \
    static constexpr auto gels = cublas##S##gelsBatched;     \
  };
TROUPE_CUBLAS_LAPACK(float, S)
TROUPE_CUBLAS_LAPACK(double, D)
TROUPE_CUBLAS_LAPACK(std::complex<float>, C)
TROUPE_CUBLAS_LAPACK(std::complex<double>, Z)
#undef TROUPE_CUBLAS_LAPACK

}  // namespace

Result<void> scale_each(const blas::GemvBatched& op, const Call& call, void** list, Blas& library) {
  constexpr auto kPlain = CUBLAS_OP_N;
  const auto length = op.length_y(), step = std::abs(op.incy);
  auto** const of_y = list == nullptr ? nullptr : list + 2 * op.batch;
  if (is_narrow(op.dtype)) {
    return library.issue_as<float>(op, call, {&op.alpha, &op.beta}, [&](const Given<float>& with) {
      const auto type = type_of(op.dtype), type_y = type_of(op.y_dtype);
      if (of_y == nullptr) {
        auto* const y = call.at(op.y);
        return cublasGemmStridedBatchedEx_64(with.handle, kPlain, kPlain, 1, length, 0,
                                             with.scalar(0), y, type, 1, 0, y, type, 1, 0,
                                             with.scalar(1), y, type_y, step, op.stride_y, op.batch,
                                             CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
      }
      return cublasGemmBatchedEx_64(with.handle, kPlain, kPlain, 1, length, 0, with.scalar(0), of_y,
                                    type, 1, of_y, type, 1, with.scalar(1), of_y, type_y, step,
                                    op.batch, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    });
  }
  return library.issue(op, call, {&op.alpha, &op.beta}, [&]<class T>(const Given<T>& with) {
    if (of_y == nullptr) {
      auto* const y = with.at(op.y);
      return Cublas<T>::gemm_strided(with.handle, kPlain, kPlain, 1, length, 0, with.scalar(0), y,
                                     1, 0, y, 1, 0, with.scalar(1), y, step, op.stride_y, op.batch);
    }
    auto** const y = reinterpret_cast<Native<T>**>(of_y);
    return Cublas<T>::gemm_batched(with.handle, kPlain, kPlain, 1, length, 0, with.scalar(0), y, 1,
                                   y, 1, with.scalar(1), y, step, op.batch);
  });
}

Result<void> run(const blas::GemvBatched& op, const Call& call, Blas& library) {
  if (op.length_y() == 0 || op.batch == 0) return {};
  void** list = nullptr;
  if (!call.tail().empty()) {
    const auto written = addresses_of_tail(call, library);
    if (!written) return written.error();
    list = *written;
  }
  if (op.length_x() == 0) return scale_each(op, call, list, library);
  // Calls the functions for T, with the type X of A and x and Y of y.
  const auto multiply = [&]<class T, class X, class Y>(const Given<T>& with, X*, Y*,
                                                       auto at_strides, auto of_lists) {
    const auto transpose = operation(op.transpose);
    if (list == nullptr) {
      return at_strides(with.handle, transpose, op.m, op.n, with.scalar(0), call.at<X>(op.a),
                        op.lda, op.stride_a, call.at<X>(op.x), op.incx, op.stride_x, with.scalar(1),
                        call.at<Y>(op.y), op.incy, op.stride_y, op.batch);
    }
    return of_lists(with.handle, transpose, op.m, op.n, with.scalar(0), reinterpret_cast<X**>(list),
                    op.lda, reinterpret_cast<X**>(list + op.batch), op.incx, with.scalar(1),
                    reinterpret_cast<Y**>(list + 2 * op.batch), op.incy, op.batch);
  };
  if (is_narrow(op.dtype)) {
    return library.issue_as<float>(op, call, {&op.alpha, &op.beta}, [&](const Given<float>& with) {
      __half* const half = nullptr;
      __nv_bfloat16* const brain = nullptr;
      float* const single = nullptr;
      const bool wide = op.y_dtype == DType::f32;
      if (op.dtype == DType::f16) {
        return wide ? multiply(with, half, single, cublasHSSgemvStridedBatched_64,
                               cublasHSSgemvBatched_64)
                    : multiply(with, half, half, cublasHSHgemvStridedBatched_64,
                               cublasHSHgemvBatched_64);
      }
      return wide ? multiply(with, brain, single, cublasTSSgemvStridedBatched_64,
                             cublasTSSgemvBatched_64)
                  : multiply(with, brain, brain, cublasTSTgemvStridedBatched_64,
                             cublasTSTgemvBatched_64);
    });
  }
  return library.issue(op, call, {&op.alpha, &op.beta}, [&]<class T>(const Given<T>& with) {
    Native<T>* const numbers = nullptr;
    return multiply(with, numbers, numbers, Cublas<T>::gemv_strided, Cublas<T>::gemv_batched);
  });
}

Result<void> multiply_each(const blas::GemmGrouped& op, const Call& call, Blas& library) {
  const std::span groups(reinterpret_cast<const blas::GemmGroup*>(call.data().data()),
                         static_cast<std::size_t>(op.groups));
  const auto tail = call.tail();
  const std::size_t products = tail.size() / 3;
  std::size_t next = 0;
  for (const auto& group : groups) {
    for (std::int64_t i = 0; i < group.batch; ++i, ++next) {
      blas::GemmEx one;
      one.dtype = one.c_dtype = op.dtype;
      one.compute = op.dtype == DType::f64 ? blas::Compute::f64 : blas::Compute::f32;
      one.transpose_a = group.transpose_a, one.transpose_b = group.transpose_b;
      one.m = group.m, one.n = group.n, one.k = group.k;
      one.lda = group.lda, one.ldb = group.ldb, one.ldc = group.ldc;
      const bool twice = op.dtype == DType::f64;
      one.alpha = twice ? Scalar::of(group.alpha) : Scalar::of(static_cast<float>(group.alpha));
      one.beta = twice ? Scalar::of(group.beta) : Scalar::of(static_cast<float>(group.beta));
      one.a = tail[next].range, one.b = tail[products + next].range;
      one.c = tail[2 * products + next].range;
      TROUPE_CUDA_PROPAGATE(library.carry_out(one, call));
    }
  }
  return {};
}

Result<void> run(const blas::GemmGrouped& op, const Call& call, Blas& library) {
  if (call.tail().empty()) return {};
  // A group with a matrix that is not aligned to 16 bytes may end the context: "misaligned
  // address".
  const bool aligned = std::all_of(call.tail().begin(), call.tail().end(), [&](const auto& part) {
    return reinterpret_cast<std::uintptr_t>(call.at(part.range)) % 16 == 0;
  });
  if (!aligned) return multiply_each(op, call, library);
  const auto written = addresses_of_tail(call, library);
  if (!written) return written.error();
  const std::size_t products = call.tail().size() / 3;
  // In host memory; the call copies them. Groups of nothing are not cuBLAS's.
  std::vector<cublasOperation_t> transpose_a, transpose_b;
  std::vector<std::int64_t> m, n, k, lda, ldb, ldc, batch;
  std::vector<double> alpha, beta;
  const std::span groups(reinterpret_cast<const blas::GemmGroup*>(call.data().data()),
                         static_cast<std::size_t>(op.groups));
  for (const auto& group : groups) {
    if (group.batch == 0) continue;
    transpose_a.push_back(operation(group.transpose_a));
    transpose_b.push_back(operation(group.transpose_b));
    m.push_back(group.m), n.push_back(group.n), k.push_back(group.k);
    lda.push_back(group.lda), ldb.push_back(group.ldb), ldc.push_back(group.ldc);
    batch.push_back(group.batch);
    alpha.push_back(group.alpha), beta.push_back(group.beta);
  }
  const std::vector<float> alpha_f32(alpha.begin(), alpha.end()),
      beta_f32(beta.begin(), beta.end());
  const bool twice = op.dtype == DType::f64;
  return library.issue_as<float>(op, call, ScalarsAt::host, [&](const Given<float>& with) {
    const auto type = type_of(op.dtype);
    auto** const list = *written;
    return cublasGemmGroupedBatchedEx_64(
        with.handle, transpose_a.data(), transpose_b.data(), m.data(), n.data(), k.data(),
        twice ? static_cast<const void*>(alpha.data()) : alpha_f32.data(), list, type, lda.data(),
        list + products, type, ldb.data(),
        twice ? static_cast<const void*>(beta.data()) : beta_f32.data(), list + 2 * products, type,
        ldc.data(), static_cast<std::int64_t>(batch.size()), batch.data(),
        twice ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F);
  });
}

Result<void> run(const blas::TrsmBatched& op, const Call& call, Blas& library) {
  if (op.m == 0 || op.n == 0 || op.batch == 0) return {};
  const auto written = addresses_of_tail(call, library);
  if (!written) return written.error();
  return library.issue(op, call, {&op.alpha}, [&]<class T>(const Given<T>& with) {
    auto** const list = reinterpret_cast<Native<T>**>(*written);
    return Cublas<T>::trsm_batched(with.handle, flag(op.side), flag(op.uplo),
                                   operation(op.transpose), flag(op.diagonal), op.m, op.n,
                                   with.scalar(0), list, op.lda, list + op.batch, op.ldb, op.batch);
  });
}

Result<void> run(const blas::GetrfBatched& op, const Call& call, Blas& library) {
  if (op.batch == 0) return {};
  if (op.batch > INT_MAX) return Error{Errc::unsupported, 0, "the batch is above 2^31 - 1"};
  auto* const info = call.at<int>(op.info);
  if (op.n == 0) return library.write_zeros(info, op.batch, call);
  const auto written = addresses_of_tail(call, library);
  if (!written) return written.error();
  return library.issue(op, call, ScalarsAt::host, [&]<class T>(const Given<T>& with) {
    auto* const pivots = op.pivots.present() ? call.at<int>(op.pivots) : nullptr;
    return BatchedLapack<T>::getrf(
        with.handle, static_cast<int>(op.n), reinterpret_cast<Native<T>**>(*written),
        static_cast<int>(op.lda), pivots, info, static_cast<int>(op.batch));
  });
}

Result<void> run(const blas::LapackBatched& op, const Call& call, Blas& library) {
  if (op.batch == 0) return {};
  if (op.batch > INT_MAX) return Error{Errc::unsupported, 0, "the batch is above 2^31 - 1"};
  auto* const info = call.at<int>(op.info);
  const bool has_right_sides = op.task == Task::getrs || op.task == Task::gels;
  if (op.m == 0 || op.n == 0 || (has_right_sides && op.nrhs == 0))
    return op.tells_info() ? library.write_zeros(info, op.batch, call) : Result<void>();
  const auto written = addresses_of_tail(call, library);
  if (!written) return written.error();
  return library.issue(op, call, ScalarsAt::host, [&]<class T>(const Given<T>& with) {
    using L = BatchedLapack<T>;
    auto** const a = reinterpret_cast<Native<T>**>(*written);
    auto** const second = a + op.batch;
    const auto* const pivots = op.pivots.present() ? call.at<const int>(op.pivots) : nullptr;
    const int m = static_cast<int>(op.m), n = static_cast<int>(op.n),
              nrhs = static_cast<int>(op.nrhs), lda = static_cast<int>(op.lda),
              ldb = static_cast<int>(op.ldb), batch = static_cast<int>(op.batch);
    int wrong_argument = 0;  // check() lets none pass
    switch (op.task) {
      case Task::getrs:
        return L::getrs(with.handle, operation(op.transpose), n, nrhs, a, lda, pivots, second, ldb,
                        &wrong_argument, batch);
      case Task::getri: return L::getri(with.handle, n, a, lda, pivots, second, ldb, info, batch);
      case Task::matinv: return L::matinv(with.handle, n, a, lda, second, ldb, info, batch);
      case Task::geqrf: return L::geqrf(with.handle, m, n, a, lda, second, &wrong_argument, batch);
      default:
        return L::gels(with.handle, CUBLAS_OP_N, m, n, nrhs, a, lda, second, ldb, &wrong_argument,
                       info, batch);
    }
  });
}

TROUPE_HANDLERS(Blas)

}  // namespace troupe::host::cuda
