#pragma once

#include <compare>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <troupe/lib/submit.hpp>

#include "rank/net/transport.hpp"

namespace troupe::rank_process {

/// Compares the collectives of all ranks before they are submitted (--check collectives).
///
/// Collectives that differ in kind, length, dtype, reduction or root do not fail by themselves:
/// they give wrong numbers, or wait for ever. Ranks of one host find out where their device hosts
/// meet (see Rendezvous); this is for ranks of several hosts, and for calls that some of them
/// refuse. Each rank tells rank 0 of the job what it is about to call, and waits for the verdict,
/// which comes when all members have said theirs. If they differ the call fails on all of them with
/// the same error, and nothing is launched. This costs a message there and one back per collective,
/// in the submission.
///
/// Sends and receives (World::exchange) concern some ranks only and do not come here.
class CollectiveCheck final : public detail::Submitter {
 public:
  /// This rank's in a communicator that the program works with now.
  struct Place {
    std::uint32_t epoch = 0;
    int rank = 0;
    int size = 1;
    int first = 0;  ///< its rank 0, as a rank of the job
  };
  /// In the group of this number, or in the world.
  using Look = std::function<Place(std::uint32_t group)>;

  /// All ranks make one. `target` gets what has been found alike; it outlives this.
  CollectiveCheck(Session& mpi, detail::Submitter& target, Look look);

  Future<void> submit(const detail::CommandView& command) override;
  Future<void> refuse(Error error) override { return target_->refuse(std::move(error)); }
  [[nodiscard]] std::string name_of(const Operand& range) const override {
    return target_->name_of(range);
  }
  /// The other ranks are told that this one's call is wrong.
  Future<void> refuse_collective(Error error, const detail::Scope& scope) override;

  /// Epochs up to this one have ended: whoever waits for a verdict in one goes on without.
  void close(std::uint32_t epoch);
  /// All ranks call it, at the end.
  void leave() { transport_.leave(); }

 private:
  /// Which collective: its number from 1 among those of a communicator in an epoch. Groups that
  /// share no rank may have the same number, but not the same rank 0.
  struct Key {
    std::uint32_t epoch = 0;
    std::uint32_t group = 0;
    std::int32_t first = 0;
    std::uint64_t number = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Message {
    Key key{};
    bool verdict = false;
    std::uint32_t members = 0;  ///< as many take part
    std::int32_t rank = 0;      ///< of the sender, in the communicator
    std::int32_t job_rank = 0;
    std::string text;  ///< what is called; of a verdict: the error, empty: all is well
  };

  static std::string in_words(const Key& key);
  static std::vector<std::byte> encode(const Message& message);
  static Message decode(const std::vector<std::byte>& bytes);
  /// Tells rank 0 of the next collective, with calls_mutex_ held. No key: there is nobody to
  /// compare it with, or its epoch has ended, and other ranks may not call it any more.
  std::optional<Key> announce(const detail::Scope& scope, const std::string& text);
  void received(const Message& message);
  /// On rank 0.
  void judge(const Message& call);

  detail::Submitter* target_;
  Look look_;
  int job_rank_;

  std::mutex calls_mutex_;  ///< one collective at a time: their order is that of the calls
  std::map<std::uint32_t, Key> last_;  ///< by group

  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint32_t closed_ = 0;
  Message verdict_;  ///< the newest

  std::map<Key, std::vector<Message>> calls_;  ///< on rank 0, the transport's thread
  Transport transport_;
};

}  // namespace troupe::rank_process
