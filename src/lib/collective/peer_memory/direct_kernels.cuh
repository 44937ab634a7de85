#pragma once

#include <cstddef>
#include <cstdint>

#include "device_host/engine/cuda/launch.hpp"

/// All-reduces of few elements among the GPUs of one host, by one kernel on each that stores its
/// elements into the memory of all others. In C++17, because kernels are compiled so.
///
/// Elements travel in lines of 16 bytes: two words of 4 bytes, and behind each the number of the
/// call. A line is stored and loaded in halves that cannot be torn, so that a word whose number is
/// right has arrived; nothing else tells of it. (NCCL calls this protocol LL: Hu et al.,
/// "Demystifying NCCL", 2025.) Each rank adds up what all have sent in the order of the ranks, and
/// so all have the same bits.
///
/// A rank has an inbox: two slots, taken by turns, with room for each sender. Whoever sends its
/// call n + 2 has received all of call n + 1, and nobody sends that before it has read call n: so
/// the slot is free. Each block of a kernel counts its own calls, and has its own part of the
/// slots.
namespace troupe::host::cuda::kernels {

inline constexpr int kDirectRanks = 8;
inline constexpr int kDirectLines = 512;  ///< of a block, one for each of its threads
inline constexpr int kDirectBlocks = 64;
inline constexpr std::size_t kLinePayload = 8, kLineBytes = 16;
/// A call's elements have at most so many bytes.
inline constexpr std::size_t kDirectBytes = kLinePayload * kDirectLines * kDirectBlocks;
/// The size of an inbox.
constexpr std::size_t inbox_bytes(int ranks) {
  return 2 * static_cast<std::size_t>(ranks) * kDirectBlocks * kDirectLines * kLineBytes;
}

/// The numbers of calls of 32 bits return to kFirstCall; the last two clear their slots, so that no
/// line of the round before is taken for one of the new round.
inline constexpr std::uint32_t kLastCall = 0xffff'ffff, kFirstCall = 2;

/// A communicator's memory, as one rank sees it.
struct DirectRanks {
  std::byte* inbox[kDirectRanks] = {};  ///< of all ranks, all zeros before the first call
  std::uint32_t* calls = nullptr;       ///< of each block of this rank, zeros at first
  /// In the host's memory: once it is not 0, nobody is waited for, and results are undefined.
  const volatile std::uint32_t* given_up = nullptr;
  int rank = 0, ranks = 0;
};

/// How elements are combined. Means divide by the least power of two that is not below the number
/// of ranks before they add up, and by the rest at the end: they overflow only where the result
/// does. Integers wrap around; their mean is that of the wrapped sum.
enum class DirectOp : std::uint8_t { sum, product, min, max, mean };

/// Loads the kernels onto the current device.
cudaError_t preload_direct();

/// Ends once all ranks have called it: what was written before on any of their streams is then seen
/// from all of their GPUs. In order with reduce_directly().
cudaError_t meet_directly(const Launch& launch, const DirectRanks& ranks);

/// destination[i] = op over ranks of scalar source[i] (without `scaled` of source[i]). All ranks
/// call it with the same op, type and count, at most kDirectBytes of elements, in the same order.
/// source and destination may be the same. T as for scale(). Narrow numbers are added up in float
/// and rounded once; a NaN is the largest and the smallest number.
template <class T>
cudaError_t reduce_directly(const Launch& launch, const DirectRanks& ranks, DirectOp op,
                            std::uint64_t count, bool scaled, ScalarValue<T> scalar,
                            const T* source, T* destination);

}  // namespace troupe::host::cuda::kernels
