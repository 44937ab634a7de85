#pragma once

#include <deque>
#include <mutex>
#include <thread>

#include "rank/net/bulk.hpp"
#include "rank/net/links/parting.hpp"

namespace troupe::rank_process {

/// Pieces over TCP. The thread sleeps until the system has something for it.
class LinkBulk final : public Bulk {
 public:
  LinkBulk(LinkHub& hub, Receiver receiver);
  ~LinkBulk() override;

  void send(int rank, std::uint32_t stream, const std::byte* data, std::size_t bytes,
            std::function<void()> sent) override;
  void attend(int) override {}
  void leave() override;

 private:
  struct Outgoing {
    int rank;
    std::uint32_t stream;
    std::span<const std::byte> data;
    std::function<void()> sent;
  };

  void run();

  Receiver receiver_;
  Links links_;
  Parting parting_;
  std::mutex mutex_;
  std::deque<Outgoing> outgoing_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace troupe::rank_process
