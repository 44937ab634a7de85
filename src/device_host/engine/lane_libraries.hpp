#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device_host/engine/engine_libraries.hpp"
#include "device_host/engine/library.hpp"

namespace troupe::host {

/// The halves of libraries in an engine, one for each lane: loaded when the lane is opened, and
/// kept to the end of the engine, for what is queued may refer to them, and to destroy a handle
/// waits for all that runs.
class LaneLibraries final : public EngineLibraries {
 public:
  /// `engine`: "cpu" or "cuda". `enter`: called before a half is, on the same thread.
  explicit LaneLibraries(
      std::string engine, std::function<void()> enter = [] {})
      : engine_(std::move(engine)), enter_(std::move(enter)) {}

  /// The lane's half, open or not; loads and makes it where that has not been done. On a helper
  /// thread; may block. Errors: see make_half().
  template <class Services>
  Result<LibraryHalf*> load(Lane lane, Services& services) {
    if (auto* const half = find(lane); half != nullptr) return half;
    auto& half = loaded_[index(lane)];
    if (half == nullptr) {
      auto made = make_half(library_of(lane), engine_, services);
      if (!made) return made.error();
      half = std::move(*made);
    }
    return half.get();
  }
  /// From now on the reactor calls the lane's half: nobody else may, for a half is not to be called
  /// by two threads.
  void open(Lane lane, LibraryHalf* half) { open_[index(lane)].store(half); }
  /// The half of a lane that is open.
  [[nodiscard]] LibraryHalf& at(Lane lane) const {
    auto* const half = find(lane);
    check(half != nullptr, "the lane is not open");
    return *half;
  }
  /// nullptr: the lane is not open.
  [[nodiscard]] LibraryHalf* find(Lane lane) const { return open_[index(lane)].load(); }
  /// See Engine::blocks(). Where the half cannot say, its own thread finds out.
  [[nodiscard]] bool blocks(const OperationInfo& info, const std::byte* op, const Call& call) const;

  void discard(Lane lane) override;
  [[nodiscard]] std::vector<LoadedLibrary> stands_on(Lane lane) const override;
  [[nodiscard]] bool remembers_contents(Lane lane) const override;
  [[nodiscard]] bool overlaps(Lane lane) const override;
  void overwrites(Lane lane, const Operand& range) override;
  std::vector<std::vector<std::byte>> take_new_plans(Lane lane) override;
  void adopt_plan(Lane lane, std::span<const std::byte> plan) override;

 private:
  static constexpr std::size_t index(Lane lane) { return static_cast<std::size_t>(lane); }

  std::string engine_;
  std::function<void()> enter_;
  std::array<std::atomic<LibraryHalf*>, kLaneCount> open_{};
  std::array<std::unique_ptr<LibraryHalf>, kLaneCount> loaded_;
  std::vector<std::unique_ptr<LibraryHalf>> discarded_;
};

}  // namespace troupe::host
