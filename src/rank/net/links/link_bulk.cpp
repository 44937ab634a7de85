#include "rank/net/links/link_bulk.hpp"

#include <chrono>
#include <utility>

#include "rank/net/session.hpp"

namespace troupe::rank_process {
namespace {

constexpr auto kBetweenLooks = std::chrono::milliseconds(50);  ///< at most, between looks
constexpr auto kLeavingPause = std::chrono::milliseconds(1);   ///< while ranks leave

}  // namespace

LinkBulk::LinkBulk(LinkHub& hub, Receiver receiver)
    : receiver_(std::move(receiver)),
      links_(hub, LinkChannel::bulk),
      parting_(hub.rank(), hub.size()),
      thread_([this] { run(); }) {}

LinkBulk::~LinkBulk() {
  leave();
}

void LinkBulk::leave() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  links_.wake();
  thread_.join();
}

void LinkBulk::send(int rank, std::uint32_t stream, const std::byte* data, std::size_t bytes,
                    std::function<void()> sent) {
  {
    const std::lock_guard lock(mutex_);
    outgoing_.push_back({rank, stream, {data, bytes}, std::move(sent)});
  }
  links_.wake();
}

void LinkBulk::run() {
  const Links::Taker taker{.arrived =
                               [this](int rank, const Links::Head& head,
                                      const std::vector<std::byte>&, std::byte* where) {
                                 if (head.tag == Parting::kTag) return parting_.hear(head);
                                 if (where != nullptr)
                                   receiver_.arrived(rank, head.tag, where, head.bytes);
                               },
                           .place = [this](int rank, const Links::Head& head) -> std::byte* {
                             if (head.tag == Parting::kTag) return nullptr;
                             return receiver_.place(rank, head.tag, head.bytes);
                           }};
  bool moved = false;
  for (bool stop = false;;) {
    if (!moved) links_.wait(stop ? kLeavingPause : kBetweenLooks);
    std::deque<Outgoing> outgoing;
    {
      const std::lock_guard lock(mutex_);
      outgoing.swap(outgoing_);
      stop = stop_;
    }
    for (auto& piece : outgoing)
      links_.send(piece.rank, {.tag = piece.stream}, piece.data, std::move(piece.sent));
    moved = links_.look(taker) || !outgoing.empty();
    if (stop && Session::forsaken()) return;
    // All ranks leave together: a piece on its way must still find its receiver.
    if (stop && !links_.sending() && parting_.advance(links_)) return;
  }
}

}  // namespace troupe::rank_process
