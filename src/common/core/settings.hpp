#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/config.hpp>

namespace troupe {

enum class Engine : std::uint8_t { automatic, cpu, cuda };
enum class Isolation : std::uint8_t { process, thread };
enum class StandbyMode : std::uint8_t { off, local, world };
enum class CompletionMode : std::uint8_t { event, host_fn, sync };
enum class TokenWay : std::uint8_t { automatic, peer, network, nccl };
enum class OnLoss : std::uint8_t { respawn, shrink, stop };
enum class OnRankLoss : std::uint8_t { stop, respawn };
enum class OnHealth : std::uint8_t { warn, shrink, replace };
enum class OnSlow : std::uint8_t { warn, leave };
enum class CheckpointIo : std::uint8_t { direct, pinned, automatic };
enum class Partner : std::uint8_t { automatic, on, off, every };
enum class StopSignal : std::uint8_t { usr1, usr2, term, none };
enum class Binding : std::uint8_t { automatic, none };
using Texts = std::vector<std::string>;

/// A time, or nullopt for "auto".
using TimeOrAuto = std::optional<std::chrono::nanoseconds>;

/// The saved state that a run starts from.
struct RestartFrom {
  enum class State : std::uint8_t { newest, none, step };
  State state = State::newest;
  std::int64_t step = 0;  ///< that is saved; with State::step
};

/// The settings that every troupe program has (settings.def), each read from the configuration
/// once. Sizes are in bytes. What an empty text or a 0 means is in the help text of settings.def.
struct Settings {
#define SETTING(type, member, ...) type member{};
#include "common/core/settings.def"
#undef SETTING

  /// Throws Exception (invalid) for a word that the program has added to a setting of words: the
  /// runtime does not know what it means.
  static Settings of(const Config& config);

  /// True if --check names this.
  [[nodiscard]] bool checks(std::string_view what) const;
};

}  // namespace troupe
