#include "common/links/links.hpp"

#include <linux/sockios.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "common/core/log.hpp"
#include "common/ipc/system_error.hpp"

namespace troupe::net {
namespace {

constexpr std::size_t kBuffer = 64 * 1024;    ///< what is read at once of small messages
constexpr std::size_t kMostAtOnce = 8 << 20;  ///< of one connection, before others have their turn
constexpr std::size_t kPartsAtOnce = 32;      ///< pieces of memory that one system call sends
constexpr std::size_t kLeastOffered = 1 << 20;  ///< smaller messages go through the connection
/// In the head of a message of which the place comes first.
constexpr std::uint64_t kOffered = std::uint64_t{1} << 63;
constexpr std::byte kTaken{1}, kRefused{2};  ///< answers, on the way back of the connection

}  // namespace

std::size_t Links::Message::on_the_way() const noexcept {
  switch (way) {
    case Way::whole: return sizeof head + data.size();
    case Way::offered: return sizeof head + sizeof place;
    case Way::taken: return sizeof head + sizeof place + sizeof kTaken;
    case Way::refused: return sizeof head + sizeof place + data.size();
  }
  return 0;
}

Links::Links(LinkHub& hub, LinkChannel channel)
    : hub_(&hub),
      channel_(channel),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      bell_(ipc::Doorbell::create().take()) {
  check(static_cast<bool>(epoll_), "epoll_create1");
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = nullptr;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, bell_.fd(), &event);
  hub.attach(channel, *this);
}

Links::~Links() {
  hub_->detach(channel_);
}

void Links::adopt(int rank, std::uint32_t incarnation, UniqueFd socket) {
  auto in = std::make_unique<In>();
  in->rank = rank;
  in->incarnation = incarnation;
  in->incoming = true;
  in->socket = std::move(socket);
  in->buffer.resize(kBuffer);
  {
    const std::lock_guard lock(mutex_);
    adopted_.push_back(std::move(in));
  }
  bell_.ring();
}

void Links::take_adopted() {
  bell_.clear();
  std::vector<std::unique_ptr<In>> adopted;
  {
    const std::lock_guard lock(mutex_);
    adopted.swap(adopted_);
  }
  for (auto& in : adopted) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = static_cast<End*>(in.get());
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, in->socket.get(), &event);
    in->is_younger = has_elder(*in);
    in_.push_back(std::move(in));
  }
}

Links::Out& Links::out_to(int rank) {
  auto& out = out_[rank];
  const auto incarnation = hub_->peers().incarnation(rank);
  if (out && out->incarnation == incarnation) return *out;
  // Its end is another process by now; or it is not known which one, and this one is to hear what
  // waits.
  std::deque<Message> waiting;
  if (out && out->incarnation == Peers::kUnknown) waiting.swap(out->queue);
  for (auto& message : waiting) {
    if (message.way != Way::whole) message.way = Way::offered;
  }
  sending_ -= waiting.size();
  if (out) drop(*out);
  out = std::make_unique<Out>();
  out->rank = rank;
  out->incarnation = incarnation;
  sending_ += waiting.size();
  out->queue = std::move(waiting);
  connect(*out);
  return *out;
}

void Links::connect(Out& out) {
  out.watched = true;  // until it is connected
  auto made = hub_->connect(out.rank, channel_);
  out.waits_for_address = made.code() == Errc::would_block;
  if (out.waits_for_address) return;
  if (!made.ok()) {
    log::warn("net", "rank {} cannot be reached: {}", out.rank, made.error().to_string());
    return drop(out);
  }
  out.socket = std::move(made->socket);
  out.introduction = std::move(made->introduction);
  out.near = hub_->is_near(out.rank);
  epoll_event event{};
  event.events = EPOLLRDHUP | EPOLLIN | EPOLLOUT;
  event.data.ptr = static_cast<End*>(&out);
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, out.socket.get(), &event);
}

void Links::renew() {
  const auto& peers = hub_->peers();
  for (auto& [rank, out] : out_) {
    if (out->broken) continue;
    if (peers.is_old(rank, out->incarnation)) {
      drop(*out);
    } else if (out->waits_for_address) {
      connect(*out);
    }
  }
  std::erase_if(in_, [&](const auto& in) { return peers.is_old(in->rank, in->incarnation); });
}

void Links::send(int rank, Head head, std::vector<std::byte> bytes) {
  auto& out = out_to(rank);
  if (out.broken) return;
  head.bytes = bytes.size();
  Message message{head, std::move(bytes), {}, {}};
  message.data = message.owned;
  queue(out, std::move(message));
}

void Links::send(int rank, Head head, std::span<const std::byte> data, std::function<void()> sent) {
  auto& out = out_to(rank);
  if (out.broken) return sent();
  head.bytes = data.size();
  queue(out, {head, {}, data, std::move(sent)});
}

