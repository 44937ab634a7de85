#pragma once

#include <algorithm>
#include <complex>
#include <initializer_list>
#include <limits>
#include <utility>
#include <vector>
// Else it takes C's complex types.
#define lapack_complex_float std::complex<float>
#define lapack_complex_double std::complex<double>
#include <lapacke.h>

#include <troupe/lib/solver.hpp>

#include "device_host/engine/cpu/library.hpp"

/// LAPACKE has 32 bits for extents.
namespace troupe::host::cpu {

/// LAPACKE's functions by type.
template <class T>
struct Lapack;
/// `h`: sy of real numbers, he of complex ones; `q`: or and un.
#define TROUPE_LAPACK(T, s, h, q)                     \
  template <>                                         \
  struct Lapack<T> {                                  \
    static constexpr auto potrf = LAPACKE_##s##potrf; \
    static constexpr auto potrs = LAPACKE_##s##potrs; \
    static constexpr auto potri = LAPACKE_##s##potri; \
    static constexpr auto trtri = LAPACKE_##s##trtri; \
    static constexpr auto getrf = LAPACKE_##s##getrf; \
    static constexpr auto getrs = LAPACKE_##s##getrs; \
    static constexpr auto sytrf = LAPACKE_##s##sytrf; \
    static constexpr auto sytrs = LAPACKE_##s##sytrs; \
    static constexpr auto geqrf = LAPACKE_##s##geqrf; \
    static constexpr auto mqr = LAPACKE_##s##q##mqr;  \
    static constexpr auto gqr = LAPACKE_##s##q##gqr;  \
    static constexpr auto sytri = LAPACKE_##s##sytri; \
    static constexpr auto laswp = LAPACKE_##s##laswp; \
    static constexpr auto gvx = LAPACKE_##s##h##gvx;  \
    static constexpr auto trd = LAPACKE_##s##h##trd;  \
    static constexpr auto gtr = LAPACKE_##s##q##gtr;  \
    static constexpr auto mtr = LAPACKE_##s##q##mtr;  \
    static constexpr auto gebrd = LAPACKE_##s##gebrd; \
    static constexpr auto gbr = LAPACKE_##s##q##gbr;  \
    static constexpr auto larft = LAPACKE_##s##larft; \
    static constexpr auto lauum = LAPACKE_##s##lauum; \
    static constexpr auto gesv = LAPACKE_##s##gesv;   \
    static constexpr auto gels = LAPACKE_##s##gels;   \
    static constexpr auto evd = LAPACKE_##s##h##evd;  \
    static constexpr auto evr = LAPACKE_##s##h##evr;  \
    static constexpr auto gvd = LAPACKE_##s##h##gvd;  \
    static constexpr auto geev = LAPACKE_##s##geev;   \
    static constexpr auto gesvd = LAPACKE_##s##gesvd; \
    static constexpr auto gesdd = LAPACKE_##s##gesdd; \
  };
TROUPE_LAPACK(float, s, sy, or)
TROUPE_LAPACK(double, d, sy, or)
TROUPE_LAPACK(std::complex<float>, c, he, un)
TROUPE_LAPACK(std::complex<double>, z, he, un)
#undef TROUPE_LAPACK

inline char letter(solver::Uplo uplo) {
  return uplo == solver::Uplo::lower ? 'L' : 'U';
}
inline char letter(solver::Diagonal diagonal) {
  return diagonal == solver::Diagonal::unit ? 'U' : 'N';
}
inline char letter(solver::Side side) {
  return side == solver::Side::left ? 'L' : 'R';
}
inline char letter(solver::Vectors vectors) {
  return vectors == solver::Vectors::yes ? 'V' : 'N';
}
inline char letter(solver::Transpose transpose) {
  constexpr char kLetters[] = {'N', 'T', 'C'};
  return kLetters[static_cast<std::size_t>(transpose)];
}
/// The letter of a transpose of Q: LAPACK has no C for real numbers.
template <class T>
char letter_of_q(solver::Transpose transpose) {
  return transpose == solver::Transpose::conjugate && !ComplexElement<T> ? 'T' : letter(transpose);
}
inline lapack_int to_int(std::int64_t value) {
  return static_cast<lapack_int>(value);
}

/// Calls visit(T{}) for the dtype, where the extents are not too large.
template <class Visit>
Result<void> with_number(DType dtype, std::initializer_list<std::int64_t> extents, Visit&& visit) {
  if (std::max(extents) > std::numeric_limits<lapack_int>::max())
    return Error{Errc::unsupported, 0, "the cpu engine's LAPACK takes extents below 2^31"};
  return with_number(dtype, visit);
}

/// Copies a rows x columns matrix.
template <class T>
void copy_matrix(std::int64_t rows, std::int64_t columns, const T* from, std::int64_t from_leading,
                 T* to, std::int64_t to_leading) {
  for (std::int64_t j = 0; j < columns; ++j)
    std::copy_n(from + j * from_leading, rows, to + j * to_leading);
}

/// A copy of a rows x columns matrix, without gaps. Where LAPACK applies Householder reflectors it
/// writes a 1 in front of each, for as long as it applies it, into the matrix that it only reads
/// otherwise; another operation may read that matrix at the same time.
template <class T>
std::vector<T> own_copy(std::int64_t rows, std::int64_t columns, const T* from,
                        std::int64_t leading) {
  std::vector<T> copy(static_cast<std::size_t>(rows * columns));
  copy_matrix(rows, columns, from, leading, copy.data(), rows);
  return copy;
}

/// The matrices of a record's tail.
template <class T>
std::vector<T*> list_of(const Call& call) {
  std::vector<T*> list;
  for (const auto& part : call.tail()) list.push_back(call.at<T>(part.range));
  return list;
}

/// LAPACK's pivots of troupe's; those outside of a matrix of that order exchange nothing.
inline std::vector<lapack_int> narrowed(const std::int64_t* pivots, std::int64_t count,
                                        std::int64_t order) {
  std::vector<lapack_int> narrow(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const bool inside = pivots != nullptr && pivots[i] != 0 && std::abs(pivots[i]) <= order;
    narrow[static_cast<std::size_t>(i)] = to_int(inside ? pivots[i] : i + 1);
  }
  return narrow;
}

class Solver final : public LibraryHalfOf<Solver, solver::Operations> {
 public:
  explicit Solver(Services& its_services);
  [[nodiscard]] Dependencies stands_on() const override;

