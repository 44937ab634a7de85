#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace troupe::rank_process {

/// Exchanges of the members of a group with one another, each of them on one thread: all make the
/// same calls in the same order.
class Exchange {
 public:
  virtual ~Exchange() = default;

  /// Members that had died are back: from now on the calls are counted anew. All members call it.
  virtual void renew() {}
  virtual void barrier() = 0;
  /// `all`: the values of all members, in their order. They have the same size.
  virtual void all_gather(std::span<const std::byte> value, std::span<std::byte> all) = 0;
  virtual std::vector<std::string> gather_text(const std::string& text) = 0;
  /// result[m] = what member m had in outgoing[this one]
  virtual std::vector<std::vector<std::byte>> all_to_all(
      const std::vector<std::vector<std::byte>>& outgoing) = 0;
  /// Sends `outgoing` to member `to` and returns what member `from` sends here. `incoming` is taken
  /// for room that may be used again.
  virtual std::vector<std::byte> shift(std::span<const std::byte> outgoing, int to, int from,
                                       std::vector<std::byte> incoming) = 0;
};

}  // namespace troupe::rank_process