void Links::queue(Out& out, Message message) {
  if (out.near && message.data.size() >= kLeastOffered) {
    if (const auto place = offer(message.data)) {
      message.way = Way::offered;
      message.place = *place;
      message.head.bytes |= kOffered;
    }
  }
  out.queue.push_back(std::move(message));
  ++sending_;
  if (!out.watched) push(out);
}

/// Gives the system as much as it takes.
void Links::push(Out& out) {
  while (!out.queue.empty() && !out.broken) {
    std::array<iovec, kPartsAtOnce> parts{};
    std::size_t count = 0, skip = out.done;
    const auto add = [&](const void* data, std::size_t bytes) {
      const auto skipped = std::min(skip, bytes);
      skip -= skipped;
      if (skipped == bytes || count == parts.size()) return;
      parts[count++] = {const_cast<char*>(static_cast<const char*>(data)) + skipped,
                        bytes - skipped};
    };
    add(out.introduction.data(), out.introduction.size());
    for (const auto& message : out.queue) {
      if (count == parts.size()) break;
      add(&message.head, sizeof message.head);
      if (message.way != Way::whole) add(&message.place, sizeof message.place);
      if (message.way == Way::offered) break;
      if (message.way == Way::taken) {
        add(&kTaken, sizeof kTaken);
      } else {
        add(message.data.data(), message.data.size());
      }
    }
    if (count == 0) return watch(out, false);  // until the receiver has answered
    msghdr packet{};
    packet.msg_iov = parts.data();
    packet.msg_iovlen = count;
    const auto sent = ::sendmsg(out.socket.get(), &packet, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == ENOTCONN)) return watch(out, true);
    if (sent < 0) return drop(out);
    progress_ = true;
    out.done += static_cast<std::size_t>(sent);
    while (!out.queue.empty()) {
      const auto& first = out.queue.front();
      const auto whole = out.introduction.size() + first.on_the_way();
      if (out.done < whole || first.way == Way::offered) break;
      out.done -= whole;
      out.introduction.clear();
      const auto told = std::move(out.queue.front().sent);
      out.queue.pop_front();
      --sending_;
      if (told) told();
    }
  }
  watch(out, false);
}

void Links::hear_answer(Out& out) {
  std::byte answer{};
  const auto got = ::recv(out.socket.get(), &answer, sizeof answer, MSG_DONTWAIT);
  if (got < 0) return;
  const bool waits = !out.queue.empty() && out.queue.front().way == Way::offered;
  if (got == 0 || !waits || (answer != kTaken && answer != kRefused)) return drop(out);
  out.queue.front().way = answer == kTaken ? Way::taken : Way::refused;
  out.near = answer == kTaken;
  push(out);
}

void Links::watch(Out& out, bool room) {
  if (out.watched == room || out.broken) return;
  out.watched = room;
  epoll_event event{};
  event.events = EPOLLRDHUP | EPOLLIN | (room ? std::uint32_t{EPOLLOUT} : 0U);
  event.data.ptr = static_cast<End*>(&out);
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, out.socket.get(), &event);
}

/// The connection is gone: nothing more of what waits will be taken.
void Links::drop(Out& out) {
  if (out.broken) return;
  out.broken = true;
  out.socket.reset();
  gone_.push_back(out.rank);
  sending_ -= out.queue.size();
  const auto queue = std::exchange(out.queue, {});
  for (const auto& message : queue) {
    if (message.sent) message.sent();
  }
}

void Links::forget(int rank) {
  const auto out = out_.find(rank);
  if (out == out_.end() || (out->second->queue.empty() && !out->second->broken)) return;
  drop(*out->second);
  out_.erase(out);
}

/// Takes whole messages out of the buffer, and the begin of one. False: it is no message of ours.
bool Links::consume(In& in, const Taker& taker) {
  using Next = In::Next;
  // False: it is not there yet.
  const auto get = [&in](void* to, std::size_t bytes) {
    if (in.end - in.begin < bytes) return false;
    std::memcpy(to, in.buffer.data() + in.begin, bytes);
    in.begin += bytes;
    return true;
  };
  const auto target = [&in] { return in.where != nullptr ? in.where : in.bytes.data(); };
  for (;;) {
    switch (in.next) {
      case Next::head: {
        if (!get(&in.head, sizeof in.head)) return true;
        const bool offered = (in.head.bytes & kOffered) != 0;
        in.head.bytes &= ~kOffered;
        if (in.head.bytes > kMostBytes) return false;
        in.next = offered ? Next::place : Next::bytes;
        in.received = 0;
        in.where = taker.place ? taker.place(in.rank, in.head) : nullptr;
        if (in.where == nullptr) in.bytes.resize(in.head.bytes);
        break;
      }
      case Next::place: {
        NearMemory place;
        if (!get(&place, sizeof place)) return true;
        const bool taken = read(place, {target(), in.head.bytes});
        in.next = taken ? Next::confirmation : Next::bytes;
        const auto answer = taken ? kTaken : kRefused;
        if (::send(in.socket.get(), &answer, sizeof answer, MSG_NOSIGNAL | MSG_DONTWAIT) !=
            sizeof answer)
          return false;
        break;
      }
      case Next::confirmation: {
        std::byte confirmed{};
        if (!get(&confirmed, sizeof confirmed)) return true;
        hand_on(in, taker);
        break;
      }
      case Next::bytes: {
        const auto more = std::min<std::uint64_t>(in.end - in.begin, in.head.bytes - in.received);
        if (more > 0) (void)get(target() + in.received, more);
        in.received += more;
        if (in.received < in.head.bytes) return true;
        hand_on(in, taker);
        break;
      }
    }
  }
}

