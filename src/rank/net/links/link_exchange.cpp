#include "rank/net/links/link_exchange.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

namespace troupe::rank_process {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kLooksForLinks = std::chrono::microseconds(100);  ///< without sleeping
constexpr auto kLongestWait = std::chrono::milliseconds(50);     ///< at most, between looks

// Parts of a call.
constexpr std::uint32_t kUp = 0, kDown = 1, kAcross = 2;

void append(std::vector<std::byte>& all, std::span<const std::byte> more) {
  all.insert(all.end(), more.begin(), more.end());
}

void append_sized(std::vector<std::byte>& all, std::span<const std::byte> one) {
  const std::uint64_t size = one.size();
  append(all, std::as_bytes(std::span(&size, 1)));
  append(all, one);
}

/// Takes apart what append_sized() has put together.
std::vector<std::vector<std::byte>> parts_of(std::span<const std::byte> all) {
  std::vector<std::vector<std::byte>> parts;
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= all.size();) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, all.data() + at, sizeof bytes);
    at += sizeof bytes;
    check(bytes <= all.size() - at, "what members of a group have given is whole");
    const auto one = all.subspan(at, bytes);
    parts.emplace_back(one.begin(), one.end());
    at += bytes;
  }
  return parts;
}

}  // namespace

Links::Head LinkPost::head_of(const Name& name) {
  return {.tag = name.era.epoch, .slot = name.part, .key = name.group, .sequence = name.call};
}

bool LinkPost::look() {
  const auto key_of = [](int rank, const Links::Head& head) {
    return Key{head.tag, rank, head.key, head.sequence, head.slot};
  };
  return links_.look(
      {.arrived =
           [&](int rank, const Links::Head& head, std::vector<std::byte> bytes, std::byte* where) {
             if (where != nullptr) {
               room_.in_use = false;
               bytes = std::move(room_.bytes);
             }
             come_[key_of(rank, head)] = std::move(bytes);
           },
       .place = [&](int rank, const Links::Head& head) -> std::byte* {
         const bool fits = !room_.in_use && head.bytes > 0 && head.bytes <= room_.bytes.capacity();
         if (!fits || room_.key != key_of(rank, head)) return nullptr;
         room_.in_use = true;
         room_.bytes.resize(head.bytes);
         return room_.bytes.data();
       }});
}

void LinkPost::send(int rank, const Name& name, std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  links_.send(rank, head_of(name), std::vector<std::byte>(bytes.begin(), bytes.end()));
  // Nobody may look again for long.
  while (links_.sending()) {
    if (!look()) links_.wait(kLongestWait);
  }
}

std::vector<std::byte> LinkPost::wait_for(int rank, const Name& name, const bool* gone) {
  const Key key{name.era.epoch, rank, name.group, name.call, name.part};
  const auto since = Clock::now();
  for (;;) {
    const bool moved = look();
    const auto found = come_.find(key);
    if (found != come_.end() && (gone == nullptr || *gone)) {
      auto bytes = std::move(found->second);
      come_.erase(found);
      return bytes;
    }
    if (eras_->is_over(name.era)) eras_->interrupt();
    if (!moved && (!spins_ || Clock::now() - since > kLooksForLinks)) links_.wait(kLongestWait);
  }
}

std::vector<std::byte> LinkPost::receive(int rank, const Name& name) {
  const std::lock_guard lock(mutex_);
  return wait_for(rank, name);
}

std::vector<std::byte> LinkPost::exchange(std::span<const std::byte> outgoing, int to, int from,
                                          const Name& name, std::vector<std::byte> room) {
  const std::lock_guard lock(mutex_);
  if (to == hub_->rank()) return {outgoing.begin(), outgoing.end()};  // the only one
  if (!room_.in_use)
    room_ = {{name.era.epoch, from, name.group, name.call, name.part}, std::move(room)};
  // It may be called when this has ended by an exception.
  const auto gone = std::make_shared<bool>(false);
  links_.send(to, head_of(name), outgoing, [gone] { *gone = true; });
  try {
    return wait_for(from, name, gone.get());
  } catch (...) {
    links_.forget(to);  // the bytes are the caller's
    throw;
  }
}

LinkExchange::LinkExchange(std::shared_ptr<LinkPost> post, std::vector<int> ranks, int own,
                           std::uint64_t group, Renewal renewal, Start start)
    : post_(std::move(post)),
      ranks_(std::move(ranks)),
      own_(own),
      group_(group),
      renewal_(renewal),
      start_(start),
      era_(post_->eras().now()) {
  for (const int rank : ranks_) incarnations_.push_back(post_->peers().incarnation(rank));
}

