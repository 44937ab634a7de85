#include "rank/device/host/watcher.hpp"

#include <sys/epoll.h>

#include "common/core/continuations.hpp"
#include "common/ipc/system_error.hpp"

namespace troupe::rank_process {
namespace {

constexpr std::uint64_t kWakeKey = ~std::uint64_t{0};

void watch(int epoll, int fd, std::uint64_t key) {
  if (fd < 0) return;
  epoll_event event{.events = EPOLLIN, .data = {.u64 = key}};
  ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

void unwatch(int epoll, int fd) {
  if (fd >= 0) ::epoll_ctl(epoll, EPOLL_CTL_DEL, fd, nullptr);
}

}  // namespace

Result<std::unique_ptr<Watcher>> Watcher::start(CommandPort& port, Handlers handlers) {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return ipc::system_error("epoll_create1");
  auto wake = ipc::Doorbell::create();
  if (!wake) return wake.error();
  return std::unique_ptr<Watcher>(
      new Watcher(port, std::move(handlers), std::move(epoll), std::move(*wake)));
}

Watcher::Watcher(CommandPort& port, Handlers handlers, UniqueFd epoll, ipc::Doorbell wake)
    : port_(&port),
      handlers_(std::move(handlers)),
      epoll_(std::move(epoll)),
      wake_(std::move(wake)) {
  watch(epoll_.get(), wake_.fd(), kWakeKey);
  thread_ = std::thread([this] { run(); });
}

Watcher::~Watcher() {
  stop_.store(true);
  wake_.ring();
  thread_.join();
}

void Watcher::add(std::shared_ptr<HostLink> link) {
  const auto id = link->id();
  {
    const std::lock_guard lock(mutex_);
    links_.emplace(id, link);
  }
  watch(epoll_.get(), link->socket().fd(), id << 2 | socket);
  watch(epoll_.get(), link->pidfd(), id << 2 | process);
  watch(epoll_.get(), link->reply_bell().fd(), id << 2 | bell);
}

void Watcher::await_host(const HostLink& link) {
  watch(epoll_.get(), link.host_pidfd(), link.id() << 2 | host);
}

void Watcher::remove(std::uint64_t id) {
  std::shared_ptr<HostLink> link;
  {
    const std::lock_guard lock(mutex_);
    const auto it = links_.find(id);
    if (it == links_.end()) return;
    link = std::move(it->second);
    links_.erase(it);
  }
  unwatch(epoll_.get(), link->socket().fd());
  unwatch(epoll_.get(), link->pidfd());
  unwatch(epoll_.get(), link->host_pidfd());
  unwatch(epoll_.get(), link->reply_bell().fd());
}

void Watcher::run() {
  detail::this_thread_must_not_wait();
  while (!stop_.load()) {
    int timeout_ms = -1;
    if (port_->replies().being_polled()) {
      timeout_ms = 1;  // somebody drains for us: do not ask to be woken for every reply
    } else {
      port_->before_sleep();
      port_->replies().drain();
    }
    epoll_event events[16];
    const int count = ::epoll_wait(epoll_.get(), events, std::size(events), timeout_ms);
    for (int i = 0; i < count; ++i) serve(events[i].data.u64);
  }
}

void Watcher::serve(std::uint64_t key) {
  if (key == kWakeKey) return wake_.clear();
  std::shared_ptr<HostLink> link;
  {
    const std::lock_guard lock(mutex_);
    const auto it = links_.find(key >> 2);
    if (it == links_.end()) return;
    link = it->second;
  }
  switch (static_cast<Source>(key & 3)) {
    case socket: return read_socket(link);
    case process: unwatch(epoll_.get(), link->pidfd()); return handlers_.exited(link->id());
    case host: unwatch(epoll_.get(), link->host_pidfd()); return handlers_.exited(link->id());
    case bell: link->reply_bell().clear(); return port_->replies().drain();
  }
}

void Watcher::read_socket(const std::shared_ptr<HostLink>& link) {
  for (;;) {
    auto message = wire::receive_from_host(link->socket());
    if (!message.ok()) {
      unwatch(epoll_.get(), link->socket().fd());
      return handlers_.closed(link->id());
    }
    if (!*message) return;
    handlers_.message(link->id(), std::move(**message));
  }
}

}  // namespace troupe::rank_process
