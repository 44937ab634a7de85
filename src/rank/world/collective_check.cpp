#include "rank/world/collective_check.hpp"

#include <algorithm>
#include <cstring>

#include "common/core/log.hpp"
#include "common/wire/collective_call.hpp"
#include "rank/device/commands/command_port.hpp"

namespace troupe::rank_process {
namespace {

constexpr auto kPatience = std::chrono::seconds(60);  ///< before it is said that ranks are missing

/// The fixed part of a message.
struct Head {
  std::uint64_t number = 0;
  std::uint32_t epoch = 0;
  std::uint32_t verdict = 0;
  std::uint32_t members = 0;
  std::int32_t rank = 0;
  std::int32_t job_rank = 0;
  std::uint32_t group = 0;
  std::int32_t first = 0;
  std::uint32_t reserved = 0;
};

std::string describe(const detail::CommandView& command) {
  const auto& info = *command.info;
  if (info.agreement == nullptr) return std::string(info.name);
  return to_string(wire::call_of(info, command.op.data()));
}

}  // namespace

CollectiveCheck::CollectiveCheck(Session& mpi, detail::Submitter& target, Look look)
    : target_(&target),
      look_(std::move(look)),
      job_rank_(mpi.rank()),
      transport_(mpi, Transport::Channel::checks,
                 [this](const std::vector<std::byte>& bytes) { received(decode(bytes)); }) {}

std::string CollectiveCheck::in_words(const Key& key) {
  const auto group = key.group != 0 ? " of group " + std::to_string(key.group) : std::string();
  return "collective " + std::to_string(key.number) + group + " of epoch " +
         std::to_string(key.epoch);
}

std::vector<std::byte> CollectiveCheck::encode(const Message& message) {
  const Head head{.number = message.key.number,
                  .epoch = message.key.epoch,
                  .verdict = message.verdict ? 1u : 0u,
                  .members = message.members,
                  .rank = message.rank,
                  .job_rank = message.job_rank,
                  .group = message.key.group,
                  .first = message.key.first};
  std::vector<std::byte> bytes(sizeof head + message.text.size());
  std::memcpy(bytes.data(), &head, sizeof head);
  std::memcpy(bytes.data() + sizeof head, message.text.data(), message.text.size());
  return bytes;
}

CollectiveCheck::Message CollectiveCheck::decode(const std::vector<std::byte>& bytes) {
  Head head;
  check(bytes.size() >= sizeof head, "a message of the collective check is too short");
  std::memcpy(&head, bytes.data(), sizeof head);
  return {{head.epoch, head.group, head.first, head.number},
          head.verdict != 0,
          head.members,
          head.rank,
          head.job_rank,
          std::string(reinterpret_cast<const char*>(bytes.data()) + sizeof head,
                      bytes.size() - sizeof head)};
}

std::optional<CollectiveCheck::Key> CollectiveCheck::announce(const detail::Scope& scope,
                                                              const std::string& text) {
  const auto place = look_(scope.group);
  const std::lock_guard lock(mutex_);
  if (scope.epoch != place.epoch || place.size < 2 || closed_ >= place.epoch) return std::nullopt;
  auto& last = last_[scope.group];
  last = {place.epoch, scope.group, place.first, last.epoch == place.epoch ? last.number + 1 : 1};
  transport_.send(0, encode({last, false, static_cast<std::uint32_t>(place.size), place.rank,
                             job_rank_, text}));
  return last;
}

Future<void> CollectiveCheck::submit(const detail::CommandView& command) {
  if (!RunGuard::check()) return target_->submit(command);  // which says so
  const std::lock_guard one_at_a_time(calls_mutex_);
  const auto text = describe(command);
  const auto key = announce(command.scope, text);
  if (!key) return target_->submit(command);  // which says what has ended the epoch
  std::unique_lock lock(mutex_);
  const auto decided = [&] {
    return closed_ >= key->epoch || (verdict_.verdict && verdict_.key == *key);
  };
  while (!changed_.wait_for(lock, kPatience, decided)) {
    log::warn("world", "{} ({}) waits for other ranks to call it", text, in_words(*key));
  }
  const auto wrong = closed_ >= key->epoch ? std::string() : verdict_.text;
  lock.unlock();
  return wrong.empty() ? target_->submit(command) : target_->refuse({Errc::invalid, 0, wrong});
}

Future<void> CollectiveCheck::refuse_collective(Error error, const detail::Scope& scope) {
  if (RunGuard::check()) {
    const std::lock_guard one_at_a_time(calls_mutex_);
    announce(scope, "a call that is refused: " + error.message);
  }
  return target_->refuse(std::move(error));
}

void CollectiveCheck::close(std::uint32_t epoch) {
  const std::lock_guard lock(mutex_);
  closed_ = std::max(closed_, epoch);
  changed_.notify_all();
}

void CollectiveCheck::received(const Message& message) {
  if (!message.verdict) return judge(message);
  const std::lock_guard lock(mutex_);
  verdict_ = message;
  changed_.notify_all();
}

void CollectiveCheck::judge(const Message& call) {
  calls_.erase(calls_.begin(),
               calls_.lower_bound({.epoch = call.key.epoch}));  // of epochs that are over
  auto& calls = calls_[call.key];
  calls.push_back(call);
  if (calls.size() < call.members) return;
  Message verdict{call.key, true, call.members, 0, 0, {}};
  const bool alike = std::all_of(calls.begin(), calls.end(),
                                 [&](const Message& one) { return one.text == call.text; });
  if (!alike) {
    std::vector<std::pair<int, std::string>> by_rank;
    for (const auto& one : calls) by_rank.emplace_back(one.rank, one.text);
    verdict.text = wire::describe_difference(std::move(by_rank)) + " (" + in_words(call.key) + ")";
  }
  const auto bytes = encode(verdict);
  for (const auto& one : calls) transport_.send(one.job_rank, bytes);
  calls_.erase(call.key);
}

}  // namespace troupe::rank_process
