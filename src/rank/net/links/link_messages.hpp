#pragma once

#include "rank/net/links/parting.hpp"
#include "rank/net/messages.hpp"

namespace troupe::rank_process {

/// Messages over TCP.
class LinkMessages final : public Messages {
 public:
  LinkMessages(LinkHub& hub, LinkChannel channel)
      : links_(hub, channel), parting_(hub.rank(), hub.size()) {}

  void send(int rank, int tag, std::vector<std::byte> bytes) override;
  bool receive(const Arrived& arrived) override;
  void advance() override {}  // receive() does that
  [[nodiscard]] bool sending() const override { return links_.sending(); }
  bool all_leave() override { return parting_.advance(links_); }
  [[nodiscard]] bool leaves() const override { return parting_.under_way(); }

 private:
  Links links_;
  Parting parting_;
};

}  // namespace troupe::rank_process
