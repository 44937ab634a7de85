#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace troupe::rank_process {

/// Large pieces of host memory between ranks, on a thread of their own: from where they lie to
/// where the receiver wants them, without a copy in between that is ours.
///
/// A piece belongs to a stream, numbered by its receiver; pieces of one stream arrive in any order.
class Bulk {
 public:
  static constexpr std::uint32_t kStreams =
      32768;  ///< numbers are below (what any MPI has as tags)

  /// Both are called on the pieces' thread.
  struct Receiver {
    /// Where a piece of a stream shall go; nullptr: nobody wants it.
    std::function<std::byte*(int rank, std::uint32_t stream, std::size_t bytes)> place;
    std::function<void(int rank, std::uint32_t stream, std::byte* where, std::size_t bytes)>
        arrived;
  };

  virtual ~Bulk() = default;

  /// Sends a piece of at most 1 GiB, which must not change until `sent` is called, on the pieces'
  /// thread. Any thread.
  virtual void send(int rank, std::uint32_t stream, const std::byte* data, std::size_t bytes,
                    std::function<void()> sent) = 0;
  /// One more, or one less, stream on which something will come. Any thread.
  virtual void attend(int change) = 0;
  /// Waits until what was sent has been taken, and for all ranks to do the same.
  virtual void leave() = 0;
};

}  // namespace troupe::rank_process
