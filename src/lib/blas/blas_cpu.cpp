#include <cblas.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <initializer_list>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/lib/blas.hpp>

#include "device_host/engine/cpu/library.hpp"

/// OpenBLAS counts in 32 bits: level 1 goes through longer vectors piece by piece, levels 2 and 3
/// refuse them.
namespace troupe::host::cpu {
namespace {

constexpr std::int64_t kPiece = std::int64_t{1} << 30;

/// The function for float or for double.
template <class T, class Single, class Double>
constexpr auto select(Single single, Double twice) {
  if constexpr (std::is_same_v<T, float>) {
    return single;
  } else {
    return twice;
  }
}

/// Calls visit(first, count) for the pieces of a vector.
template <class Visit>
void in_pieces(std::int64_t n, Visit&& visit) {
  for (std::int64_t first = 0; first < n; first += kPiece)
    visit(first, static_cast<int>(std::min(kPiece, n - first)));
}

Result<void> require_int(std::initializer_list<std::int64_t> values) {
  if (std::max(values) <= INT_MAX) return {};
  return Error{Errc::unsupported, 0, "the cpu engine's BLAS takes sizes and increments below 2^31"};
}

CBLAS_TRANSPOSE flag(blas::Transpose transpose) {
  return transpose == blas::Transpose::no ? CblasNoTrans : CblasTrans;
}

/// One product of an operation like Gemm.
template <class T, class Op>
void multiply(const Op& op, T alpha, const T* a, const T* b, T beta, T* c) {
  select<T>(cblas_sgemm, cblas_dgemm)(CblasColMajor, flag(op.transpose_a), flag(op.transpose_b),
                                      static_cast<int>(op.m), static_cast<int>(op.n),
                                      static_cast<int>(op.k), alpha, a, static_cast<int>(op.lda), b,
                                      static_cast<int>(op.ldb), beta, c, static_cast<int>(op.ldc));
}

class Blas final
    : public LibraryHalfOf<Blas, blas::Axpy, blas::Dot, blas::Nrm2, blas::Scal, blas::Copy,
                           blas::Gemv, blas::Gemm, blas::GemmBatched, blas::GemmIndexed> {
 public:
  [[nodiscard]] Dependencies stands_on() const override {
    return {{"OpenBLAS", ::openblas_get_config(), &::openblas_get_config}};
  }
  explicit Blas(Services& services) : services_(services) {
    ::openblas_set_num_threads(std::max(1, services.threads()));
  }
  Result<void> run(const blas::Axpy& op, const Call& call);
  Result<void> run(const blas::Dot& op, const Call& call);
  Result<void> run(const blas::Nrm2& op, const Call& call);
  Result<void> run(const blas::Scal& op, const Call& call);
  Result<void> run(const blas::Copy& op, const Call& call);
  Result<void> run(const blas::Gemv& op, const Call& call);
  Result<void> run(const blas::Gemm& op, const Call& call);
  Result<void> run(const blas::GemmBatched& op, const Call& call);
  Result<void> run(const blas::GemmIndexed& op, const Call& call);

 private:
  Services& services_;
};

Result<void> Blas::run(const blas::Axpy& op, const Call& call) {
  if (auto fits = require_int({op.incx, op.incy}); !fits) return fits;
  return with_real(op.dtype, [&](auto zero) {
    using T = decltype(zero);
    return services_.submit(
        call, [n = op.n, incx = op.incx, incy = op.incy, alpha = Factor<T>(op.alpha, call),
               x = call.at<const T>(op.x), y = call.at<T>(op.y)] {
          in_pieces(n, [&](std::int64_t first, int count) {
            select<T>(cblas_saxpy, cblas_daxpy)(count, alpha.get(), x + first * incx,
                                                static_cast<int>(incx), y + first * incy,
                                                static_cast<int>(incy));
          });
        });
  });
}

Result<void> Blas::run(const blas::Dot& op, const Call& call) {
  if (auto fits = require_int({op.incx, op.incy}); !fits) return fits;
  return with_real(op.dtype, [&](auto zero) {
    using T = decltype(zero);
    return services_.submit(call, [n = op.n, incx = op.incx, incy = op.incy,
                                   x = call.at<const T>(op.x), y = call.at<const T>(op.y),
                                   result = call.at<T>(op.result)] {
      double sum = 0;
      in_pieces(n, [&](std::int64_t first, int count) {
        sum += select<T>(cblas_sdot, cblas_ddot)(count, x + first * incx, static_cast<int>(incx),
                                                 y + first * incy, static_cast<int>(incy));
      });
      *result = static_cast<T>(sum);
    });
  });
}

Result<void> Blas::run(const blas::Nrm2& op, const Call& call) {
  if (auto fits = require_int({op.incx}); !fits) return fits;
  return with_real(op.dtype, [&](auto zero) {
    using T = decltype(zero);
    return services_.submit(call, [n = op.n, incx = op.incx, x = call.at<const T>(op.x),
                                   result = call.at<T>(op.result)] {
      double norm = 0;
      in_pieces(n, [&](std::int64_t first, int count) {
        norm = std::hypot(norm, static_cast<double>(select<T>(cblas_snrm2, cblas_dnrm2)(
                                    count, x + first * incx, static_cast<int>(incx))));
      });
      *result = static_cast<T>(norm);
    });
  });
}

Result<void> Blas::run(const blas::Scal& op, const Call& call) {
  if (auto fits = require_int({op.incx}); !fits) return fits;
  return with_real(op.dtype, [&](auto zero) {
    using T = decltype(zero);
    return services_.submit(
        call, [n = op.n, incx = op.incx, alpha = Factor<T>(op.alpha, call), x = call.at<T>(op.x)] {
          in_pieces(n, [&](std::int64_t first, int count) {
            select<T>(cblas_sscal, cblas_dscal)(count, alpha.get(), x + first * incx,
                                                static_cast<int>(incx));
          });
        });
  });
}

Result<void> Blas::run(const blas::Copy& op, const Call& call) {
  if (auto fits = require_int({op.incx, op.incy}); !fits) return fits;
  return with_real(op.dtype, [&](auto zero) {
    using T = decltype(zero);
    return services_.submit(call, [n = op.n, incx = op.incx, incy = op.incy,
                                   x = call.at<const T>(op.x), y = call.at<T>(op.y)] {
      in_pieces(n, [&](std::int64_t first, int count) {
        select<T>(cblas_scopy, cblas_dcopy)(count, x + first * incx, static_cast<int>(incx),
                                            y + first * incy, static_cast<int>(incy));
      });
    });
  });
}

Result<void> Blas::run(const blas::Gemv& op, const Call& call) {
  if (auto fits = require_int({op.m, op.n, op.lda, op.incx, op.incy}); !fits) return fits;
  return with_real(op.dtype, [&](auto zero) {
    using T = decltype(zero);
    return services_.submit(call, [op, alpha = Factor<T>(op.alpha, call),
                                   beta = Factor<T>(op.beta, call), a = call.at<const T>(op.a),
                                   x = call.at<const T>(op.x), y = call.at<T>(op.y)] {
      select<T>(cblas_sgemv, cblas_dgemv)(CblasColMajor, flag(op.transpose), static_cast<int>(op.m),
                                          static_cast<int>(op.n), alpha.get(), a,
                                          static_cast<int>(op.lda), x, static_cast<int>(op.incx),
                                          beta.get(), y, static_cast<int>(op.incy));
    });
  });
}

Result<void> Blas::run(const blas::Gemm& op, const Call& call) {
  if (auto fits = require_int({op.m, op.n, op.k, op.lda, op.ldb, op.ldc}); !fits) return fits;
  return with_real(op.dtype, [&](auto zero) {
    using T = decltype(zero);
    return services_.submit(
        call, [op, alpha = Factor<T>(op.alpha, call), beta = Factor<T>(op.beta, call),
               a = call.at<const T>(op.a), b = call.at<const T>(op.b),
               c = call.at<T>(op.c)] { multiply(op, alpha.get(), a, b, beta.get(), c); });
  });
}

Result<void> Blas::run(const blas::GemmBatched& op, const Call& call) {
  if (auto fits = require_int({op.m, op.n, op.k, op.lda, op.ldb, op.ldc}); !fits) return fits;
  return with_real(op.dtype, [&]<class T>(T) {
    std::vector<T*> matrices;
    for (const auto& part : call.tail()) matrices.push_back(call.at<T>(part.range));
    return services_.submit(
        call, [op, matrices = std::move(matrices), alpha = Factor<T>(op.alpha, call),
               beta = Factor<T>(op.beta, call), a = call.at<const T>(op.a),
               b = call.at<const T>(op.b), c = call.at<T>(op.c)] {
          const auto count = static_cast<std::size_t>(op.batch);
          const T one = alpha.get(), other = beta.get();
          for (std::size_t i = 0; i < matrices.size() / 3; ++i)
            multiply(op, one, matrices[i], matrices[count + i], other, matrices[2 * count + i]);
          if (!matrices.empty()) return;
          for (std::int64_t i = 0; i < op.batch; ++i) {
            multiply(op, one, a + i * op.stride_a, b + i * op.stride_b, other, c + i * op.stride_c);
          }
        });
  });
}

Result<void> Blas::run(const blas::GemmIndexed& op, const Call& call) {
  if (auto fits = require_int({op.m, op.n, op.k, op.lda, op.ldb, op.ldc}); !fits) return fits;
  return with_real(op.dtype, [&]<class T>(T) {
    return services_.submit(
        call, [op, alpha = Factor<T>(op.alpha, call), beta = Factor<T>(op.beta, call),
               a = call.at<const T>(op.a), b = call.at<const T>(op.b), c = call.at<T>(op.c),
               offsets = call.at<const std::int64_t>(op.offsets),
               outside = call.at<std::int64_t>(op.outside)] {
          const auto last = blas::last_offsets(op);
          *outside = 0;
          for (std::int64_t i = 0; i < 3 * op.batch; ++i)
            *outside += offsets[i] < 0 || offsets[i] > last[static_cast<std::size_t>(i / op.batch)];
          if (*outside != 0) return;
          const T one = alpha.get(), other = beta.get();
          for (std::int64_t i = 0; i < op.batch; ++i) {
            multiply(op, one, a + offsets[i], b + offsets[op.batch + i], other,
                     c + offsets[2 * op.batch + i]);
          }
        });
  });
}

}  // namespace
}  // namespace troupe::host::cpu

extern "C" __attribute__((visibility("default"))) troupe::host::LibraryHalf* troupe_library_make(
    troupe::host::cpu::Services& services) {
  return new troupe::host::cpu::Blas(services);
}
