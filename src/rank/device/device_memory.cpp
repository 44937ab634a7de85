#include <fcntl.h>

#include <cerrno>
#include <sstream>

#include "common/ipc/descriptors.hpp"
#include "common/ipc/system_error.hpp"
#include "rank/device/device_actor.hpp"

// The memory that outlives device hosts, and slabs that cross to other ranks of the node.

namespace troupe::rank_process {

using namespace device_message;
using wire::ControlKind;

void DeviceActor::on(ShareSlab share) {
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

void DeviceActor::on(MapForeign map) {
  if (failed_) {
    map.mapped->resolve(*failed_);
    return;
  }
  if (auto kept = ipc::keep_descriptors(kReservedDescriptors); !kept.ok()) {
    map.mapped->resolve(std::move(kept));
    return;
  }
  foreign_[map.region] = {map.fd, map.bytes};
  if (!takes_memory()) {  // mapped on promotion
    map.mapped->resolve({});
    return;
  }
  request(*active_, {.kind = ControlKind::map_foreign, .region = map.region, .bytes = map.bytes},
          map.fd->get(), [this, map](Result<wire::ControlMessage> answer) {
            if (!answer.ok() && answer.code() != Errc::device_lost) {
              foreign_.erase(map.region);
              map.mapped->resolve(answer.error());
              return;
            }
            map.mapped->resolve({});
          });
}

void DeviceActor::on(MakeSlab make) {
  if (!wanted_slabs_.contains(make.region)) {  // else it is asked for again, in a recovery
    if (auto kept = ipc::keep_descriptors(kReservedDescriptors); !kept.ok()) {
      make.made->resolve(std::move(kept));
      return;
    }
  }
  wanted_slabs_[make.region] = {make.bytes, make.made};
  if (failed_) {
    make.made->resolve(*failed_);
    wanted_slabs_.erase(make.region);
    return;
  }
  if (!active_->serving || fault_) return;  // made by the next host
  request(*active_, {.kind = ControlKind::make_slab, .region = make.region, .bytes = make.bytes},
          -1, [this, make](Result<wire::ControlMessage> answer) {
            if (!answer.ok() && answer.code() == Errc::device_lost)
              return;  // asked again of the next host
            wanted_slabs_.erase(make.region);
            if (!answer.ok()) {
              // The host has it where only its descriptor was lost.
              on(DropRegion{make.region});
              make.made->resolve(answer.error());
              return;
            }
            slabs_[make.region] = {std::move(answer->fd), make.bytes, next_serial_++};
            make.made->resolve({});
          });
}

void DeviceActor::on(MapPinned map) {
  if (!map.apart) pinned_[map.region] = map.memory;
  if (failed_) {
    map.mapped->resolve(*failed_);
    return;
  }
  if (!takes_memory()) {
    const Error nobody{Errc::device_lost, 0, "there is no device host to map it"};
    map.mapped->resolve(map.apart ? Result<void>(nobody) : Result<void>());  // else on promotion
    return;
  }
  auto& has = active_->apart;
  if (std::find(has.begin(), has.end(), map.region) != has.end()) {
    map.mapped->resolve({});
    return;
  }
  if (map.apart) has.push_back(map.region);
  request(*active_,
          {.kind = ControlKind::map_pinned, .region = map.region, .bytes = map.memory->size()},
          map.memory->fd(), [this, map](Result<wire::ControlMessage> answer) {
            if (!answer.ok() && (map.apart || answer.code() != Errc::device_lost)) {
              pinned_.erase(map.region);
              if (active_) std::erase(active_->apart, map.region);
              map.mapped->resolve(answer.error());
              return;
            }
            map.mapped->resolve({});
          });
}

void DeviceActor::on(const AskMemory& ask) {
  if (failed_ || !active_->serving || fault_) {
    ask.told->resolve(failed_ ? *failed_
                              : Error{Errc::device_lost, 0, "there is no device host just now"});
    return;
  }
  request(*active_, {.kind = ControlKind::memory_use}, -1,
          [this, ask](Result<wire::ControlMessage> answer) {
            if (!answer.ok()) {
              ask.told->resolve(answer.error());
              return;
            }
            std::vector<MemoryUse> all;
            std::istringstream lines(answer->text);
            for (MemoryUse use; lines >> use.cause >> use.bytes;) all.push_back(use);
            if (standby_ && standby_bytes_ != 0) all.push_back({"standby", standby_bytes_});
            all.push_back({"free", answer->head.bytes});
            ask.told->resolve(std::move(all));
          });
}

void DeviceActor::on(DropRegion drop) {
  slabs_.erase(drop.region);
  pinned_.erase(drop.region);
  foreign_.erase(drop.region);
  if (active_) std::erase(active_->apart, drop.region);
  if (active_ && takes_memory()) {
    (void)wire::send_control(active_->link->socket(),
                             {.kind = ControlKind::drop_region, .region = drop.region});
  }
}

}  // namespace troupe::rank_process
