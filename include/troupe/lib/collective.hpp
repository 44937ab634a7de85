#pragma once

#include <optional>
#include <string>
#include <vector>

#include <troupe/lib/operation_info.hpp>

/// Collectives over the world, with NCCL's semantics: every rank calls the same ones in the same
/// order, counts are in elements, source and destination share memory only where NCCL allows it in
/// place. `World` submits them; a record's header carries the epoch they belong to.
namespace troupe::collective {

/// How a reduction combines the elements of all ranks.
///
/// Numbers that are not finite: the cpu engine's min and max are NaN where any rank has NaN, and
/// its avg of floats is finite where the mean is. NCCL promises neither: its min and max may leave
/// out a NaN, and it multiplies by 1 / ranks, rounded to the dtype, before it adds up.
enum class ReduceOp : std::uint32_t {
  sum,
  prod,
  min,
  max,
  avg,
  premul_sum  ///< the sum of what each rank has, times its scalar (NCCL's PreMulSum)
};
inline constexpr std::size_t kReduceOpCount = 6;
constexpr std::string_view to_string(ReduceOp op) noexcept {
  constexpr std::string_view kNames[kReduceOpCount] = {"sum", "prod", "min",
                                                       "max", "avg",  "premul_sum"};
  return kNames[static_cast<std::size_t>(op)];
}

constexpr Agreement agreed(DType dtype, std::uint64_t count,
                           std::optional<ReduceOp> reduction = std::nullopt,
                           std::uint32_t root = Agreement::kNone) noexcept {
  return {static_cast<std::uint32_t>(dtype),
          reduction ? static_cast<std::uint32_t>(*reduction) : Agreement::kNone, root, count};
}

/// "64 f32, sum, root 1"
std::string in_words(const Agreement& agreed);

/// destination[i] = op over ranks of source[i], everywhere. `scalar`: of this rank, for premul_sum
struct AllReduce {
  static constexpr std::string_view kName = "collective.all_reduce";
  static constexpr Lane kLane = Lane::collective;
  static constexpr DTypes kDTypes = DTypes::reducible();
  static constexpr Traits kTraits = {.collective = true, .capturable = true};

  OpDType dtype;
  ReduceOp op{};
  std::uint32_t reserved = 0;
  std::uint64_t count = 0;
  Operand source, destination;
  Scalar scalar{};

  static constexpr std::array kOperands{read("source", &AllReduce::source),
                                        write("destination", &AllReduce::destination),
                                        read("scalar", &AllReduce::scalar)};
  static constexpr auto kInPlace = std::array{InPlace{"source", "destination"}};
  Result<void> check() const;
  [[nodiscard]] Agreement agreement() const noexcept { return agreed(dtype, count, op); }
  static std::string describe(const Agreement& agreed) { return in_words(agreed); }
  [[nodiscard]] Result<void> check_world(int rank, int size) const;
};

/// As AllReduce, the result at `root` only; elsewhere the destination is absent
struct Reduce {
  static constexpr std::string_view kName = "collective.reduce";
  static constexpr Lane kLane = Lane::collective;
  static constexpr DTypes kDTypes = DTypes::reducible();
  static constexpr Traits kTraits = {.collective = true, .capturable = true};

  OpDType dtype;
  ReduceOp op{};
  std::uint32_t root = 0;
  std::uint64_t count = 0;
  Operand source, destination;
  Scalar scalar{};

  static constexpr std::array kOperands{read("source", &Reduce::source),
                                        write("destination", &Reduce::destination),
                                        read("scalar", &Reduce::scalar)};
  static constexpr auto kInPlace = std::array{InPlace{"source", "destination"}};
  Result<void> check() const;
  [[nodiscard]] Agreement agreement() const noexcept { return agreed(dtype, count, op, root); }
  static std::string describe(const Agreement& agreed) { return in_words(agreed); }
  [[nodiscard]] Result<void> check_world(int rank, int size) const;
};

/// data[i] at every rank becomes source[i] of `root`, or its data[i] where the source is absent;
/// elsewhere it is absent
struct Broadcast {
  static constexpr std::string_view kName = "collective.broadcast";
  static constexpr Lane kLane = Lane::collective;
  static constexpr DTypes kDTypes = DTypes::all();
  static constexpr Traits kTraits = {.collective = true, .capturable = true};

  OpDType dtype;
  std::uint32_t root = 0;
  std::uint32_t reserved = 0;
  std::uint64_t count = 0;
  Operand data, source{};

  static constexpr std::array kOperands{update("data", &Broadcast::data),
                                        read("source", &Broadcast::source)};
  Result<void> check() const;
  [[nodiscard]] Agreement agreement() const noexcept {
    return agreed(dtype, count, std::nullopt, root);
  }
  static std::string describe(const Agreement& agreed) { return in_words(agreed); }
  [[nodiscard]] Result<void> check_world(int rank, int size) const;
};

/// destination[r * count + i] = source[i] of rank r. In place: source is this rank's part of
/// destination
struct AllGather {
  static constexpr std::string_view kName = "collective.all_gather";
  static constexpr Lane kLane = Lane::collective;
  static constexpr DTypes kDTypes = DTypes::all();
  static constexpr Traits kTraits = {.collective = true, .capturable = true};

