#include <fcntl.h>

#include <cerrno>

#include "common/ipc/system_error.hpp"
#include "rank/device/device_actor.hpp"

// Slabs that cross to other ranks of the node.

namespace troupe::rank {

using namespace device_message;
using wire::ControlKind;

void DeviceActor::on(ShareSlab share) {
  const auto it = slabs_.find(share.region);
  if (it == slabs_.end()) {
    share.shared->resolve(Error{Errc::stale, 0, "the slab is gone"});
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
  foreign_[map.region] = {map.fd, map.bytes};
  if (!active_->serving || fault_) {  // mapped on promotion
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

}  // namespace troupe::rank
