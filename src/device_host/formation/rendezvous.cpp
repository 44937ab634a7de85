#include "device_host/formation/rendezvous.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>

#include <troupe/spin.hpp>

#include "common/core/log.hpp"
#include "common/ipc/system_error.hpp"
#include "common/ipc/this_host.hpp"

namespace troupe::host {
namespace {

/// The inode of the pipe that a descriptor is of; 0: it is of no pipe.
std::uint64_t pipe_inode(int fd) {
  struct stat about {};
  return ::fstat(fd, &about) == 0 && S_ISFIFO(about.st_mode) ? about.st_ino : 0;
}

std::string descriptor_path(std::int32_t pid, std::int32_t fd) {
  return "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd);
}

constexpr std::size_t side(bool receive) {
  return receive ? 1 : 0;
}

}  // namespace

Result<std::unique_ptr<Rendezvous>> Rendezvous::open() {
  std::unique_ptr<Rendezvous> made(new Rendezvous());
  auto memory = ipc::SharedMemory::create("troupe-rendezvous", sizeof(Shared));
  if (!memory) return memory.error();
  made->memory_ = std::move(*memory);
  // A pipe: unlike an eventfd, others can open it by its path.
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return ipc::system_error("pipe2");
  made->bell_.reset(ends[0]);
  made->ringer_.reset(ends[1]);
  auto& card = made->card_;
  card.host = ipc::this_host();
  card.pid = ::getpid();
  card.memory = made->memory_.fd();
  card.bell = made->bell_.get();
  card.bell_inode = pipe_inode(card.bell);
  if (::getrandom(card.cookie.data(), sizeof card.cookie, 0) != sizeof card.cookie)
    return ipc::system_error("getrandom");
  (new (made->memory_.data()) Shared)->cookie = card.cookie;
  return made;
}

Result<Rendezvous::Member> Rendezvous::reach(int rank, std::size_t place, const Card& card) {
  // One that is gone, or that forms another communicator, has closed what its card names; the
  // descriptor's number may be another file's by now, of any kind.
  const Error gone{Errc::stale, 0, "it has left this communicator"};
  UniqueFd memory(::open(descriptor_path(card.pid, card.memory).c_str(), O_RDWR | O_CLOEXEC));
  if (!memory && (errno == ENOENT || errno == ENXIO)) return gone;
  if (!memory) return ipc::system_error("open");
  auto mapped = ipc::SharedMemory::map(std::move(memory), sizeof(Shared));
  if (mapped.code() == Errc::invalid) return gone;
  if (!mapped) return mapped.error();
  Member member{rank, place, std::move(*mapped), {}};
  if (member.shared().cookie != card.cookie) return gone;
  // For reading, too: to write to a pipe that nobody reads is a signal.
  member.bell.reset(
      ::open(descriptor_path(card.pid, card.bell).c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!member.bell && (errno == ENOENT || errno == ENXIO)) return gone;
  if (!member.bell) return ipc::system_error("open");
  // To ring would write a byte into whatever has the number now.
  if (pipe_inode(member.bell.get()) != card.bell_inode) return gone;
  return member;
}

void Rendezvous::meet(int rank, std::span<const Card> cards) {
  rank_ = rank;
  size_ = static_cast<int>(cards.size());
  const auto here = [&](const Card& card) { return card.host == card_.host; };
  if (std::count_if(cards.begin(), cards.end(), here) > std::ptrdiff_t{kMaxMembers})
    return log::warn("host",
                     "more than {} ranks on this host: collectives do not wait for them "
                     "before they are launched",
                     kMaxMembers);
  std::size_t place = 0;
  for (std::size_t i = 0; i < cards.size(); ++i) {
    if (!here(cards[i])) continue;
    const auto its_rank = static_cast<int>(i);
    const auto its_place = place++;
    if (its_rank == rank) {
      place_ = its_place;
    } else if (auto member = reach(its_rank, its_place, cards[i]); member.ok()) {
      members_.push_back(std::move(*member));
    } else if (member.code() != Errc::stale) {  // else it never takes part
      log::warn("host", "collectives do not wait for rank {} before they are launched: {}",
                its_rank, member.error().message);
    }
  }
}

void Rendezvous::begin(std::uint64_t ticket) {
  ticket_ = ticket;
  waiting_ = true;
  awaited_.clear();
}

void Rendezvous::announce(const wire::CollectiveCall& call) {
  collective_ = true;
  auto& shared = own();
  const auto number = shared.came.load(std::memory_order_relaxed) + 1;
  auto& words = shared.calls[number % 2].words;
  const auto& [dtype, reduction, root, count] = call.agreement;
  words[0].store(std::uint64_t{call.opcode} << 32 | dtype, std::memory_order_relaxed);
  words[1].store(std::uint64_t{reduction} << 32 | root, std::memory_order_relaxed);
  words[2].store(count, std::memory_order_relaxed);
  words[3].store(call.refused, std::memory_order_relaxed);
  shared.came.store(number, std::memory_order_release);
  tell();
}

wire::CollectiveCall Rendezvous::read(const Call& call) {
  const auto word = [&](std::size_t i) { return call.words[i].load(std::memory_order_relaxed); };
  const auto high = [](std::uint64_t both) { return static_cast<std::uint32_t>(both >> 32); };
  const auto low = [](std::uint64_t both) { return static_cast<std::uint32_t>(both); };
  return {high(word(0)), low(word(3)), {low(word(0)), high(word(1)), low(word(1)), word(2)}};
}

void Rendezvous::announce(std::span<const TailOperand> messages) {
  collective_ = false;
  for (const auto& message : messages) {
    const auto peer = static_cast<int>(message.tag);
    const auto it = std::find_if(members_.begin(), members_.end(),
                                 [&](const Member& member) { return member.rank == peer; });
    if (it == members_.end()) continue;
    const bool receive = message.written();
    auto& shared = own().messages[it->place][side(receive)];
    const auto number = shared.count.load(std::memory_order_relaxed) + 1;
    shared.bytes[number % kKept].store(message.range.bytes, std::memory_order_relaxed);
    shared.count.store(number, std::memory_order_release);
    awaited_.push_back(
        {static_cast<std::size_t>(it - members_.begin()), receive, number, message.range.bytes});
  }
  tell();
}

void Rendezvous::tell() const {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (const auto& member : members_) {
    if (member.shared().asleep.load(std::memory_order_relaxed) == 0) continue;
    const char nothing = 0;
    [[maybe_unused]] const auto written = ::write(member.bell.get(), &nothing, 1);
  }
}

bool Rendezvous::all_here() const {
  if (collective_) {
    const auto number = own().came.load(std::memory_order_relaxed);
    return std::all_of(members_.begin(), members_.end(), [&](const Member& member) {
      return member.shared().came.load(std::memory_order_acquire) >= number;
    });
  }
  return std::all_of(awaited_.begin(), awaited_.end(), [&](const Awaited& message) {
    const auto& theirs = members_[message.member].shared().messages[place_][side(!message.receive)];
    return theirs.count.load(std::memory_order_acquire) >= message.number;
  });
}

Result<bool> Rendezvous::arrive(std::uint64_t ticket, const OperationInfo& info,
                                const std::byte* op, std::span<const TailOperand> tail, int looks) {
  if (ticket != ticket_) {
    begin(ticket);
    if (info.agreement != nullptr) {
      announce(wire::call_of(info, op));
    } else {
      announce(tail);
    }
    for (int i = 1; i < looks && !all_here(); ++i) cpu_relax();
  }
  return pass();
}

bool Rendezvous::refuse(const OperationInfo& info, const std::byte* op) {
  if (!all_came_before()) return false;
  auto call = wire::call_of(info, op);
  call.refused = 1;
  announce(call);
  waiting_ = false;
  return true;
}

bool Rendezvous::all_came_before() {
  collective_ = true;
  waiting_ = !all_here();
  return !waiting_;
}

Result<bool> Rendezvous::pass() {
  if (!waiting_) return true;
  if (!all_here()) return false;
  waiting_ = false;
  if (const auto alike = compare(); !alike.ok()) return alike.error();
  return true;
}

Result<void> Rendezvous::compare() const {
  if (!collective_) {
    for (const auto& message : awaited_) {
      if (auto fits = compare(message); !fits.ok()) return fits;
    }
    return {};
  }
  const auto number = own().came.load(std::memory_order_relaxed);
  const auto mine = read(own().calls[number % 2]);
  const auto theirs = [&](const Member& member) { return read(member.shared().calls[number % 2]); };
  const bool alike = std::all_of(members_.begin(), members_.end(),
                                 [&](const Member& member) { return theirs(member) == mine; });
  if (alike) return {};
  std::vector<std::pair<int, std::string>> calls{{rank_, to_string(mine)}};
  for (const auto& member : members_) calls.emplace_back(member.rank, to_string(theirs(member)));
  return Error{Errc::invalid, 0, wire::describe_difference(std::move(calls))};
}

Result<void> Rendezvous::compare(const Awaited& message) const {
  const auto& member = members_[message.member];
  const auto& theirs = member.shared().messages[place_][side(!message.receive)];
  const auto bytes = theirs.bytes[message.number % kKept].load(std::memory_order_acquire);
  // The other side may be further, and the place taken by a later message.
  const bool kept = theirs.count.load(std::memory_order_relaxed) < message.number + kKept;
  if (!kept || bytes == message.bytes) return {};
  const int sender = message.receive ? member.rank : rank_;
  const int receiver = message.receive ? rank_ : member.rank;
  return Error{Errc::invalid, 0,
               "rank " + std::to_string(sender) + " sends " +
                   std::to_string(message.receive ? bytes : message.bytes) + " bytes to rank " +
                   std::to_string(receiver) + ", which expects " +
                   std::to_string(message.receive ? message.bytes : bytes)};
}

void Rendezvous::announce_sleep() {
  if (!waiting_) return;
  own().asleep.store(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void Rendezvous::cancel_sleep() {
  own().asleep.store(0, std::memory_order_relaxed);
}

void Rendezvous::clear() const noexcept {
  std::array<char, 64> rung{};
  while (::read(bell_.get(), rung.data(), rung.size()) > 0) continue;
}

}  // namespace troupe::host