  OpDType dtype;
  std::uint64_t count = 0;  ///< elements per rank
  Operand source, destination;

  static constexpr std::array kOperands{read("source", &AllGather::source),
                                        write("destination", &AllGather::destination)};
  static constexpr auto kInPlace = std::array{InPlace{"source", "destination", InPlace::How::part}};
  Result<void> check() const;
  [[nodiscard]] Agreement agreement() const noexcept { return agreed(dtype, count); }
  static std::string describe(const Agreement& agreed) { return in_words(agreed); }
  [[nodiscard]] Result<void> check_world(int rank, int size) const;
};

/// At `root` destination[r * count + i] = source[i] of rank r; elsewhere the destination is absent.
/// In place: source is the root's part of destination
struct Gather {
  static constexpr std::string_view kName = "collective.gather";
  static constexpr Lane kLane = Lane::collective;
  static constexpr DTypes kDTypes = DTypes::all();
  static constexpr Traits kTraits = {.collective = true, .capturable = true};

  OpDType dtype;
  std::uint32_t root = 0;
  std::uint32_t reserved = 0;
  std::uint64_t count = 0;  ///< elements per rank
  Operand source, destination;

  static constexpr std::array kOperands{read("source", &Gather::source),
                                        write("destination", &Gather::destination)};
  static constexpr auto kInPlace = std::array{InPlace{"source", "destination", InPlace::How::part}};
  Result<void> check() const;
  [[nodiscard]] Agreement agreement() const noexcept {
    return agreed(dtype, count, std::nullopt, root);
  }
  static std::string describe(const Agreement& agreed) { return in_words(agreed); }
  [[nodiscard]] Result<void> check_world(int rank, int size) const;
};

/// destination[i] of rank r = source[r * count + i] of `root`; elsewhere the source is absent. In
/// place: destination is the root's part of source
struct Scatter {
  static constexpr std::string_view kName = "collective.scatter";
  static constexpr Lane kLane = Lane::collective;
  static constexpr DTypes kDTypes = DTypes::all();
  static constexpr Traits kTraits = {.collective = true, .capturable = true};

  OpDType dtype;
  std::uint32_t root = 0;
  std::uint32_t reserved = 0;
  std::uint64_t count = 0;  ///< elements per rank
  Operand source, destination;

  static constexpr std::array kOperands{read("source", &Scatter::source),
                                        write("destination", &Scatter::destination)};
  static constexpr auto kInPlace = std::array{InPlace{"source", "destination", InPlace::How::part}};
  Result<void> check() const;
  [[nodiscard]] Agreement agreement() const noexcept {
    return agreed(dtype, count, std::nullopt, root);
  }
  static std::string describe(const Agreement& agreed) { return in_words(agreed); }
  [[nodiscard]] Result<void> check_world(int rank, int size) const;
};

/// destination[i] = op over ranks of source[rank * count + i]. In place: destination is this rank's
/// part of source
struct ReduceScatter {
  static constexpr std::string_view kName = "collective.reduce_scatter";
  static constexpr Lane kLane = Lane::collective;
  static constexpr DTypes kDTypes = DTypes::reducible();
  static constexpr Traits kTraits = {.collective = true, .capturable = true};

  OpDType dtype;
  ReduceOp op{};
  std::uint32_t reserved = 0;
  std::uint64_t count = 0;  ///< elements per rank
  Operand source, destination;
  Scalar scalar{};

  static constexpr std::array kOperands{read("source", &ReduceScatter::source),
                                        write("destination", &ReduceScatter::destination),
                                        read("scalar", &ReduceScatter::scalar)};
  static constexpr auto kInPlace = std::array{InPlace{"source", "destination", InPlace::How::part}};
  Result<void> check() const;
  [[nodiscard]] Agreement agreement() const noexcept { return agreed(dtype, count, op); }
  static std::string describe(const Agreement& agreed) { return in_words(agreed); }
  [[nodiscard]] Result<void> check_world(int rank, int size) const;
};

/// destination[r * count + i] = source[rank * count + i] of rank r; not in place
struct AllToAll {
  static constexpr std::string_view kName = "collective.all_to_all";
  static constexpr Lane kLane = Lane::collective;
  static constexpr DTypes kDTypes = DTypes::all();
  static constexpr Traits kTraits = {.collective = true, .capturable = true};

  OpDType dtype;
  std::uint64_t count = 0;  ///< elements per pair of ranks
  Operand source, destination;

