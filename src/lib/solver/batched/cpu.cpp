#include "lib/solver/eigen/eigenvalues_cpu.hpp"
#include "lib/solver/svd/decompose_cpu.hpp"

/// Batches of matrices on the cpu engine, one after the other.
namespace troupe::host::cpu {

Result<void> run(const solver::PotrfBatched& op, const Call& call, Solver& library) {
  return with_number(op.dtype, {op.lda}, [&]<class T>(T) {
    return library.services.submit(call, [op, list = list_of<T>(call),
                                          info = call.at<std::int32_t>(op.info)] {
      for (std::size_t i = 0; i < list.size(); ++i) {
        info[i] =
            op.n == 0 ? 0 : Solver::require_memory(factor_definite(op.uplo, op.n, list[i], op.lda));
      }
    });
  });
}

Result<void> run(const solver::PotrsBatched& op, const Call& call, Solver& library) {
  return with_number(op.dtype, {op.lda, op.ldb}, [&]<class T>(T) {
    return library.services.submit(call, [op, list = list_of<T>(call)] {
      const auto count = static_cast<std::size_t>(op.batch);
      for (std::size_t i = 0; i < count && op.n > 0; ++i) {
        Solver::require_memory(Lapack<T>::potrs(LAPACK_COL_MAJOR, letter(op.uplo), to_int(op.n), 1,
                                                list[i], to_int(op.lda), list[count + i],
                                                to_int(op.ldb)));
      }
    });
  });
}

template <class Op>
Result<void> queue_eigenvalues(const Op& op, const Call& call, Solver& library) {
  return with_number(op.dtype, {op.lda}, [&]<class T>(T) {
    return library.services.submit(call, [op, a = call.at<T>(op.a), w = call.at<RealOf<T>>(op.w),
                                          info = call.at<std::int32_t>(op.info)] {
      for (std::int64_t i = 0; i < op.batch; ++i) {
        info[i] =
            op.n == 0
                ? 0
                : Solver::require_memory(eigenvalues(op, a + i * op.lda * op.n, w + i * op.n));
      }
    });
  });
}

Result<void> run(const solver::SyevBatched& op, const Call& call, Solver& library) {
  return queue_eigenvalues(op, call, library);
}
Result<void> run(const solver::SyevjBatched& op, const Call& call, Solver& library) {
  return queue_eigenvalues(op, call, library);
}

Result<void> run(const solver::GesvdjBatched& op, const Call& call, Solver& library) {
  return with_number(op.dtype, {op.lda, op.ldu, op.ldv}, [&]<class T>(T) {
    const bool wanted = op.vectors == solver::Vectors::yes;
    auto* const u = wanted ? call.at<T>(op.u) : nullptr;
    auto* const v = wanted ? call.at<T>(op.v) : nullptr;
    return library.services.submit(
        call, [op, u, v, a = call.at<T>(op.a), s = call.at<RealOf<T>>(op.s),
               info = call.at<std::int32_t>(op.info)] {
          const auto k = std::min(op.m, op.n);
          for (std::int64_t i = 0; i < op.batch; ++i) {
            info[i] = k == 0 ? 0
                             : Solver::require_memory(
                                   decompose(op.m, op.n, a + i * op.lda * op.n, op.lda, s + i * k,
                                             u != nullptr ? u + i * op.ldu * op.m : nullptr, op.ldu,
                                             v != nullptr ? v + i * op.ldv * op.n : nullptr, op.ldv,
                                             solver::Extent::full));
          }
        });
  });
}

Result<void> run(const solver::GesvdaBatched& op, const Call& call, Solver& library) {
  return with_number(op.dtype, {op.m, op.lda, op.ldu, op.ldv}, [&]<class T>(T) {
    const bool wanted = op.vectors == solver::Vectors::yes;
    auto* const u = wanted ? call.at<T>(op.u) : nullptr;
    auto* const v = wanted ? call.at<T>(op.v) : nullptr;
    return library.services.submit(
        call, [op, u, v, a = call.at<const T>(op.a), s = call.at<RealOf<T>>(op.s),
               info = call.at<std::int32_t>(op.info)] {
          std::vector<T> own(static_cast<std::size_t>(op.m * op.n));  // it is destroyed
          for (std::int64_t i = 0; i < op.batch; ++i) {
            copy_matrix(op.m, op.n, a + i * op.lda * op.n, op.lda, own.data(), op.m);
            info[i] = Solver::require_memory(
                decompose_first(op.m, op.n, op.rank, own.data(), op.m, s + i * op.rank,
                                u != nullptr ? u + i * op.ldu * op.rank : nullptr, op.ldu,
                                v != nullptr ? v + i * op.ldv * op.rank : nullptr, op.ldv));
          }
        });
  });
}

TROUPE_HANDLERS(Solver)

}  // namespace troupe::host::cpu
