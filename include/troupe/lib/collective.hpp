#pragma once

#include <optional>
#include <string>

#include <troupe/lib/operation_info.hpp>

/// Collectives over the world, with NCCL's semantics: every rank calls the same ones in the same
/// order, counts are in elements, source and destination share memory only where NCCL allows it in
/// place. `World` submits them; a record's header carries the epoch they belong to.
namespace troupe::collective {

enum class ReduceOp : std::uint32_t { sum, prod, min, max, avg };
inline constexpr std::size_t kReduceOpCount = 5;
constexpr std::string_view to_string(ReduceOp op) noexcept {
  constexpr std::string_view kNames[kReduceOpCount] = {"sum", "prod", "min", "max", "avg"};
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

/// destination[i] = op over ranks of source[i], everywhere
struct AllReduce {
  static constexpr std::string_view kName = "collective.all_reduce";
  static constexpr Lane kLane = Lane::collective;
  static constexpr DTypes kDTypes = DTypes::reducible();
  static constexpr Traits kTraits = {.collective = true};

  OpDType dtype;
  ReduceOp op{};
  std::uint32_t reserved = 0;
  std::uint64_t count = 0;
  Operand source, destination;

  static constexpr auto kOperands =
      std::tuple{read("source", &AllReduce::source), write("destination", &AllReduce::destination)};
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
  static constexpr Traits kTraits = {.collective = true};

  OpDType dtype;
  ReduceOp op{};
  std::uint32_t root = 0;
  std::uint64_t count = 0;
  Operand source, destination;

  static constexpr auto kOperands =
      std::tuple{read("source", &Reduce::source), write("destination", &Reduce::destination)};
  static constexpr auto kInPlace = std::array{InPlace{"source", "destination"}};
  Result<void> check() const;
  [[nodiscard]] Agreement agreement() const noexcept { return agreed(dtype, count, op, root); }
  static std::string describe(const Agreement& agreed) { return in_words(agreed); }
  [[nodiscard]] Result<void> check_world(int rank, int size) const;
};

/// data[i] at every rank becomes data[i] of `root`
struct Broadcast {
  static constexpr std::string_view kName = "collective.broadcast";
  static constexpr Lane kLane = Lane::collective;
  static constexpr DTypes kDTypes = DTypes::all();
  static constexpr Traits kTraits = {.collective = true};

  OpDType dtype;
  std::uint32_t root = 0;
  std::uint32_t reserved = 0;
  std::uint64_t count = 0;
  Operand data;

  static constexpr auto kOperands = std::tuple{update("data", &Broadcast::data)};
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
  static constexpr Traits kTraits = {.collective = true};

  OpDType dtype;
  std::uint64_t count = 0;  ///< elements per rank
  Operand source, destination;

  static constexpr auto kOperands =
      std::tuple{read("source", &AllGather::source), write("destination", &AllGather::destination)};
  static constexpr auto kInPlace = std::array{InPlace{"source", "destination", InPlace::How::part}};
  Result<void> check() const;
  [[nodiscard]] Agreement agreement() const noexcept { return agreed(dtype, count); }
  static std::string describe(const Agreement& agreed) { return in_words(agreed); }
  [[nodiscard]] Result<void> check_world(int rank, int size) const;
};

/// destination[i] = op over ranks of source[rank * count + i]. In place: destination is this rank's
/// part of source
struct ReduceScatter {
  static constexpr std::string_view kName = "collective.reduce_scatter";
  static constexpr Lane kLane = Lane::collective;
  static constexpr DTypes kDTypes = DTypes::reducible();
  static constexpr Traits kTraits = {.collective = true};

  OpDType dtype;
  ReduceOp op{};
  std::uint32_t reserved = 0;
  std::uint64_t count = 0;  ///< elements per rank
  Operand source, destination;

  static constexpr auto kOperands = std::tuple{read("source", &ReduceScatter::source),
                                               write("destination", &ReduceScatter::destination)};
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
  static constexpr Traits kTraits = {.collective = true};

  OpDType dtype;
  std::uint64_t count = 0;  ///< elements per pair of ranks
  Operand source, destination;

  static constexpr auto kOperands =
      std::tuple{read("source", &AllToAll::source), write("destination", &AllToAll::destination)};
  Result<void> check() const;
  [[nodiscard]] Agreement agreement() const noexcept { return agreed(dtype, count); }
  static std::string describe(const Agreement& agreed) { return in_words(agreed); }
  [[nodiscard]] Result<void> check_world(int rank, int size) const;
};

/// A group of sends and receives that progress together (ncclGroupStart … ncclGroupEnd); a single
/// send or receive is a group of one. Messages between a pair of ranks match in the order they
/// stand. Bytes, not elements, are moved: the lengths of a matching pair must agree.
struct Exchange {
  static constexpr std::string_view kName = "collective.exchange";
  static constexpr Lane kLane = Lane::collective;
  static constexpr DTypes kDTypes = DTypes::all();
  static constexpr Traits kTraits = {.collective = true};
  static constexpr std::string_view kTail = "message";

  OpDType dtype;

  static constexpr auto kOperands = std::tuple{};
  Result<void> check() const { return {}; }
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

inline const Library kLibrary{&info_of<AllReduce>, &info_of<Reduce>,        &info_of<Broadcast>,
                              &info_of<AllGather>, &info_of<ReduceScatter>, &info_of<AllToAll>,
                              &info_of<Exchange>};

}  // namespace troupe::collective

namespace troupe {
using collective::ReduceOp;
}