void Links::hand_on(In& in, const Taker& taker) {
  in.next = In::Next::head;
  taker.arrived(in.rank, in.head, std::exchange(in.bytes, {}), in.where);
}

/// The process at the other end has given up an earlier connection, and not all of it has been
/// read.
bool Links::has_elder(const End& end) const {
  const auto first = std::find_if(in_.begin(), in_.end(), [&](const auto& other) {
    return other->rank == end.rank && other->incarnation == end.incarnation && other->socket;
  });
  return first != in_.end() && first->get() != &end;
}

/// False once the connection has ended.
bool Links::take(In& in, const Taker& taker) {
  if (hub_->peers().is_old(in.rank, in.incarnation)) return false;
  in.is_younger = in.is_younger && has_elder(in);
  if (in.is_younger) return true;
  for (std::size_t taken = 0; taken < kMostAtOnce;) {
    // A message that is not there yet goes straight to its place.
    const auto missing = in.next == In::Next::bytes ? in.head.bytes - in.received : 0;
    const bool direct = missing > kBuffer;
    if (!direct && in.begin > 0) {
      std::memmove(in.buffer.data(), in.buffer.data() + in.begin, in.end - in.begin);
      in.end -= in.begin;
      in.begin = 0;
    }
    auto* const target = in.where != nullptr ? in.where : in.bytes.data();
    auto* const to = direct ? target + in.received : in.buffer.data() + in.end;
    const auto room = direct
                          ? static_cast<std::size_t>(std::min<std::uint64_t>(missing, kMostAtOnce))
                          : in.buffer.size() - in.end;
    const auto got = ::recv(in.socket.get(), to, room, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    if (got == 0) return false;
    progress_ = true;
    taken += static_cast<std::size_t>(got);
    if (direct) {
      in.received += static_cast<std::uint64_t>(got);
      if (in.received < in.head.bytes) continue;
      hand_on(in, taker);
    } else {
      in.end += static_cast<std::size_t>(got);
      if (!consume(in, taker)) {
        log::error("net", "what rank {} sends is no message", in.rank);
        return false;
      }
      if (static_cast<std::size_t>(got) < room) return true;  // there was no more
    }
  }
  return true;
}

bool Links::look(const Taker& taker) {
  progress_ = false;
  bool woken = false;
  std::array<epoll_event, 64> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    const auto& event = events[static_cast<std::size_t>(i)];
    auto* const end = static_cast<End*>(event.data.ptr);
    if (end == nullptr) {
      take_adopted();
      woken = true;
    } else if (end->incoming) {
      auto& in = static_cast<In&>(*end);
      if (!take(in, taker)) {
        in.socket.reset();
        gone_.push_back(in.rank);
      }
    } else {
      auto& out = static_cast<Out&>(*end);
      if ((event.events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP)) != 0) {
        drop(out);
      } else if (!out.broken) {
        if ((event.events & EPOLLIN) != 0) hear_answer(out);
        push(out);
      }
    }
  }
  if (woken) renew();
  if (count > 0) std::erase_if(in_, [](const auto& in) { return !in->socket; });
  for (const int rank : std::exchange(gone_, {})) {
    if (taker.gone) taker.gone(rank);
  }
  return progress_;
}

void Links::wait(std::chrono::nanoseconds limit) const {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
  const timespec time{.tv_sec = seconds.count(), .tv_nsec = (limit - seconds).count()};
  pollfd ready{epoll_.get(), POLLIN, 0};
  (void)::ppoll(&ready, 1, &time, nullptr);
}

bool Links::delivered() const {
  if (sending()) return false;
  return std::all_of(out_.begin(), out_.end(), [](const auto& entry) {
    int waiting = 0;
    const auto& out = *entry.second;
    return out.broken || ::ioctl(out.socket.get(), SIOCOUTQ, &waiting) != 0 || waiting == 0;
  });
}

}  // namespace troupe::net
