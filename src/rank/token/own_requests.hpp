#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <variant>
#include <vector>

#include <troupe/future.hpp>

#include "rank/token/transfers.hpp"

namespace troupe::rank_process {

struct Routes;

namespace token_message {
using Done = std::function<void(const Result<void>&)>;

struct Fetch {
  std::uint32_t epoch;
  std::uint64_t behind;  ///< this commit of the program
  Operand token;
  int owner;
  Operand destination;  ///< expected by the port already
  Done done;
};
struct Put {
  std::uint32_t epoch;
  std::uint64_t behind;  ///< this commit of the program
  std::shared_ptr<Loan> loan;
  Operand source;
  Operand token;
  int owner;
  Done done;
};
/// A command, a hold or a mapping. Its key is made here, and given to `done`.
struct Ask {
  std::uint32_t epoch;
  int owner;
  std::variant<routed::Execute, routed::Hold, routed::Map> request;
  std::function<void(const TransferKey&, const Result<void>&)> done;
};
/// The end of a hold or a mapping.
struct Release {
  int owner;
  TransferKey key;
};
/// Resolves `answered` once all that this rank has asked for until now is answered.
struct Flush {
  std::shared_ptr<Promise<void>> answered;
};
}  // namespace token_message

/// What this rank asks of others: numbered, sent to each rank in the order in which it was asked,
/// and answered once. A fetch is a Pull from then on. The TokenActor's turns.
class OwnRequests {
 public:
  explicit OwnRequests(Routes& routes);

  void on(token_message::Fetch fetch);
  void on(token_message::Put put);
  void on(token_message::Ask ask);
  void on(const token_message::Release& release);
  void on(const token_message::Flush& flush);
  void on(int, const routed::Answer& answer) { end(answer.key, answer.outcome); }

  /// True while this rank waits for that one's answer to the request.
  [[nodiscard]] bool waits_for(const TransferKey& key, int owner) const {
    const auto it = requests_.find(key);
    return it != requests_.end() && it->second.owner == owner;
  }
  /// The transfer of a put will never be. True if it had not been asked for yet: then it has ended.
  bool withdraw(const TransferKey& key, int owner, const Error& why);
  /// A fetch of this rank has ended.
  void fetched(const TransferKey& key) { count_down(key); }
  /// The rank is out of the world.
  void exclude(int rank);
  void end_all(const Error& why);
  [[nodiscard]] bool empty() const noexcept { return requests_.empty(); }

 private:
  struct Request {
    int owner;
    std::function<void(const TransferKey&, const Result<void>&)> done;
  };
  struct Outgoing {
    TransferKey key;
    TokenMessage message;
    bool ready = true;
  };
  struct Flushing {
    std::uint64_t end;  ///< waits for all numbers below …
    std::size_t left;   ///< … of which so many are open
    std::shared_ptr<Promise<void>> answered;
  };

  [[nodiscard]] TransferKey next_key(std::uint32_t epoch);
  [[nodiscard]] std::deque<Outgoing>& outbox(int owner) {
    return outbox_[static_cast<std::size_t>(owner)];
  }
  void send(int owner, Outgoing outgoing);
  /// Sends what is ready and behind nothing that is not.
  void send_ready(int owner);
  /// The source of a put is there, or not.
  void granted(const LendingPtr& lending, const Result<void>& outcome);
  /// The put that waits in the outbox; nullptr: it has left, or was taken back.
  [[nodiscard]] Outgoing* waiting_put(const TransferKey& key, int owner);
  bool take_back(const TransferKey& key, int owner);
  void end(const TransferKey& key, const Result<void>& outcome);
  /// Tells whoever waits for the last of them.
  void count_down(const TransferKey& key);

  Routes& routes_;
  std::uint64_t next_number_ = 1;
  std::vector<std::deque<Outgoing>> outbox_;  ///< by rank
  std::map<TransferKey, Request> requests_;   ///< not answered
  std::vector<Flushing> flushings_;
};

}  // namespace troupe::rank_process
