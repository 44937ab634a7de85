#include "rank/net/node_rings.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "common/core/log.hpp"
#include "common/ipc/system_error.hpp"

namespace troupe::rank_process {
namespace {

constexpr std::uint64_t kRingBytes = 16 * 1024;  ///< 100 short messages
constexpr std::size_t kStride = sizeof(ipc::RingControl) + kRingBytes;
constexpr std::size_t kPiece = 2 * 1024;  ///< bytes of a message in one record, at most

/// In front of each piece.
struct PieceHead {
  std::uint64_t last = 0;  ///< 1: the message ends with it
};

}  // namespace

Result<NodeRings::Inbox> NodeRings::Inbox::create(std::size_t rings) {
  auto memory = ipc::SharedMemory::create("troupe-messages", rings * kStride);
  if (!memory) return memory.error();
  return Inbox(std::move(*memory));
}

Result<NodeRings::Inbox> NodeRings::Inbox::map(UniqueFd fd, std::size_t rings) {
  auto memory = ipc::SharedMemory::map(std::move(fd), rings * kStride);
  if (!memory) return memory.error();
  return Inbox(std::move(*memory));
}

template <class End>
End NodeRings::Inbox::end(std::size_t ring) const {
  auto* const control = memory_.data() + ring * kStride;
  return End(reinterpret_cast<ipc::RingControl*>(control), control + sizeof(ipc::RingControl),
             kRingBytes);
}

Result<NodeRings> NodeRings::open(FdExchange& fds, std::vector<int> ranks, int own) {
  NodeRings rings;
  rings.ranks_ = std::move(ranks);
  rings.own_ = own;
  auto inbox = Inbox::create(rings.ranks_.size());
  if (!inbox) return inbox.error();
  UniqueFd fd(::fcntl(inbox->fd(), F_DUPFD_CLOEXEC, 0));
  if (!fd) return ipc::system_error("fcntl");
  for (std::size_t i = 0; i < rings.ranks_.size(); ++i) {
    if (rings.ranks_[i] != own)
      rings.in_.emplace(rings.ranks_[i], In{inbox->end<ipc::RingConsumer>(i)});
  }
  rings.inbox_ = std::move(*inbox);
  fds.offer(kInbox, std::make_shared<UniqueFd>(std::move(fd)));
  return rings;
}

void NodeRings::meet(const FdExchange& fds) {
  const auto place =
      static_cast<std::size_t>(std::find(ranks_.begin(), ranks_.end(), own_) - ranks_.begin());
  for (const int rank : ranks_) {
    if (rank == own_) continue;
    auto fd = fds.take(rank, kInbox);
    auto inbox = fd.ok() ? Inbox::map(std::move(*fd), ranks_.size()) : Result<Inbox>(fd.error());
    if (!inbox.ok()) {
      log::debug("net", "rank {} is sent no messages through shared memory: {}", rank,
                 inbox.error().to_string());
      continue;
    }
    const auto ring = inbox->end<ipc::RingProducer>(place);
    out_.emplace(rank, Out{std::move(*inbox), ring});
  }
}

void NodeRings::send(int rank, std::vector<std::byte> bytes) {
  check(bytes.size() <= kLongest, "a message between ranks is not too long");
  auto& out = out_.at(rank);
  if (out.waiting.empty() && write(out, bytes)) return;
  out.waiting.push_back(std::move(bytes));
  ++waiting_;
}

void NodeRings::advance() {
  if (waiting_ == 0) return;
  for (auto& [rank, out] : out_) {
    for (; !out.waiting.empty() && write(out, out.waiting.front()); --waiting_)
      out.waiting.pop_front();
  }
}

bool NodeRings::write(Out& out, std::span<const std::byte> message) {
  do {
    const auto piece = message.subspan(out.gone, std::min(kPiece, message.size() - out.gone));
    const PieceHead head{out.gone + piece.size() == message.size() ? 1u : 0u};
    const auto room = out.ring.reserve(sizeof head + piece.size());
    if (!room.ok()) break;  // the other rank's memory is nonsense
    if (room->empty()) return false;
    std::memcpy(room->data(), &head, sizeof head);
    std::copy(piece.begin(), piece.end(), room->begin() + sizeof head);
    (void)out.ring.commit();  // nobody sleeps over a ring: its reader looks from time to time
    out.gone += piece.size();
  } while (out.gone < message.size());
  out.gone = 0;
  return true;
}

Result<bool> NodeRings::take(In& in) {
  for (;;) {
    const auto record = in.ring.front();
    if (!record.ok()) return record.error();
    if (record->empty()) return false;
    PieceHead head;
    if (record->size() < sizeof head)
      return Error{Errc::internal, 0, "a piece of a message is too short"};
    std::memcpy(&head, record->data(), sizeof head);
    const auto bytes = record->subspan(sizeof head);
    if (bytes.size() > kLongest - in.begun.size())
      return Error{Errc::internal, 0, "a message is too long"};
    in.begun.insert(in.begun.end(), bytes.begin(), bytes.end());
    in.ring.pop();
    if (head.last != 0) return true;
  }
}

bool NodeRings::receive(const Arrived& arrived) {
  bool any = false;
  for (auto& [rank, in] : in_) {
    while (!in.closed) {  // forget() may be called meanwhile
      const auto taken = take(in);
      if (!taken.ok()) {
        log::error("net", "messages of rank {}: {}", rank, taken.error().to_string());
        in.closed = true;
      }
      if (!taken.ok() || !*taken) break;
      any = true;
      arrived(std::exchange(in.begun, {}));
    }
  }
  return any;
}

void NodeRings::forget(int rank) {
  if (const auto in = in_.find(rank); in != in_.end()) in->second.closed = true;
  const auto out = out_.find(rank);
  if (out == out_.end()) return;
  waiting_ -= out->second.waiting.size();
  out_.erase(out);
}

}  // namespace troupe::rank_process
