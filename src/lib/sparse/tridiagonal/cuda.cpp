#include <algorithm>
#include <climits>
#include <initializer_list>

#include "lib/sparse/cuda.hpp"

/// Matrices with three or five diagonals, by cuSPARSE, whose functions have 32 bits for extents.
namespace troupe::host::cuda {
namespace {

/// cuSPARSE's functions by type.
template <class T>
struct Cusparse;
#define TROUPE_CUSPARSE(T, S)                                                                      \
  template <>                                                                                      \
  struct Cusparse<T> {                                                                             \
    static constexpr auto gtsv_size = cusparse##S##gtsv2_bufferSizeExt;                            \
    static constexpr auto gtsv = cusparse##S##gtsv2;                                               \
    static constexpr auto gtsv_strided_size = cusparse##S##gtsv2StridedBatch_bufferSizeExt;        \
    static constexpr auto gtsv_strided = cusparse##S##gtsv2StridedBatch;                           \
    static constexpr auto gtsv_interleaved_size = cusparse##S##gtsvInterleavedBatch_bufferSizeExt; \
    static constexpr auto gtsv_interleaved = cusparse##S##gtsvInterleavedBatch;                    \
    static constexpr auto gpsv_interleaved_size = cusparse##S##gpsvInterleavedBatch_bufferSizeExt; \
    static constexpr auto gpsv_interleaved = cusparse##S##gpsvInterleavedBatch;                    \
  };
TROUPE_CUSPARSE(float, S)
TROUPE_CUSPARSE(double, D)
TROUPE_CUSPARSE(std::complex<float>, C)
TROUPE_CUSPARSE(std::complex<double>, Z)
#undef TROUPE_CUSPARSE

int to_int(std::int64_t value) {
  return static_cast<int>(value);
}

/// Calls f(T{}) for the dtype where 32 bits are enough for these extents.
template <class F>
Result<void> with_number(DType dtype, std::initializer_list<std::int64_t> extents, F&& f) {
  if (std::max(extents) > INT_MAX)
    return Error{Errc::unsupported, 0, "cuSPARSE takes extents below 2^31 here"};
  return with_number(dtype, f);
}

int algorithm(sparse::Elimination elimination) {
  switch (elimination) {
    case sparse::Elimination::thomas: return 0;
    case sparse::Elimination::lu: return 1;
    case sparse::Elimination::qr: break;
  }
  return 2;
}

}  // namespace

Result<void> run(const sparse::Gtsv& op, const Call& call, Sparse& library) {
  if (op.n == 0 || op.nrhs == 0) return {};
  return with_number(op.dtype, {op.n, op.nrhs, op.ldb}, [&]<class T>(T) -> Result<void> {
    auto& own = library.state(call.queue());
    const auto* const lower = call.at<const Native<T>>(op.lower);
    const auto* const diagonal = call.at<const Native<T>>(op.diagonal);
    const auto* const upper = call.at<const Native<T>>(op.upper);
    auto* const b = call.at<Native<T>>(op.b);
    const int n = to_int(op.n), nrhs = to_int(op.nrhs), ldb = to_int(op.ldb);
    std::size_t bytes = 0;
    TROUPE_CUDA_TRY(
        Cusparse<T>::gtsv_size(own.handle.get(), n, nrhs, lower, diagonal, upper, b, ldb, &bytes));
    TROUPE_CUDA_PROPAGATE(own.workspace.reserve(library.services, call.queue(), bytes));
    TROUPE_CUDA_TRY(Cusparse<T>::gtsv(own.handle.get(), n, nrhs, lower, diagonal, upper, b, ldb,
                                      own.workspace.get()));
    return {};
  });
}

Result<void> run(const sparse::GtsvStrided& op, const Call& call, Sparse& library) {
  if (op.n == 0 || op.batch == 0) return {};
  const auto span = (op.batch - 1) * op.stride + op.n;
  return with_number(op.dtype, {span, op.batch, op.stride}, [&]<class T>(T) -> Result<void> {
    auto& own = library.state(call.queue());
    const auto* const lower = call.at<const Native<T>>(op.lower);
    const auto* const diagonal = call.at<const Native<T>>(op.diagonal);
    const auto* const upper = call.at<const Native<T>>(op.upper);
    auto* const x = call.at<Native<T>>(op.x);
    const int n = to_int(op.n), batch = to_int(op.batch), stride = to_int(op.stride);
    std::size_t bytes = 0;
    TROUPE_CUDA_TRY(Cusparse<T>::gtsv_strided_size(own.handle.get(), n, lower, diagonal, upper, x,
                                                   batch, stride, &bytes));
    TROUPE_CUDA_PROPAGATE(own.workspace.reserve(library.services, call.queue(), bytes));
    TROUPE_CUDA_TRY(Cusparse<T>::gtsv_strided(own.handle.get(), n, lower, diagonal, upper, x, batch,
                                              stride, own.workspace.get()));
    return {};
  });
}

Result<void> run(const sparse::GtsvInterleaved& op, const Call& call, Sparse& library) {
  if (op.n == 0 || op.batch == 0) return {};
  return with_number(op.dtype, {op.n * op.batch}, [&]<class T>(T) -> Result<void> {
    auto& own = library.state(call.queue());
    auto* const lower = call.at<Native<T>>(op.lower);
    auto* const diagonal = call.at<Native<T>>(op.diagonal);
    auto* const upper = call.at<Native<T>>(op.upper);
    auto* const x = call.at<Native<T>>(op.x);
    const int n = to_int(op.n), batch = to_int(op.batch), way = algorithm(op.elimination);
    std::size_t bytes = 0;
    TROUPE_CUDA_TRY(Cusparse<T>::gtsv_interleaved_size(own.handle.get(), way, n, lower, diagonal,
                                                       upper, x, batch, &bytes));
    TROUPE_CUDA_PROPAGATE(own.workspace.reserve(library.services, call.queue(), bytes));
    TROUPE_CUDA_TRY(Cusparse<T>::gtsv_interleaved(own.handle.get(), way, n, lower, diagonal, upper,
                                                  x, batch, own.workspace.get()));
    return {};
  });
}

Result<void> run(const sparse::GpsvInterleaved& op, const Call& call, Sparse& library) {
  if (op.n == 0 || op.batch == 0) return {};
  return with_number(op.dtype, {op.n * op.batch}, [&]<class T>(T) -> Result<void> {
    auto& own = library.state(call.queue());
    auto* const lower2 = call.at<Native<T>>(op.lower2);
    auto* const lower = call.at<Native<T>>(op.lower);
    auto* const diagonal = call.at<Native<T>>(op.diagonal);
    auto* const upper = call.at<Native<T>>(op.upper);
    auto* const upper2 = call.at<Native<T>>(op.upper2);
    auto* const x = call.at<Native<T>>(op.x);
    const int n = to_int(op.n), batch = to_int(op.batch);
    constexpr int kQr = 0;  // its only algorithm
    std::size_t bytes = 0;
    TROUPE_CUDA_TRY(Cusparse<T>::gpsv_interleaved_size(own.handle.get(), kQr, n, lower2, lower,
                                                       diagonal, upper, upper2, x, batch, &bytes));
    TROUPE_CUDA_PROPAGATE(own.workspace.reserve(library.services, call.queue(), bytes));
    TROUPE_CUDA_TRY(Cusparse<T>::gpsv_interleaved(own.handle.get(), kQr, n, lower2, lower, diagonal,
                                                  upper, upper2, x, batch, own.workspace.get()));
    return {};
  });
}

TROUPE_HANDLERS(Sparse)

}  // namespace troupe::host::cuda
