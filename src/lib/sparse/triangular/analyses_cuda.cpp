#include "lib/sparse/triangular/analyses_cuda.hpp"

#include <algorithm>
#include <complex>
#include <iterator>
#include <utility>

#include "lib/sparse/cuda.hpp"

namespace troupe::host::cuda {
namespace {

constexpr auto kVectorAlgorithm = CUSPARSE_SPSV_ALG_DEFAULT;
constexpr auto kMatrixAlgorithm = CUSPARSE_SPSM_ALG_DEFAULT;
constexpr auto kPlain = CUSPARSE_OPERATION_NON_TRANSPOSE;

/// The right side comes multiplied by alpha.
template <class T>
alignas(16) const T kOne = T(1);
const void* one(DType dtype) {
  switch (dtype) {
    case DType::f32: return &kOne<float>;
    case DType::c64: return &kOne<std::complex<float>>;
    case DType::c128: return &kOne<std::complex<double>>;
    default: return &kOne<double>;
  }
}

/// cuSPARSE wants memory that it could write to. It writes to none of it.
void* writable(const void* memory) {
  return const_cast<void*>(memory);
}

Result<void> describe_matrix(const TriangularSystem& system, const TriangularRows& rows,
                             WritableMatrix& matrix) {
  const auto type = value_type(system.dtype);
  const auto index = index_type(system.index_dtype);
  TROUPE_CUDA_TRY(cusparseCreateCsr(matrix.out(), system.n, system.n, system.nonzeros, rows.outer(),
                                    rows.inner(), rows.value(), index, index,
                                    CUSPARSE_INDEX_BASE_ZERO, type));
  const bool lower = system.lower != system.transposed;
  auto triangle = lower ? CUSPARSE_FILL_MODE_LOWER : CUSPARSE_FILL_MODE_UPPER;
  TROUPE_CUDA_TRY(cusparseSpMatSetAttribute(matrix.get(), CUSPARSE_SPMAT_FILL_MODE, &triangle,
                                            sizeof triangle));
  auto diagonal = system.unit ? CUSPARSE_DIAG_TYPE_UNIT : CUSPARSE_DIAG_TYPE_NON_UNIT;
  TROUPE_CUDA_TRY(cusparseSpMatSetAttribute(matrix.get(), CUSPARSE_SPMAT_DIAG_TYPE, &diagonal,
                                            sizeof diagonal));
  return {};
}

}  // namespace

cusparseStatus_t SolveVector::describe(const TriangularSystem& system, const void* b, void* x,
                                       Sides& sides) {
  const auto type = value_type(system.dtype);
  const auto status = cusparseCreateDnVec(sides.b.out(), system.n, writable(b), type);
  if (status != CUSPARSE_STATUS_SUCCESS) return status;
  return cusparseCreateDnVec(sides.x.out(), system.n, x, type);
}
cusparseStatus_t SolveVector::buffer_size(cusparseHandle_t handle, const TriangularSystem& system,
                                          cusparseConstSpMatDescr_t matrix, const Sides& sides,
                                          const Descriptor& descriptor, std::size_t* bytes) {
  return cusparseSpSV_bufferSize(handle, kPlain, one(system.dtype), matrix, sides.b.get(),
                                 sides.x.get(), value_type(system.dtype), kVectorAlgorithm,
                                 descriptor.get(), bytes);
}
cusparseStatus_t SolveVector::analyse(cusparseHandle_t handle, const TriangularSystem& system,
                                      cusparseConstSpMatDescr_t matrix, const Sides& sides,
                                      const Descriptor& descriptor, void* memory) {
  return cusparseSpSV_analysis(handle, kPlain, one(system.dtype), matrix, sides.b.get(),
                               sides.x.get(), value_type(system.dtype), kVectorAlgorithm,
                               descriptor.get(), memory);
}
cusparseStatus_t SolveVector::update(cusparseHandle_t handle, const Descriptor& descriptor,
                                     const void* values) {
  return cusparseSpSV_updateMatrix(handle, descriptor.get(), writable(values),
                                   CUSPARSE_SPSV_UPDATE_GENERAL);
}
cusparseStatus_t SolveVector::solve(cusparseHandle_t handle, const TriangularSystem& system,
                                    cusparseConstSpMatDescr_t matrix, const Sides& sides,
                                    const Descriptor& descriptor) {
  return cusparseSpSV_solve(handle, kPlain, one(system.dtype), matrix, sides.b.get(), sides.x.get(),
                            value_type(system.dtype), kVectorAlgorithm, descriptor.get());
}

cusparseStatus_t SolveMatrix::describe(const TriangularSystem& system, const void* b, void* x,
                                       Sides& sides) {
  const auto type = value_type(system.dtype);
  const auto order = system.row_major ? CUSPARSE_ORDER_ROW : CUSPARSE_ORDER_COL;
  const auto status = cusparseCreateConstDnMat(sides.b.out(), system.n, system.columns,
                                               system.right_leading(), b, type, order);
  if (status != CUSPARSE_STATUS_SUCCESS) return status;
  return cusparseCreateDnMat(sides.x.out(), system.n, system.columns, system.leading, x, type,
                             order);
}
cusparseStatus_t SolveMatrix::buffer_size(cusparseHandle_t handle, const TriangularSystem& system,
                                          cusparseConstSpMatDescr_t matrix, const Sides& sides,
                                          const Descriptor& descriptor, std::size_t* bytes) {
  return cusparseSpSM_bufferSize(handle, kPlain, kPlain, one(system.dtype), matrix, sides.b.get(),
                                 sides.x.get(), value_type(system.dtype), kMatrixAlgorithm,
                                 descriptor.get(), bytes);
}
cusparseStatus_t SolveMatrix::analyse(cusparseHandle_t handle, const TriangularSystem& system,
                                      cusparseConstSpMatDescr_t matrix, const Sides& sides,
                                      const Descriptor& descriptor, void* memory) {
  return cusparseSpSM_analysis(handle, kPlain, kPlain, one(system.dtype), matrix, sides.b.get(),
                               sides.x.get(), value_type(system.dtype), kMatrixAlgorithm,
                               descriptor.get(), memory);
}
cusparseStatus_t SolveMatrix::update(cusparseHandle_t handle, const Descriptor& descriptor,
                                     const void* values) {
  return cusparseSpSM_updateMatrix(handle, descriptor.get(), writable(values),
                                   CUSPARSE_SPSM_UPDATE_GENERAL);
}
cusparseStatus_t SolveMatrix::solve(cusparseHandle_t handle, const TriangularSystem& system,
                                    cusparseConstSpMatDescr_t matrix, const Sides& sides,
                                    const Descriptor& descriptor) {
  return cusparseSpSM_solve(handle, kPlain, kPlain, one(system.dtype), matrix, sides.b.get(),
                            sides.x.get(), value_type(system.dtype), kMatrixAlgorithm,
                            descriptor.get());
}

template <class Solve>
bool Analyses<Solve>::ready(const TriangularSystem& system) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry->system == system && entry->has_values;
  });
}

