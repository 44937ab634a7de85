#include <algorithm>

#include "rank/token/token_actor.hpp"

// What ends requests and transfers beside themselves: the epoch, a rank that leaves the world,
// time, the runtime.

namespace troupe::rank_process {

using namespace token_message;

Error TokenActor::gone(int rank) {
  return {Errc::peer_lost, 0, "rank " + std::to_string(rank) + " is out of the world"};
}

void TokenActor::on(const EpochBegun& begun) {
  if (begun.epoch <= epoch_) return;
  epoch_ = begun.epoch;
  committed_ = 0;
  advance_all();
}

void TokenActor::on(const Committed& committed) {
  if (committed.epoch != epoch_) return;
  committed_ = committed.number;
  advance_all();
}

void TokenActor::on(const Flush& flush) {
  const auto own = std::count_if(pulls_.begin(), pulls_.end(), [this](const auto& pull) {
    return pull.first.requester == parts_->rank;
  });
  const auto left = requests_.size() + static_cast<std::size_t>(own);
  if (left == 0) return (void)flush.answered->resolve({});
  flushings_.push_back({next_number_, left, flush.answered});
}

void TokenActor::own_request_ended(const TransferKey& key) {
  std::erase_if(flushings_, [&key](Flushing& flushing) {
    if (key.number >= flushing.end || --flushing.left != 0) return false;
    flushing.answered->resolve({});
    return true;
  });
}

void TokenActor::on(const EpochEnded& ended) {
  if (ended.epoch <= ended_) return;
  ended_ = ended.epoch;
  why_ended_ = ended.why;
  end_channels();
  const auto lendings = lendings_;
  for (const auto& [key, lending] : lendings) {
    if (key.epoch <= ended_) over(lending, why_ended_);
  }
  const auto pulls = pulls_;
  for (const auto& [key, pull] : pulls) {
    if (key.epoch <= ended_) fail(pull, why_ended_);
  }
  advance_all();
  // Otherwise their owners answer: what they have done they have done.
  while (ended_ == kNoMoreEpochs && !requests_.empty())
    answered(requests_.begin()->first, why_ended_);
}

void TokenActor::on(const SetExcluded& set) {
  const auto is_out = [&](int rank) {
    return std::find(set.ranks.begin(), set.ranks.end(), rank) != set.ranks.end();
  };
  const bool alone = is_out(parts_->rank);  // out of the world itself
  for (int rank = 0; rank < parts_->size; ++rank) {
    const bool out = rank != parts_->rank && (alone || is_out(rank));
    const bool was_out = excluded_[static_cast<std::size_t>(rank)];
    excluded_[static_cast<std::size_t>(rank)] = out;
    if (out && !was_out) exclude(rank);
  }
}

void TokenActor::exclude(int rank) {
  std::erase_if(inbox_[static_cast<std::size_t>(rank)],
                [this](const Waiting& waiting) { return waiting.packet.head.key.epoch <= ended_; });
  outbox_[static_cast<std::size_t>(rank)].clear();
  const auto pulls = pulls_;
  for (const auto& [key, pull] : pulls) {
    if (pull->source == rank) fail(pull, gone(rank));
  }
  const auto lendings = lendings_;
  for (const auto& [key, lending] : lendings) {
    if (lending->destination == rank) end_lending(lending);
  }
  std::vector<std::uint64_t> channels;
  for (const auto& [number, channel] : channels_) {
    if (channel.peer == rank) channels.push_back(number);
  }
  for (const auto number : channels) give_up_channel(number, gone(rank), false);
  std::vector<TransferKey> asked;
  for (const auto& [key, request] : requests_) {
    if (request.owner == rank) asked.push_back(key);
  }
  for (const auto& key : asked) answered(key, gone(rank));
  std::vector<TransferKey> held;
  for (const auto& [key, buffer] : holds_) {
    if (key.requester == rank) held.push_back(key);
  }
  for (const auto& key : held) handle_release(key);
  std::vector<MappingId> mapped;
  for (const auto& [id, mapping] : mappings_) {
    if (id.first == rank) mapped.push_back(id);
  }
  for (const auto& id : mapped) unmap(id);
}

void TokenActor::on(Look) {
  context().schedule(kLookEvery, Look{});
  advance_all();
  const auto late = [this](TimePoint progress) {
    return context().now() - progress > parts_->timeout;
  };
  const auto pulls = pulls_;
  for (const auto& [key, pull] : pulls) {
    // Nothing is heard of what a channel brings before it is there.
    const bool received = is_under_way(pull->channel, key);
    const std::chrono::seconds more(received ? pull->destination.bytes / kSlowestChannel : 0);
    if (late(pull->progress + more) && (pull->copying == 0 || received))
      fail(pull, {Errc::timeout, 0,
                  "a transfer of " + std::to_string(pull->destination.bytes) + " bytes from rank " +
                      std::to_string(pull->source) + " into " +
                      port().buffers().describe(pull->destination) + " makes no progress"});
  }
  const auto lendings = lendings_;
  for (const auto& [key, lending] : lendings) {
    if (late(lending->progress) && !is_under_way(lending->channel, key)) {
      over(lending, Error{Errc::timeout, 0,
                          "rank " + std::to_string(lending->destination) + " does not take " +
                              std::to_string(lending->bytes) + " bytes of rank " +
                              std::to_string(parts_->rank)});
    }
  }
}

bool TokenActor::on(End) {
  const Error ended{Errc::stopped, 0, "the runtime has ended"};
  channels_.clear();
  const auto lendings = lendings_;
  for (const auto& [key, lending] : lendings) end_lending(lending);
  const auto pulls = pulls_;
  for (const auto& [key, pull] : pulls) {
    pull->copying = 0;  // nobody will hear of them
    fail(pull, ended);
  }
  while (!requests_.empty()) answered(requests_.begin()->first, ended);
  for (const auto& [key, buffer] : holds_) port().buffers().release(buffer);
  holds_.clear();
  return true;
}

}  // namespace troupe::rank_process
