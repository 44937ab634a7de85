#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <troupe/dtype.hpp>

namespace troupe::perf {

/// What is measured. all_to_all_v: with parts the longer, the farther their rank is. send_recv:
/// each rank sends to the next one and receives from the one before; fetch: each rank reads the
/// next one's buffer by its token; put: each rank writes that; tell: each rank tells an actor of
/// the next one messages.
enum class Operation : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  reduce,
  all_to_all,
  all_to_all_v,
  gather,
  scatter,
  send_recv,
  fetch,
  put,
  tell
};
inline constexpr std::size_t kOperationCount = 13;

/// In nccl-tests' order. mulsum: the sum of what each rank has times its scalar.
enum class Reduction : std::uint8_t { sum, prod, max, min, avg, mulsum };

/// What is particular to an operation.
struct OperationTraits {
  std::string_view name;
  bool reduces = false;      ///< has a reduction
  bool rooted = false;       ///< has a root
  bool parts = false;        ///< a call's count is that of one rank's part of the whole
  bool in_place = true;      ///< can be done in place
  bool collective = true;    ///< of a communicator: may be recorded
  bool all_but_one = false;  ///< busbw is algbw times (n - 1) / n, as of all that is not n's own
};
const OperationTraits& traits(Operation operation);

/// One kind of call, the same on all ranks of a communicator.
struct Call {
  Operation operation = Operation::all_reduce;
  DType dtype = DType::f32;
  Reduction reduction = Reduction::sum;
  int root = 0;
  std::int64_t count = 0;  ///< elements; of one rank's part where the operation has parts
  bool in_place = false;
};

/// Elements that a rank has of each buffer in a call among `size` ranks, whatever its part in it.
struct Extents {
  std::int64_t source = 0, destination = 0;
  /// In place both are in the destination's buffer; where this rank's own part of it begins.
  std::int64_t source_offset = 0, destination_offset = 0;
  [[nodiscard]] std::int64_t largest() const noexcept {
    return source > destination ? source : destination;
  }
};
Extents extents(const Call& call, int rank, int size);

/// The elements of each part that a rank sends in all_to_all_v: to the next rank a unit, to the one
/// behind it two, and so on; to itself none, unless it is alone.
std::vector<std::int64_t> sent_parts(const Call& call, int rank, int size);
/// Those that it receives, from each rank.
std::vector<std::int64_t> received_parts(const Call& call, int rank, int size);

/// The count of a call that moves `bytes` bytes: as in nccl-tests, parts are multiples of 16 bytes.
std::int64_t count_of(Operation operation, std::int64_t bytes, DType dtype, int size);

/// The most bytes of a message to an actor.
inline constexpr std::int64_t kLongestMessage = 65'000;

/// GB/s, as nccl-tests defines them (doc/PERFORMANCE.md there).
struct Bandwidth {
  double algorithm = 0, bus = 0;
};
Bandwidth bandwidth(const Call& call, int size, double seconds);

/// As nccl-tests call them: "float", "mulsum"; and those of all types and reductions that it has.
std::string_view name_of(DType dtype);
std::string_view name_of(Reduction reduction);
const std::vector<DType>& dtypes();
const std::vector<Reduction>& reductions();

}  // namespace troupe::perf