  static constexpr std::array kOperands{read("source", &AllToAll::source),
                                        write("destination", &AllToAll::destination)};
  Result<void> check() const;
  [[nodiscard]] Agreement agreement() const noexcept { return agreed(dtype, count); }
  static std::string describe(const Agreement& agreed) { return in_words(agreed); }
  [[nodiscard]] Result<void> check_world(int rank, int size) const;
};

/// Several collectives as one operation, which NCCL launches together (ncclGroupStart …
/// ncclGroupEnd). Its tail has their operands, one that is read and written in place once. Its
/// inline bytes are the operations, one after the other, each behind its opcode and its size; there
/// an operand's region is its number in the tail, from 1, and its offset counts from there.
struct Bundle {
  static constexpr std::string_view kName = "collective.bundle";
  static constexpr Lane kLane = Lane::collective;
  static constexpr DTypes kDTypes = DTypes::all();
  static constexpr Traits kTraits = {.collective = true, .capturable = true};
  static constexpr std::string_view kTail = "operand";
  static constexpr std::uint32_t kData = 1u << 14;
  static constexpr std::uint64_t kMaxCollectives = 64;

  OpDType dtype;             ///< of no meaning
  std::uint64_t count = 0;   ///< of collectives
  std::uint64_t digest = 0;  ///< of what all ranks must say alike of them, in order

  static constexpr std::array<DeclaredOperand<Bundle>, 0> kOperands{};
  Result<void> check() const;
  Result<void> check_parts(const Parts& parts) const;
  [[nodiscard]] Agreement agreement() const noexcept {
    return {.root = static_cast<std::uint32_t>(count), .count = digest};
  }
  static std::string describe(const Agreement& agreed);
};

/// A collective of a bundle.
struct Bundled {
  const OperationInfo* info = nullptr;
  std::vector<std::byte> bytes;  ///< of the operation, with its operands
  [[nodiscard]] const std::byte* op() const noexcept { return bytes.data(); }
};
/// The collectives of a bundle. Errors: invalid.
Result<std::vector<Bundled>> bundled(const Parts& parts);
/// Adds a collective to the inline bytes of a bundle, and its operands to the tail.
void add_to_bundle(const OperationInfo& info, const std::byte* op, std::vector<std::byte>& data,
                   std::vector<TailOperand>& tail);
/// Bundle::digest of inline bytes that are sound.
std::uint64_t digest_of(const std::vector<Bundled>& collectives);

/// A group of sends and receives that progress together (ncclGroupStart … ncclGroupEnd); a single
/// send or receive is a group of one. Messages between a pair of ranks match in the order they
/// stand. Bytes, not elements, are moved: the lengths of a matching pair must agree.
struct Exchange {
  static constexpr std::string_view kName = "collective.exchange";
  static constexpr Lane kLane = Lane::collective;
  static constexpr DTypes kDTypes = DTypes::all();
  static constexpr Traits kTraits = {.collective = true, .capturable = true};
  static constexpr std::string_view kTail = "message";

  OpDType dtype;

  static constexpr std::array<DeclaredOperand<Exchange>, 0> kOperands{};
  Result<void> check() const { return {}; }
};

/// Moves nothing. Ends once all ranks have come to it, and on each of them what was submitted
/// before on the ranges that it names, which stand in its tail: a range that is read is behind the
/// writes, one that is written behind the reads as well, and so is what comes later behind the
/// barrier. Nothing touches the ranges themselves: those of other ranks' memory are written in
/// name.
struct Barrier {
  static constexpr std::string_view kName = "collective.barrier";
  static constexpr Lane kLane = Lane::collective;
  static constexpr DTypes kDTypes = DTypes::all();
  static constexpr Traits kTraits = {.collective = true, .capturable = true};
  static constexpr std::string_view kTail = "range";

  OpDType dtype;  ///< of no meaning

  static constexpr std::array<DeclaredOperand<Barrier>, 0> kOperands{};
  Result<void> check() const { return {}; }
  [[nodiscard]] Agreement agreement() const noexcept { return {}; }
  static std::string describe(const Agreement&) { return "ranges of each rank's own"; }
  [[nodiscard]] Result<void> check_world(int, int) const { return {}; }
};

/// Messages of an exchange, as its tail has them.
constexpr TailOperand sent(const Operand& data, std::uint32_t peer) noexcept {
  return {data, peer, Access::read};
}
constexpr TailOperand received(const Operand& data, std::uint32_t peer) noexcept {
  return {data, peer, Access::write};
}

/// The messages of an exchange; those of a rank to itself must agree in number and lengths. Errors:
/// invalid.
Result<void> check_world(std::span<const TailOperand> messages, int rank, int size);

/// All of them; whoever includes this header knows them.
using Operations = List<AllReduce, Reduce, Broadcast, AllGather, ReduceScatter, AllToAll, Exchange,
                        Gather, Scatter, Bundle, Barrier>;
std::span<const OperationInfo* const> operations() noexcept;
inline const Library kLibrary{operations()};

}  // namespace troupe::collective

namespace troupe {
using collective::ReduceOp;
}