void LinkExchange::renew() {
  const auto now = post_->eras().now();
  if (now.epoch != era_.epoch) calls_ = 0;
  era_ = now;
}

LinkPost::Name LinkExchange::next() {
  if (renewal_ != Renewal::when_asked) renew();
  for (std::size_t i = 0; renewal_ == Renewal::never && i < ranks_.size(); ++i) {
    if (post_->peers().incarnation(ranks_[i]) == incarnations_[i]) continue;
    throw Exception(Error{Errc::peer_lost, 0,
                          "rank " + std::to_string(ranks_[i]) +
                              " has died since this group was made: make it again"});
  }
  return {.era = era_, .group = group_, .call = ++calls_};
}

std::vector<std::vector<std::byte>> LinkExchange::replay(std::span<const std::byte> own) const {
  auto heard = start_.log->read();
  if (start_.neighbours == 0 || !start_.log->are_others()) return heard;
  // The neighbours that it had are not those of this place: as if all here were alike.
  const StartLog::Parts::value_type mine(own.begin(), own.end());
  return StartLog::Parts(static_cast<std::size_t>(start_.neighbours), mine);
}

std::vector<std::vector<std::byte>> LinkExchange::gather(std::span<const std::byte> own) {
  if (start_.log != nullptr && start_.log->replays()) return replay(own);
  auto up = next(), down = up;
  up.part = kUp;
  down.part = kDown;
  const int size = static_cast<int>(ranks_.size());
  std::vector<std::byte> all;
  append_sized(all, own);
  int step = 1;
  for (; step < size && (own_ & step) == 0; step *= 2) {
    if (own_ + step < size) append(all, post_->receive(rank_of(own_ + step), up));
  }
  if (own_ != 0) {
    post_->send(rank_of(own_ - step), up, all);
    all = post_->receive(rank_of(own_ - step), down);
  }
  for (step /= 2; step >= 1; step /= 2) {
    if (own_ + step < size) post_->send(rank_of(own_ + step), down, all);
  }
  auto parts = parts_of(all);
  check(parts.size() == ranks_.size(), "every member of a group has given something");
  if (start_.log != nullptr && start_.log->is_open()) start_.log->write(parts);
  return parts;
}

void LinkExchange::all_gather(std::span<const std::byte> value, std::span<std::byte> all) {
  auto parts = gather(value);
  parts.resize(ranks_.size());  // see replay()
  auto to = all.begin();
  for (const auto& part : parts) {
    check(part.size() == value.size(), "all members of a group give values of one size");
    to = std::copy(part.begin(), part.end(), to);
  }
}

std::vector<std::string> LinkExchange::gather_text(const std::string& text) {
  std::vector<std::string> texts;
  for (const auto& part : gather(std::as_bytes(std::span(text))))
    texts.emplace_back(reinterpret_cast<const char*>(part.data()), part.size());
  return texts;
}

std::vector<std::vector<std::byte>> LinkExchange::all_to_all(
    const std::vector<std::vector<std::byte>>& outgoing) {
  const auto size = outgoing.size(), own = static_cast<std::size_t>(own_);
  if (start_.log != nullptr && start_.log->is_open()) {
    // All hear all, so that the log is the same for all.
    std::vector<std::byte> everything;
    for (const auto& part : outgoing) append_sized(everything, part);
    std::vector<std::vector<std::byte>> mine;
    for (const auto& of_one : gather(everything)) mine.push_back(parts_of(of_one).at(own));
    return mine;
  }
  auto name = next();
  name.part = kAcross;
  std::vector<std::vector<std::byte>> incoming(size);
  incoming[own] = outgoing[own];
  for (std::size_t i = 1; i < size; ++i) {
    const auto to = (own + i) % size, from = (own + size - i) % size;
    incoming[from] = post_->exchange(outgoing[to], rank_of(static_cast<int>(to)),
                                     rank_of(static_cast<int>(from)), name, {});
  }
  return incoming;
}

std::vector<std::byte> LinkExchange::shift(std::span<const std::byte> outgoing, int to, int from,
                                           std::vector<std::byte> incoming) {
  auto name = next();
  name.part = kAcross;
  return post_->exchange(outgoing, rank_of(to), rank_of(from), name, std::move(incoming));
}

}  // namespace troupe::rank_process
