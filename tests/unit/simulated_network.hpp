#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <vector>

/// A network that delays, loses, duplicates and reorders packets, and on top of it what MPI makes
/// of one: between a pair of ranks every message arrives once and in order (packets are numbered,
/// lost ones sent again, others held back until their turn). Between different pairs nothing is in
/// order.
namespace troupe::rank_process {

class SimulatedNetwork {
 public:
  struct Conditions {
    std::uint32_t delay_us = 1000;           ///< of a packet, at most
    std::uint32_t lost_percent = 0;          ///< each of which is sent again …
    std::uint32_t resent_after_us = 20'000;  ///< … after this, at most
    std::uint32_t duplicated_percent = 0;
    std::vector<int> slow{};  ///< ranks to and from which everything takes kSlowness times as long
  };
  static constexpr std::uint32_t kSlowness = 20;
  using Later = std::function<void(std::chrono::nanoseconds delay, std::function<void()> run)>;

  SimulatedNetwork(Conditions conditions, std::mt19937* random, Later later)
      : conditions_(std::move(conditions)), random_(random), later_(std::move(later)) {}

  void send(int from, int to, std::function<void()> deliver);
  [[nodiscard]] bool is_slow(int rank) const;
  /// Packets so far that were lost, arrived twice, or before their turn.
  [[nodiscard]] std::uint64_t lost() const noexcept { return lost_; }
  [[nodiscard]] std::uint64_t duplicates() const noexcept { return duplicates_; }
  [[nodiscard]] std::uint64_t overtaken() const noexcept { return overtaken_; }

 private:
  struct Line {
    std::uint64_t sent = 0, delivered = 0;
    std::map<std::uint64_t, std::function<void()>> held;
  };

  std::chrono::microseconds travel(int from, int to);
  void arrive(Line& line, std::uint64_t number, const std::function<void()>& deliver);
  bool chance(std::uint32_t percent) { return percent > 0 && (*random_)() % 100 < percent; }

  Conditions conditions_;
  std::mt19937* random_;
  Later later_;
  std::map<std::pair<int, int>, Line> lines_;
  std::uint64_t lost_ = 0, duplicates_ = 0, overtaken_ = 0;
};

}  // namespace troupe::rank_process