template <class Solve>
Result<void> Analyses<Solve>::solve(Services& services, const kernels::Launch& launch,
                                    cusparseHandle_t handle, const TriangularSystem& system,
                                    const std::array<Operand, 3>& matrix, const void* b, void* x) {
  stream_ = launch.stream;
  const bool records = services.records();
  if (records && !ready(system)) return Services::not_recorded("an analysis of the matrix");
  typename Solve::Sides sides;
  TROUPE_CUDA_TRY(Solve::describe(system, b, x, sides));
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry->system == system; });
  if (found == entries_.end()) {
    TROUPE_CUDA_PROPAGATE(analyse(services, launch, handle, system, matrix, sides));
  } else {
    entries_.splice(entries_.begin(), entries_, found);
    if (!entries_.front()->has_values) TROUPE_CUDA_PROPAGATE(update(services, launch, handle));
  }
  auto& analysis = *entries_.front();
  analysis.recorded |= records;
  TROUPE_CUDA_TRY(Solve::solve(handle, system, analysis.matrix.get(), sides, analysis.descriptor));
  return {};
}

template <class Solve>
Result<void> Analyses<Solve>::analyse(Services& services, const kernels::Launch& launch,
                                      cusparseHandle_t handle, const TriangularSystem& system,
                                      const std::array<Operand, 3>& matrix,
                                      const typename Solve::Sides& sides) {
  TROUPE_CUDA_PROPAGATE(retired_.destroy_ended());
  while (entries_.size() >= kMost)
    TROUPE_CUDA_PROPAGATE(retire(services, std::prev(entries_.end())));
  auto made = std::make_unique<Analysis>();
  made->system = system;
  made->operands = matrix;
  TROUPE_CUDA_PROPAGATE(made->rows.make(launch, system));
  TROUPE_CUDA_PROPAGATE(describe_matrix(system, made->rows, made->matrix));
  TROUPE_CUDA_TRY(Solve::create(made->descriptor));
  std::size_t bytes = 0;
  TROUPE_CUDA_TRY(
      Solve::buffer_size(handle, system, made->matrix.get(), sides, made->descriptor, &bytes));
  const auto memory = made->memory.reserve(bytes, stream_);
  if (!memory) return memory.error();
  TROUPE_CUDA_TRY(
      Solve::analyse(handle, system, made->matrix.get(), sides, made->descriptor, *memory));
  entries_.push_front(std::move(made));
  return {};
}

template <class Solve>
Result<void> Analyses<Solve>::update(Services& services, const kernels::Launch& launch,
                                     cusparseHandle_t handle) {
  auto& analysis = *entries_.front();
  TROUPE_CUDA_PROPAGATE(analysis.rows.update_values(launch, analysis.system));
  const auto status = Solve::update(handle, analysis.descriptor, analysis.rows.value());
  analysis.has_values = status == CUSPARSE_STATUS_SUCCESS;
  if (analysis.has_values) return {};
  TROUPE_CUDA_PROPAGATE(retire(services, entries_.begin()));
  return failure(status, "updateMatrix");
}

template <class Solve>
void Analyses<Solve>::overwrites(Services& services, const Operand& range) {
  for (auto next = entries_.begin(); next != entries_.end();) {
    const auto entry = next++;
    const auto& [outer, inner, value] = (*entry)->operands;
    if (overlap(outer, range) || overlap(inner, range)) {
      (void)retire(services, entry);  // what cannot be recorded ends at once
    } else if (overlap(value, range)) {
      (*entry)->has_values = false;
      void_graphs(services, **entry);
    }
  }
}

/// Those that use it have its old values, or will have no analysis.
template <class Solve>
void Analyses<Solve>::void_graphs(Services& services, Analysis& analysis) {
  if (std::exchange(analysis.recorded, false)) services.note_given_back();
}

template <class Solve>
Result<void> Analyses<Solve>::retire(Services& services,
                                     typename std::list<Entry>::iterator entry) {
  void_graphs(services, **entry);
  auto retired = std::move(*entry);
  entries_.erase(entry);
  return retired_.add(std::move(retired), stream_);
}

template class Analyses<SolveVector>;
template class Analyses<SolveMatrix>;

}  // namespace troupe::host::cuda
