#include "rank/device/host/device_memory.hpp"

#include <fcntl.h>

#include <algorithm>

#include "common/ipc/descriptors.hpp"
#include "common/ipc/system_error.hpp"

namespace troupe::rank_process {

using namespace device_message;
using wire::Descriptor;
namespace to_host = wire::to_host;

void DeviceMemory::make(const MakeSlab& make, const std::shared_ptr<HostLink>& host) {
  if (!wanted_.contains(make.region)) {  // else it is asked for again, in a recovery
    if (auto kept = ipc::keep_descriptors(kReservedDescriptors); !kept.ok()) {
      make.made->resolve(std::move(kept));
      return;
    }
  }
  wanted_[make.region] = {make.bytes, make.made};
  if (!host) return;
  (void)requests_->ask(*host, to_host::MakeSlab{make.region, make.bytes},
                       [this, make, host](Result<wire::from_host::SlabMade> answer) {
                         if (!answer.ok() && answer.code() == Errc::device_lost)
                           return;  // asked again of the next host
                         wanted_.erase(make.region);
                         if (!answer.ok()) {
                           // The host has it where only its descriptor was lost.
                           drop(make.region, host.get());
                           make.made->resolve(answer.error());
                           return;
                         }
                         const auto& slab = slabs_[make.region] = {answer->memory.take(),
                                                                   make.bytes, next_serial_++};
                         if (settings_->slab_made)
                           settings_->slab_made(make.region, make.bytes, slab.fd.get());
                         make.made->resolve({});
                       });
}

void DeviceMemory::make_wanted(const std::shared_ptr<HostLink>& host) {
  const auto all = wanted_;  // one that cannot be asked for is wanted no more
  for (const auto& [region, wanted] : all) make(MakeSlab{region, wanted.bytes, wanted.made}, host);
}

void DeviceMemory::share(const ShareSlab& share) const {
  const auto it = slabs_.find(share.region);
  if (it == slabs_.end()) {
    share.shared->resolve(Error{Errc::stale, 0, "the slab is gone"});
    return;
  }
  if (const auto kept = ipc::keep_descriptors(kReservedDescriptors); !kept.ok()) {
    share.shared->resolve(kept.error());
    return;
  }
  const auto& slab = it->second;
  UniqueFd fd(::fcntl(slab.fd.get(), F_DUPFD_CLOEXEC, 0));
  if (!fd) {
    share.shared->resolve(ipc::system_error("fcntl"));
    return;
  }
  share.shared->resolve(
      SharedSlab{std::make_shared<UniqueFd>(std::move(fd)), slab.serial, slab.bytes});
}

void DeviceMemory::map(const MapForeign& map, const std::shared_ptr<HostLink>& host) {
  if (auto kept = ipc::keep_descriptors(kReservedDescriptors); !kept.ok()) {
    map.mapped->resolve(std::move(kept));
    return;
  }
  foreign_[map.region] = {map.fd, map.bytes};
  if (!host) {  // mapped on promotion
    map.mapped->resolve({});
    return;
  }
  (void)requests_->ask(*host,
                       to_host::MapForeign{map.region, map.bytes, Descriptor::lent(map.fd->get())},
                       [this, map](const Result<wire::from_host::Done>& answer) {
                         if (!answer.ok() && answer.code() != Errc::device_lost) {
                           foreign_.erase(map.region);
                           map.mapped->resolve(answer.error());
                           return;
                         }
                         map.mapped->resolve({});
                       });
}

void DeviceMemory::map(const MapPinned& map, const std::shared_ptr<HostLink>& host) {
  if (!map.apart) pinned_[map.region] = map.memory;
  if (!host) {
    const Error nobody{Errc::device_lost, 0, "there is no device host to map it"};
    map.mapped->resolve(map.apart ? Result<void>(nobody) : Result<void>());  // else on promotion
    return;
  }
  if (apart_.host != host->id()) apart_ = {host->id()};
  auto& has = apart_.regions;
  if (std::find(has.begin(), has.end(), map.region) != has.end()) {
    map.mapped->resolve({});
    return;
  }
  if (map.apart) has.push_back(map.region);
  (void)requests_->ask(
      *host, to_host::MapPinned{map.region, map.memory->size(), Descriptor::lent(map.memory->fd())},
      [this, map](const Result<wire::from_host::Done>& answer) {
        if (!answer.ok() && (map.apart || answer.code() != Errc::device_lost)) {
          pinned_.erase(map.region);
          std::erase(apart_.regions, map.region);
          map.mapped->resolve(answer.error());
          return;
        }
        map.mapped->resolve({});
      });
}

void DeviceMemory::drop(std::uint32_t region, HostLink* host) {
  if (slabs_.erase(region) != 0 && settings_->slab_dropped) settings_->slab_dropped(region);
  pinned_.erase(region);
  foreign_.erase(region);
  std::erase(apart_.regions, region);
  if (host != nullptr) (void)wire::send_control(host->socket(), to_host::DropRegion{region});
}

void DeviceMemory::give(const HostLink& host) const {
  const auto send = [&](const wire::ToHost& map) { (void)wire::send_control(host.socket(), map); };
  for (const auto& [region, slab] : slabs_)
    send(to_host::MapSlab{region, slab.bytes, Descriptor::lent(slab.fd.get())});
  for (const auto& [region, slab] : foreign_)
    send(to_host::MapForeign{region, slab.bytes, Descriptor::lent(slab.fd->get())});
  for (const auto& [region, memory] : pinned_)
    send(to_host::MapPinned{region, memory->size(), Descriptor::lent(memory->fd())});
}

void DeviceMemory::give_up(const Error& error) {
  for (auto& [region, wanted] : wanted_) wanted.made->resolve(error);
  wanted_.clear();
}

std::uint64_t DeviceMemory::slab_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [region, slab] : slabs_) bytes += slab.bytes;
  return bytes;
}

}  // namespace troupe::rank_process
