#include "rank/device/host/host_news.hpp"

#include <utility>
#include <variant>

#include "rank/device/host/device_actor.hpp"
#include "rank/device/host/host_signs.hpp"

namespace troupe::rank_process {

namespace from_host = wire::from_host;

void HostNews::hear(HostId host, wire::FromDeviceHost message) {
  const auto state = parts_.protocol.hosts().state_of(host);
  if (!state || state == HostState::retired) return;
  std::visit(
      [&]<class Kind>(Kind& said) {
        if constexpr (wire::kIsAnswer<Kind>) {
          parts_.requests.answered(host, std::move(message));
        } else {
          on(host, std::move(said));
        }
      },
      message.message);
}

void HostNews::on(HostId id, from_host::Ready said) {
  const auto& host = parts_.links.at(id);
  host->watch_life([self = parts_.self(), id] {
    (void)self.tell(device_message::HostClosed{id});  // the socket's end says it again
  });
  parts_.libraries.warm_up(*host);
  parts_.libraries.note_modules(*host);
  parts_.libraries.lacks(host->header().unknown.text());
  parts_.port.hosts().ready(*host);
  parts_.described->resolve(std::move(said.description));  // the first one's counts
  parts_.protocol.ready(id, parts_.now());
}

void HostNews::on(HostId, const from_host::LibraryOpened& said) {
  if (auto news = parts_.libraries.library_opened(said.library, parts_.heirs()))
    parts_.tell(DeviceLibrary{std::move(*news)});
}

void HostNews::on(HostId, const from_host::KindRecurs& said) {
  parts_.libraries.kind_recurs(said, parts_.heirs());
}

void HostNews::on(HostId, from_host::PlansMade said) {
  parts_.libraries.plans_made(std::move(said), parts_.heirs());
}

void HostNews::on(HostId host, const from_host::Fatal& said) {
  const auto kind =
      fault_kind_of(parts_.links.at(host)->header(), std::string(to_string(said.error.code)));
  parts_.protocol.fatal(host, kind, said.error, said.still, parts_.now());
}

void HostNews::on(HostId host, const from_host::CommunicatorBroken& said) {
  parts_.protocol.communicator_broken(host, said.what, parts_.now());
}

}  // namespace troupe::rank_process
