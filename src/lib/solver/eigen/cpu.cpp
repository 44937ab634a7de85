#include "lib/solver/eigen/eigenvalues_cpu.hpp"

/// Eigenvalues on the cpu engine.
namespace troupe::host::cpu {
namespace {

char letter(solver::Range range) {
  constexpr char kLetters[] = {'A', 'V', 'I'};
  return kLetters[static_cast<std::size_t>(range)];
}

}  // namespace

Result<void> run(const solver::Syevd& op, const Call& call, Solver& library) {
  return with_number(op.dtype, {op.lda}, [&]<class T>(T) {
    return library.queue_for_info(
        call, op.info, op.n == 0,
        [op, a = call.at<T>(op.a), w = call.at<RealOf<T>>(op.w)] { return eigenvalues(op, a, w); });
  });
}

Result<void> run(const solver::Syevj& op, const Call& call, Solver& library) {
  return with_number(op.dtype, {op.lda}, [&]<class T>(T) {
    return library.queue<solver::Sweeps>(
        call, op.told, op.n == 0,
        [op, a = call.at<T>(op.a), w = call.at<RealOf<T>>(op.w)](solver::Sweeps& told) {
          told.info = Solver::require_memory(eigenvalues(op, a, w));
        });
  });
}

Result<void> run(const solver::Syevdx& op, const Call& call, Solver& library) {
  return with_number(op.dtype, {op.lda}, [&]<class T>(T) {
    using Real = RealOf<T>;
    return library.queue<solver::FoundEigenvalues>(
        call, op.told, op.n == 0,
        [op, a = call.at<T>(op.a), w = call.at<Real>(op.w)](solver::FoundEigenvalues& told) {
          if (!half_finite(op.uplo, op.n, a, op.lda)) {
            told.info = not_finite(w, op.n);
            return;
          }
          const bool wanted = op.vectors == solver::Vectors::yes;
          std::vector<T> vectors(wanted ? static_cast<std::size_t>(op.n * op.n) : 1);
          std::vector<lapack_int> support(2 * static_cast<std::size_t>(op.n));
          lapack_int found = 0;
          told.info = Solver::require_memory(Lapack<T>::evr(
              LAPACK_COL_MAJOR, letter(op.vectors), letter(op.range), letter(op.uplo), to_int(op.n),
              a, to_int(op.lda), static_cast<Real>(op.from), static_cast<Real>(op.to),
              to_int(op.first), to_int(op.last), Real(0), &found, w, vectors.data(), to_int(op.n),
              support.data()));
          told.count = found;
          if (wanted) copy_matrix(op.n, found, vectors.data(), op.n, a, op.lda);
        });
  });
}

Result<void> run(const solver::Sygvd& op, const Call& call, Solver& library) {
  return with_number(op.dtype, {op.lda, op.ldb}, [&]<class T>(T) {
    return library.queue_for_info(
        call, op.info, op.n == 0,
        [op, a = call.at<T>(op.a), b = call.at<T>(op.b), w = call.at<RealOf<T>>(op.w)] {
          return eigenvalues(op, a, b, w);
        });
  });
}

Result<void> run(const solver::Sygvj& op, const Call& call, Solver& library) {
  return with_number(op.dtype, {op.lda, op.ldb}, [&]<class T>(T) {
    return library.queue<solver::Sweeps>(call, op.told, op.n == 0,
                                         [op, a = call.at<T>(op.a), b = call.at<T>(op.b),
                                          w = call.at<RealOf<T>>(op.w)](solver::Sweeps& told) {
                                           told.info =
                                               Solver::require_memory(eigenvalues(op, a, b, w));
                                         });
  });
}

Result<void> run(const solver::Sygvdx& op, const Call& call, Solver& library) {
  return with_number(op.dtype, {op.lda, op.ldb}, [&]<class T>(T) {
    using Real = RealOf<T>;
    return library.queue<solver::FoundEigenvalues>(
        call, op.told, op.n == 0,
        [op, a = call.at<T>(op.a), b = call.at<T>(op.b),
         w = call.at<Real>(op.w)](solver::FoundEigenvalues& told) {
          if (!half_finite(op.uplo, op.n, a, op.lda) || !half_finite(op.uplo, op.n, b, op.ldb)) {
            told.info = not_finite(w, op.n);
            return;
          }
          const bool wanted = op.vectors == solver::Vectors::yes;
          std::vector<T> vectors(wanted ? static_cast<std::size_t>(op.n * op.n) : 1);
          std::vector<lapack_int> failed(static_cast<std::size_t>(op.n));
          lapack_int found = 0;
          told.info = Solver::require_memory(Lapack<T>::gvx(
              LAPACK_COL_MAJOR, static_cast<lapack_int>(op.problem), letter(op.vectors),
              letter(op.range), letter(op.uplo), to_int(op.n), a, to_int(op.lda), b, to_int(op.ldb),
              static_cast<Real>(op.from), static_cast<Real>(op.to), to_int(op.first),
              to_int(op.last), Real(0), &found, w, vectors.data(), to_int(op.n), failed.data()));
          told.count = found;
          if (wanted) copy_matrix(op.n, found, vectors.data(), op.n, a, op.lda);
        });
  });
}

Result<void> run(const solver::Geev& op, const Call& call, Solver& library) {
  return with_number(op.dtype, {op.lda, op.ldvr}, [&]<class T>(T) {
    using Real = RealOf<T>;
    auto* const vr = op.vr.present() ? call.at<T>(op.vr) : nullptr;
    return library.queue_for_info(
        call, op.info, op.n == 0,
        [op, vr, a = call.at<T>(op.a), w = call.at<std::complex<Real>>(op.w)] {
          if (!all_finite(op.n, op.n, a, op.lda)) return not_finite(w, op.n);
          const char right = vr != nullptr ? 'V' : 'N';
          const auto n = to_int(op.n), ldvr = to_int(vr != nullptr ? op.ldvr : 1);
          if constexpr (ComplexElement<T>) {
            return Lapack<T>::geev(LAPACK_COL_MAJOR, 'N', right, n, a, to_int(op.lda), w, nullptr,
                                   1, vr, ldvr);
          } else {
            std::vector<Real> real(static_cast<std::size_t>(op.n)), imaginary(real.size());
            const auto info = Lapack<T>::geev(LAPACK_COL_MAJOR, 'N', right, n, a, to_int(op.lda),
                                              real.data(), imaginary.data(), nullptr, 1, vr, ldvr);
            for (std::size_t i = 0; i < real.size(); ++i) w[i] = {real[i], imaginary[i]};
            return info;
          }
        });
  });
}

TROUPE_HANDLERS(Solver)

}  // namespace troupe::host::cpu
