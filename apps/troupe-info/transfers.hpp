#pragma once

#include <map>
#include <optional>
#include <string>

#include <troupe/launched_job.hpp>
#include <troupe/runtime.hpp>

#include "burn_in.hpp"
#include "products.hpp"
#include "steps.hpp"

namespace troupe::info {

/// Moves data within the device, to the host and back, and to other ranks; measures the rates and
/// compares the data by digests where it arrives. Its functions throw Exception, with the
/// error of the device or the world.
///
/// Word i of rank r is (r + 1) * mix(i), modulo 2^64: a sum over all ranks is known as well.
class Transfers {
 public:
  /// `words`: the length of a message.
  Transfers(Runtime& runtime, std::int64_t words);
  /// Lets all ranks know whose memory to fetch from. All ranks call it.
  void meet(const LaunchedJob& job);
  /// Transfers that concern this rank alone.
  void run_alone();
  /// Transfers with other ranks, which begin them at the same time. All ranks call it. False if one
  /// has failed.
  bool run_together(Steps& steps);

  [[nodiscard]] const TransferFacts& facts() const { return facts_; }
  [[nodiscard]] std::map<std::string, double> rates() const;

 private:
  struct Peer {
    int rank = 0;
    GpuToken token;
  };

  /// The quickest of some attempts counts: `move` submits and waits. `before` is not timed.
  template <class Before, class Move>
  void measure(const char* name, std::int64_t words, Before before, Move move);
  template <class Move>
  bool measure_together(Steps& steps, const char* name, Move move);
  void fetch_from_peer();
  /// Compares a range with the words of a rank, times `factor`.
  void compare(const GpuRef<std::uint64_t>& range, std::uint64_t factor, const std::string& what);
  void compare(std::uint64_t digest, std::uint64_t factor, const std::string& what);
  [[nodiscard]] std::uint64_t expected(std::uint64_t factor);
  [[nodiscard]] GpuRef<std::uint64_t> part(const GpuRef<std::uint64_t>& buffer, int i) const {
    return buffer.slice(i * words_, words_);
  }

  Runtime& runtime_;
  std::int64_t words_;
  std::uint64_t own_factor_;
  PinnedBuffer<std::uint64_t> pinned_;
  GpuRef<std::uint64_t> source_, destination_, results_;  ///< room for several messages each
  std::optional<Peer> peer_;                              ///< the next rank of this node
  std::map<std::uint64_t, std::uint64_t> digests_;        ///< by the factor of the words
  std::map<std::string, Meter> meters_;
  TransferFacts facts_;
};

}  // namespace troupe::info
