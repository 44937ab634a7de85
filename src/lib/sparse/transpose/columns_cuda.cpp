#include "lib/sparse/transpose/columns_cuda.hpp"

#include <algorithm>

namespace troupe::host::cuda {
namespace {

template <class I>
std::size_t bytes_of(std::int64_t indices) {
  return static_cast<std::size_t>(indices) * sizeof(I);
}

}  // namespace

template <class I>
kernels::TransposedStructure<I> Transpositions::parts_of(const kernels::Structure<I>& matrix,
                                                         void* memory) {
  auto* const begin = static_cast<I*>(memory);
  auto* const row = begin + matrix.columns + 1;
  return {begin, row, row + matrix.nonzeros};
}

template <class I>
Result<kernels::TransposedStructure<I>> Transpositions::find(Services& services, const Call& call,
                                                             const kernels::Structure<I>& matrix,
                                                             const Operand& outer,
                                                             const Operand& inner) {
  const Key key{matrix.row_begin,   matrix.row,         matrix.column,     matrix.rows,
                matrix.columns,     matrix.nonzeros,    matrix.slice_rows, matrix.width,
                contents_of(outer), contents_of(inner), sizeof(I)};
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.key == key; });
  const auto stream = services.stream(call.queue());
  if (found != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, found);
    const auto memory = found->memory.reserve(0, stream);
    if (!memory) return memory.error();
    return parts_of<I>(matrix, *memory);
  }
  if (services.records()) return Services::not_recorded("what it prepares for a matrix");

  forget(services, kMost - 1);
  std::size_t work_bytes = 0;
  TROUPE_CUDA_TRY(kernels::transposition_bytes<I>(matrix.nonzeros, &work_bytes));
  StreamMemory work;
  const auto work_memory = work.reserve(work_bytes, stream);
  if (!work_memory) return work_memory.error();
  auto& made = entries_.emplace_front();
  made.key = key;
  made.structure = {outer, inner};
  const auto memory =
      made.memory.reserve(bytes_of<I>(matrix.columns + 1 + 2 * matrix.nonzeros), stream);
  const auto status =
      !memory ? cudaSuccess
              : kernels::transpose(services.launch(call.queue()), matrix,
                                   parts_of<I>(matrix, *memory), *work_memory, work_bytes);
  if (memory && status == cudaSuccess) return parts_of<I>(matrix, *memory);
  entries_.pop_front();
  if (!memory) return memory.error();
  return failure(status, "transpose");
}

void Transpositions::overwrites(Services& services, const Operand& range) {
  std::erase_if(entries_, [&](const Entry& entry) {
    if (!overlap(entry.structure[0], range) && !overlap(entry.structure[1], range)) return false;
    services.note_given_back();
    return true;
  });
}

void Transpositions::forget(Services& services, std::size_t keep) {
  while (entries_.size() > keep) {
    entries_.pop_back();
    services.note_given_back();
  }
}

template Result<kernels::TransposedStructure<std::int32_t>> Transpositions::find(
    Services&, const Call&, const kernels::Structure<std::int32_t>&, const Operand&,
    const Operand&);
template Result<kernels::TransposedStructure<std::int64_t>> Transpositions::find(
    Services&, const Call&, const kernels::Structure<std::int64_t>&, const Operand&,
    const Operand&);

}  // namespace troupe::host::cuda
