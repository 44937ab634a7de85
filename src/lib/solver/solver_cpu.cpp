#include <complex>
#include <limits>
// Else it takes C's complex types.
#define lapack_complex_float std::complex<float>
#define lapack_complex_double std::complex<double>
#include <cblas.h>
#include <lapacke.h>

#include <troupe/lib/solver.hpp>

#include "device_host/engine/cpu/library.hpp"

namespace troupe::host::cpu {
namespace {

using solver::Uplo;
using solver::Vectors;

/// LAPACKE's functions by type.
template <class T>
struct Lapack;
template <>
struct Lapack<float> {
  static constexpr auto potrf = LAPACKE_spotrf;
  static constexpr auto syevd = LAPACKE_ssyevd;
};
template <>
struct Lapack<double> {
  static constexpr auto potrf = LAPACKE_dpotrf;
  static constexpr auto syevd = LAPACKE_dsyevd;
};
template <>
struct Lapack<std::complex<float>> {
  static constexpr auto potrf = LAPACKE_cpotrf;
  static constexpr auto syevd = LAPACKE_cheevd;
};
template <>
struct Lapack<std::complex<double>> {
  static constexpr auto potrf = LAPACKE_zpotrf;
  static constexpr auto syevd = LAPACKE_zheevd;
};

/// Calls visit(T{}) for the op's dtype. The interface of LAPACKE has 32 bits for extents.
template <class Op, class Visit>
Result<void> with_factorable(const Op& op, Visit&& visit) {
  const DType dtype = op.dtype;
  if (op.lda > std::numeric_limits<lapack_int>::max())
    return Error{Errc::unsupported, 0, "the cpu engine has leading dimensions below 2^31"};
  if (dtype == DType::c64) return visit(std::complex<float>{});
  if (dtype == DType::c128) return visit(std::complex<double>{});
  return with_real(dtype, visit);
}

char letter(Uplo uplo) {
  return uplo == Uplo::lower ? 'L' : 'U';
}

class Solver final : public LibraryHalfOf<Solver, solver::Potrf, solver::Syevd> {
 public:
  explicit Solver(Services& services) : services_(services) {}
  [[nodiscard]] Dependencies stands_on() const override {
    lapack_int major = 0, minor = 0, patch = 0;
    LAPACKE_ilaver(&major, &minor, &patch);
    return {{"LAPACK",
             std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch),
             &LAPACKE_ilaver},
            {"OpenBLAS", ::openblas_get_config(), &::openblas_get_config}};
  }

  Result<void> run(const solver::Potrf& op, const Call& call) {
    return with_factorable(op, [&]<class T>(T) {
      return services_.submit(
          call, [op, a = call.at<T>(op.a), info = call.at<std::int32_t>(op.info)] {
            *info = op.n == 0 ? 0
                              : Lapack<T>::potrf(LAPACK_COL_MAJOR, letter(op.uplo),
                                                 static_cast<lapack_int>(op.n), a,
                                                 static_cast<lapack_int>(op.lda));
            require_memory(*info);
          });
    });
  }
  Result<void> run(const solver::Syevd& op, const Call& call) {
    return with_factorable(op, [&]<class T>(T) {
      using Real = RealOf<T>;
      return services_.submit(call, [op, a = call.at<T>(op.a), w = call.at<Real>(op.w),
                                     info = call.at<std::int32_t>(op.info)] {
        *info = op.n == 0
                    ? 0
                    : Lapack<T>::syevd(LAPACK_COL_MAJOR, op.vectors == Vectors::yes ? 'V' : 'N',
                                       letter(op.uplo), static_cast<lapack_int>(op.n), a,
                                       static_cast<lapack_int>(op.lda), w);
        require_memory(*info);
      });
    });
  }

 private:
  /// LAPACKE allocates its workspace itself.
  static void require_memory(lapack_int info) {
    if (info <= LAPACK_WORK_MEMORY_ERROR && info >= LAPACK_TRANSPOSE_MEMORY_ERROR)
      throw Exception({Errc::out_of_memory, info, "LAPACKE: no memory for its workspace"});
  }
  Services& services_;
};

}  // namespace
}  // namespace troupe::host::cpu

extern "C" __attribute__((visibility("default"))) troupe::host::LibraryHalf* troupe_library_make(
    troupe::host::cpu::Services& services) {
  return new troupe::host::cpu::Solver(services);
}
