#include "common/links/link_hub.hpp"

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "common/core/log.hpp"
#include "common/ipc/system_error.hpp"
#include "common/links/addresses.hpp"
#include "common/links/links.hpp"

namespace troupe::net {
namespace {

/// Who has not said by then who it is does not belong to the job.
constexpr auto kPatienceWithStrangers = std::chrono::seconds(10);
constexpr std::size_t kMostStrangers = 4096;
/// Where this process has no descriptor to spare: until it looks again.
constexpr auto kPause = std::chrono::milliseconds(20);

void send_at_once(int socket) {
  const int yes = 1;
  (void)::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

}  // namespace

LinkHub::LinkHub(keeper::Job job, UniqueFd listener)
    : job_(std::move(job)),
      peers_(job_.size(), job_.incarnation == 0),
      listener_(std::move(listener)),
      stop_(ipc::Doorbell::create().take()),
      cards_(job_.cards),
      thread_([this] { run(); }) {}

LinkHub::~LinkHub() {
  stop_.ring();
  thread_.join();
}

void LinkHub::attach(LinkChannel channel, Links& links) {
  const auto index = static_cast<std::size_t>(channel);
  const std::lock_guard lock(mutex_);
  links_[index] = &links;
  for (auto& [rank, incarnation, socket] : early_[index])
    links.adopt(rank, incarnation, std::move(socket));
  early_[index].clear();
}

void LinkHub::wake_all() {
  const std::lock_guard lock(mutex_);
  for (const auto* links : links_) {
    if (links != nullptr) links->wake();
  }
}

void LinkHub::move(int rank, const keeper::Card& card) {
  {
    const std::lock_guard lock(mutex_);
    auto& known = cards_[static_cast<std::size_t>(rank)];
    if (card.moves <= known.moves) return;
    known = card;
  }
  wake_all();
}

keeper::Card LinkHub::card_of(int rank) const {
  const std::lock_guard lock(mutex_);
  return cards_[static_cast<std::size_t>(rank)];
}

void LinkHub::detach(LinkChannel channel) {
  const std::lock_guard lock(mutex_);
  links_[static_cast<std::size_t>(channel)] = nullptr;
}

Result<LinkHub::Outgoing> LinkHub::connect(int rank, LinkChannel channel) const {
  Outgoing made{UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)), {}};
  if (!made.socket) return ipc::system_error("socket");
  send_at_once(made.socket.get());
  const auto newest = peers_.incarnation(rank);
  const auto card = card_of(rank);
  if (newest != Peers::kUnknown && keeper::moves(newest) > card.moves)
    return Error{Errc::would_block, 0, "its keeper has not said where it is"};
  const auto address = address_of(card, job_.card());
  if (::connect(made.socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
          0 &&
      errno != EINPROGRESS)
    return ipc::system_error("connect");
  const Introduction who{.cookie = job_.cookie,
                         .from = job_.rank,
                         .to = rank,
                         .incarnation = job_.incarnation,
                         .wanted = peers_.incarnation(rank),
                         .channel = channel};
  const auto bytes = std::as_bytes(std::span(&who, 1));
  made.introduction.assign(bytes.begin(), bytes.end());
  return made;
}

void LinkHub::run() {
  std::vector<Stranger> strangers;
  bool pauses = false;
  for (;;) {
    std::vector<pollfd> fds{{stop_.fd(), POLLIN, 0}, {pauses ? -1 : listener_.get(), POLLIN, 0}};
    for (const auto& stranger : strangers) fds.push_back({stranger.socket.get(), POLLIN, 0});
    const auto patience = pauses ? kPause : std::chrono::milliseconds(kPatienceWithStrangers);
    const int timeout = strangers.empty() && !pauses ? -1 : static_cast<int>(patience.count());
    if (::poll(fds.data(), fds.size(), timeout) < 0 && errno != EINTR) return;
    if (fds[0].revents != 0) return;
    const auto now = std::chrono::steady_clock::now();
    std::size_t at = 2;
    std::erase_if(strangers, [&](Stranger& stranger) {
      const bool speaks = fds[at++].revents != 0;
      return (speaks && !listen_to(stranger)) || now > stranger.until;
    });
    pauses = (pauses || fds[1].revents != 0) && !accept_all(strangers);
  }
}

bool LinkHub::accept_all(std::vector<Stranger>& strangers) const {
  while (strangers.size() < kMostStrangers) {
    UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return errno == EAGAIN || errno == EWOULDBLOCK || errno == ECONNABORTED;
    send_at_once(socket.get());
    strangers.push_back(
        {std::move(socket), {}, std::chrono::steady_clock::now() + kPatienceWithStrangers});
  }
  return true;
}

bool LinkHub::listen_to(Stranger& stranger) {
  Introduction who;
  auto& said = stranger.said;
  const auto before = said.size();
  said.resize(sizeof who);
  const auto got = ::recv(stranger.socket.get(), said.data() + before, sizeof who - before, 0);
  said.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;
  if (said.size() < sizeof who) return true;
  std::memcpy(&who, said.data(), sizeof who);
  const bool known = who.magic == Introduction().magic && who.cookie == job_.cookie &&
                     who.from >= 0 && who.from < size() && who.to == rank() &&
                     static_cast<std::size_t>(who.channel) < kLinkChannels;
  if (!known) {
    log::warn("net", "a connection is refused: it is not of this job");
  } else if (who.wanted == Peers::kUnknown || who.wanted == job_.incarnation) {
    introduce(who, std::move(stranger.socket));
  }  // else it is for the process that had this number before
  return false;
}

void LinkHub::introduce(const Introduction& who, UniqueFd socket) {
  const auto index = static_cast<std::size_t>(who.channel);
  const std::lock_guard lock(mutex_);
  if (auto* const links = links_[index]) {
    links->adopt(who.from, who.incarnation, std::move(socket));
  } else {
    early_[index].push_back({who.from, who.incarnation, std::move(socket)});
  }
}

}  // namespace troupe::net
