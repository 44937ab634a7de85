#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/wire/kind.hpp"
#include "device_host/engine/engine.hpp"
#include "device_host/lanes/batches.hpp"

namespace troupe::host {

/// Which kinds of commands have come before, by wire::kind_key(): of many kinds the recent ones.
class KindTable {
 public:
  /// Whether the kind has come before and has not been told of.
  [[nodiscard]] bool recurs(std::uint64_t key) noexcept {
    auto& place = place_of(key);
    if (place == (key | kTold)) return false;
    if (place == (key & ~kTold)) return true;
    place = key & ~kTold;
    return false;
  }
  void told(std::uint64_t key) noexcept { place_of(key) = key | kTold; }

 private:
  static constexpr std::uint64_t kTold = 1;
  std::uint64_t& place_of(std::uint64_t key) noexcept { return places_[key >> 52]; }
  std::array<std::uint64_t, 4096> places_{};
};

/// What is made ready before a command needs it: a plan that another process has made is taken
/// over, or a command of some kind runs on zeros, in scratch memory. A library that prepares works:
/// its commands wait.
struct Preparation {
  enum class For {
    rank,    ///< a successor of the device host that has run such commands
    command  ///< see memory::Prepare
  };
  enum class State { waiting, running, queued };

  /// The preparation for the record of a command, wherever its operands lie. Errors: invalid;
  /// unsupported for what no library carries out.
  static Result<std::shared_ptr<Preparation>> of_record(std::span<const std::byte> record);
  static std::shared_ptr<Preparation> of_plan(Lane lane, std::vector<std::byte> plan);

  [[nodiscard]] For whom() const { return ticket ? For::command : For::rank; }

  Lane lane{};
  std::vector<std::byte> bytes;  ///< a kind's record, or a plan
  bool is_plan = false;
  std::optional<std::uint64_t> ticket;  ///< of the command that asks for it
  /// The number of the rank's request; answered once all that share it are done.
  std::shared_ptr<const std::uint64_t> request;

  State state = State::waiting;
  wire::Command command;
  AddressMap addresses;
  std::shared_ptr<std::byte> scratch;
  Result<void> outcome;
  std::vector<std::vector<std::byte>> plans;  ///< that were made
  std::optional<HeldMark> mark;               ///< behind what was queued
};

}  // namespace troupe::host
