#include "rank/net/links/link_messages.hpp"

#include <utility>

namespace troupe::rank_process {

void LinkMessages::send(int rank, int tag, std::vector<std::byte> bytes) {
  links_.send(rank, {.tag = static_cast<std::uint32_t>(tag)}, std::move(bytes));
}

bool LinkMessages::receive(const Arrived& arrived) {
  bool any = false;
  (void)links_.look(
      {.arrived = [&](int rank, const Links::Head& head, std::vector<std::byte> bytes, std::byte*) {
        if (head.tag == Parting::kTag) return parting_.hear(head);
        any = true;
        arrived(rank, static_cast<int>(head.tag), std::move(bytes));
      }});
  return any;
}

}  // namespace troupe::rank_process
