#include "lib/sparse/triangular/rows_cuda.hpp"

#include "lib/sparse/common/parts_cuda.hpp"
#include "lib/sparse/cuda.hpp"
#include "lib/sparse/sorts/kernels.cuh"
#include "lib/sparse/transpose/kernels.cuh"
#include "lib/sparse/vectors/gather_kernels.cuh"

namespace troupe::host::cuda {
namespace {

/// cuSPARSE wants memory that it could write to. It writes to none of it.
void* writable(const void* memory) {
  return const_cast<void*>(memory);
}

template <class I>
Result<void> transpose(const kernels::Launch& launch, const kernels::Structure<I>& from,
                       const kernels::TransposedStructure<I>& to) {
  std::size_t bytes = 0;
  TROUPE_CUDA_TRY(kernels::transposition_bytes<I>(from.nonzeros, &bytes));
  StreamMemory work;
  const auto memory = work.reserve(bytes, launch.stream);
  if (!memory) return memory.error();
  TROUPE_CUDA_TRY(kernels::transpose<I>(launch, from, to, *memory, bytes));
  return {};
}

/// From sliced ELL to rows: transposed twice. The first time padding is left behind.
template <class I>
Result<void> list_by_rows(const kernels::Launch& launch, const kernels::Structure<I>& sliced,
                          std::int64_t nonzeros, const kernels::TransposedStructure<I>& to) {
  PartsOfMemory parts;
  const auto begin = parts.add<I>(sliced.columns + 1), row = parts.add<I>(sliced.nonzeros),
             place = parts.add<I>(sliced.nonzeros);
  StreamMemory between;
  const auto memory = between.reserve(parts.bytes(), launch.stream);
  if (!memory) return memory.error();
  const kernels::TransposedStructure<I> by_column{
      part_at<I>(*memory, begin), part_at<I>(*memory, row), part_at<I>(*memory, place)};
  TROUPE_CUDA_PROPAGATE(transpose(launch, sliced, by_column));
  kernels::Structure<I> transposed{sliced.columns, sliced.rows, nonzeros};
  transposed.row_begin = by_column.column_begin, transposed.column = by_column.row;
  TROUPE_CUDA_PROPAGATE(transpose(launch, transposed, to));
  TROUPE_CUDA_TRY(kernels::permute<I>(launch, nonzeros, to.place, by_column.place, to.place));
  return {};
}

}  // namespace

Result<void> TriangularRows::make(const kernels::Launch& launch, const TriangularSystem& system) {
  outer_ = writable(system.outer), inner_ = writable(system.inner), value_ = writable(system.value);
  return with_index(system.index_dtype, [&]<class I>(I) -> Result<void> {
    if (system.transposed || system.slice_rows > 0) return rearrange<I>(launch, system);
    return system.by_place ? find_row_begins<I>(launch, system) : Result<void>{};
  });
}

template <class I>
Result<void> TriangularRows::find_row_begins(const kernels::Launch& launch,
                                             const TriangularSystem& system) {
  const auto memory =
      made_.reserve((static_cast<std::size_t>(system.n) + 1) * sizeof(I), launch.stream);
  if (!memory) return memory.error();
  outer_ = *memory;
  TROUPE_CUDA_TRY(kernels::find_begins<I>(launch, static_cast<const I*>(system.outer),
                                          system.nonzeros, system.n, static_cast<I*>(*memory)));
  return {};
}

template <class I>
Result<void> TriangularRows::rearrange(const kernels::Launch& launch,
                                       const TriangularSystem& system) {
  PartsOfMemory parts;
  const auto value =
                 parts.add_bytes(static_cast<std::size_t>(system.nonzeros) * size_of(system.dtype)),
             column = parts.add<I>(system.stored), place = parts.add<I>(system.stored),
             row_begin = parts.add<I>(system.n + 1);
  const auto memory = made_.reserve(parts.bytes(), launch.stream);
  if (!memory) return memory.error();
  const kernels::TransposedStructure<I> made{
      part_at<I>(*memory, row_begin), part_at<I>(*memory, column), part_at<I>(*memory, place)};
  outer_ = made.column_begin, inner_ = made.row, value_ = part_at<std::byte>(*memory, value);
  place_ = made.place;

  kernels::Structure<I> given{system.n, system.n, system.stored};
  (system.by_place ? given.row : given.row_begin) = static_cast<const I*>(system.outer);
  given.column = static_cast<const I*>(system.inner);
  given.slice_rows = system.slice_rows;
  TROUPE_CUDA_PROPAGATE(system.transposed ? transpose(launch, given, made)
                                          : list_by_rows(launch, given, system.nonzeros, made));
  return update_values(launch, system);
}

Result<void> TriangularRows::update_values(const kernels::Launch& launch,
                                           const TriangularSystem& system) {
  if (place_ == nullptr) return {};
  return with_number(system.dtype, [&]<class T>(T) {
    return with_index(system.index_dtype, [&]<class I>(I) -> Result<void> {
      TROUPE_CUDA_TRY(
          kernels::gather(launch, system.nonzeros, static_cast<const Native<T>*>(system.value),
                          static_cast<const I*>(place_), static_cast<Native<T>*>(value_)));
      return {};
    });
  });
}

}  // namespace troupe::host::cuda