  // For its operations.

  /// Queues `work`, which fills in a Told, the value of the call; without calling it if there is
  /// nothing to work on.
  template <class Told, class Work>
  Result<void> queue(const Call& call, const Operand& cell, bool empty, Work work) {
    return services.submit(call, [told = call.at<Told>(cell), empty, work]() mutable {
      *told = Told{};
      if (!empty) work(*told);
    });
  }
  /// The same where the value is the info that `work` gives.
  template <class Work>
  Result<void> queue_for_info(const Call& call, const Operand& cell, bool empty, Work work) {
    return queue<std::int32_t>(
        call, cell, empty, [work](std::int32_t& info) mutable { info = require_memory(work()); });
  }
  /// Where LAPACK's info says nothing that check() does not know.
  template <class Work>
  Result<void> queue_silent(const Call& call, bool empty, Work work) {
    return services.submit(call, [empty, work]() mutable {
      if (!empty) require_memory(work());
    });
  }
  /// LAPACKE allocates its workspace itself.
  static lapack_int require_memory(lapack_int info) {
    if (info <= LAPACK_WORK_MEMORY_ERROR && info >= LAPACK_TRANSPOSE_MEMORY_ERROR)
      throw Exception({Errc::out_of_memory, info, "LAPACKE: no memory for its workspace"});
    return info;
  }
  Services& services;
};
/// Gesvdj and Gesvdp.
template <class Told, class Op>
Result<void> queue_decomposition(const Op& op, const Call& call, Solver& library);
/// SyevBatched and SyevjBatched.
template <class Op>
Result<void> queue_eigenvalues(const Op& op, const Call& call, Solver& library);

}  // namespace troupe::host::cpu
