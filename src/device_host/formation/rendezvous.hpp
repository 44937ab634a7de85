#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <troupe/error.hpp>

#include "common/ipc/shared_memory.hpp"
#include "common/ipc/unique_fd.hpp"
#include "common/wire/collective_call.hpp"

namespace troupe::host {

/// Where the members of a communicator that share a host meet before each collective.
///
/// A collective that is launched waits on the GPU until all members have launched theirs. Whatever
/// makes CUDA wait for the GPU meanwhile (a library that loads a kernel on its first use does)
/// waits with it, and all launches behind that; if another member needs one of these to get to the
/// collective, none of them ever goes on. So no member launches before all of its host have got to
/// the same collective, and could launch it: then each of them ends whatever their threads do.
/// Messages (collective::Exchange) wait in the same way for those that they are exchanged with.
/// And as they meet, they compare what they are about to do.
///
/// Each member says in memory of its own, which the others map, how far it has come; a pipe wakes
/// those that sleep. Members on other hosts are not waited for. The reactor's thread only.
class Rendezvous {
 public:
  /// Where more are on one host, none is waited for.
  static constexpr std::size_t kMaxMembers = 64;

  /// What the others need to find this member.
  struct Card {
    std::array<char, 128> host{};  ///< alike on members that can meet
    std::array<std::uint64_t, 2> cookie{};
    std::int32_t pid = 0;
    std::int32_t memory = -1;  ///< descriptors of that process
    std::int32_t bell = -1;
    std::int32_t reserved = 0;
    std::uint64_t bell_inode = 0;  ///< else the descriptor is another file's by now
  };

  /// For one communicator. Errors: io.
  static Result<std::unique_ptr<Rendezvous>> open();
  [[nodiscard]] const Card& card() const noexcept { return card_; }
  /// Finds the members on this host. `cards`: of all members, in rank order. One that cannot be
  /// reached is not waited for; a warning says so.
  void meet(int rank, std::span<const Card> cards);

  /// The command with this ticket is the next on the communicator, and this rank could launch it.
  /// True if all whom it concerns here are as far, or get there while this looks `looks` times.
  /// Errors: invalid if they call something else; all of them find the same error, and none may
  /// launch.
  Result<bool> arrive(std::uint64_t ticket, const OperationInfo& info, const std::byte* op,
                      std::span<const TailOperand> tail, int looks = 1);
  /// The command is the next on the communicator, and wrong on this rank, which does not launch it:
  /// none of the others may. False: it is too early to say so to them, for some have not come to
  /// the one before; ready() tells when they have.
  bool refuse(const OperationInfo& info, const std::byte* op);
  /// Ranks of the communicator; 0: it is not formed.
  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] int rank() const noexcept { return rank_; }
  /// Whether the command that arrived last has waited and need not any more.
  [[nodiscard]] bool ready() const { return waiting_ && all_here(); }
  /// True while it waits for others.
  [[nodiscard]] bool waits() const noexcept { return waiting_; }

  /// Readable when somebody has arrived while this member slept, or since; until clear().
  [[nodiscard]] int fd() const noexcept { return bell_.get(); }
  void clear() const noexcept;
  /// Before the reactor sleeps; if ready() is true afterwards it must not.
  void announce_sleep();
  void cancel_sleep();

 private:
  static constexpr std::size_t kKept = 8;  ///< lengths of messages that can still be compared
  /// The messages one way between two members, as one of them sees it.
  struct Messages {
    std::atomic<std::uint64_t> count{0};
    std::array<std::atomic<std::uint64_t>, kKept> bytes{};  ///< of message n: [n % kKept]
  };
  struct Call {
    std::array<std::atomic<std::uint64_t>, 4> words{};
  };
  struct Shared {
    std::array<std::uint64_t, 2> cookie{};
    alignas(64) std::atomic<std::uint32_t> asleep{0};
    /// Collectives that this member has come to. Nobody comes to one before all have seen what the
    /// last but one was, so two are kept.
    alignas(64) std::atomic<std::uint64_t> came{0};
    std::array<Call, 2> calls{};
    std::array<std::array<Messages, 2>, kMaxMembers> messages{};  ///< by place: sent, received
  };
  struct Member {
    int rank = 0;
    std::size_t place = 0;  ///< among the members of this host
    ipc::SharedMemory memory;
    UniqueFd bell;
    [[nodiscard]] Shared& shared() const { return *reinterpret_cast<Shared*>(memory.data()); }
  };
  /// A message that is waited for.
  struct Awaited {
    std::size_t member = 0;  ///< in members_
    bool receive = false;    ///< this rank's side of it
    std::uint64_t number = 0;
    std::uint64_t bytes = 0;
  };

  Rendezvous() = default;
  static Result<Member> reach(int rank, std::size_t place, const Card& card);
  [[nodiscard]] Shared& own() const { return *reinterpret_cast<Shared*>(memory_.data()); }
  void begin(std::uint64_t ticket);
  void announce(const wire::CollectiveCall& call);
  void announce(std::span<const TailOperand> messages);
  /// Wakes those that sleep.
  void tell() const;
  [[nodiscard]] bool all_here() const;
  /// All are as far as this member's last collective, which it need not have waited for; else it
  /// waits for that.
  bool all_came_before();
  Result<bool> pass();
  [[nodiscard]] Result<void> compare() const;
  [[nodiscard]] Result<void> compare(const Awaited& message) const;
  [[nodiscard]] static wire::CollectiveCall read(const Call& call);

  Card card_;
  ipc::SharedMemory memory_;
  UniqueFd bell_;
  UniqueFd ringer_;  ///< the bell's other end: a pipe that nobody can write to counts as readable
  int rank_ = 0;
  int size_ = 0;                 ///< of the communicator
  std::size_t place_ = 0;        ///< among the members of this host
  std::vector<Member> members_;  ///< the others on this host

  std::uint64_t ticket_ = 0;
  bool waiting_ = false;
  bool collective_ = false;  ///< what arrived last; else messages
  std::vector<Awaited> awaited_;
};

}  // namespace troupe::host
