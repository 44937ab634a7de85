#include "rank/device/memory/staged_copies.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "rank/device/device_core.hpp"

namespace troupe::rank_process {
namespace {

constexpr int kReadAttempts = 16;  ///< of a read, each but the last cut off by a fault
constexpr std::size_t kStagingBytes = 8u << 20;  ///< of one copy

Result<void> download_once(DeviceCore& core, const Operand& source,
                           std::span<std::byte> destination, DType dtype) {
  const auto step = std::min(destination.size(), kStagingBytes);
  std::vector<detail::PinnedAllocation> pins;
  std::vector<Future<void>> parts;
  const auto fetch = [&](std::size_t part) {
    const auto at = part * step;
    Operand from = source, to = pins[part % 2].where;
    from.bytes = to.bytes = std::min(step, destination.size() - at);
    from.offset += at;
    parts.push_back(detail::submit(core.port(), memory::Copy{dtype, from, to}));
  };
  const std::size_t count = step == 0 ? 0 : (destination.size() + step - 1) / step;
  for (std::size_t part = 0; part < std::min<std::size_t>(2, count); ++part) {
    auto pin = core.pools().allocate_pinned(step, 1);
    if (!pin) return pin.error();
    pins.push_back(std::move(*pin));
    fetch(part);
  }
  for (std::size_t part = 0; part < count; ++part) {
    if (const auto& done = parts[part].wait(); !done.ok()) return done;
    const auto at = part * step;
    std::memcpy(destination.data() + at, pins[part % 2].data,
                std::min(step, destination.size() - at));
    if (part + 2 < count) fetch(part + 2);
  }
  return {};
}

}  // namespace

Future<void> upload(DeviceCore& core, std::span<const std::byte> source, const Operand& destination,
                    DType dtype) {
  std::vector<Future<void>> parts;
  std::vector<detail::PinnedAllocation> pins;
  const auto step = std::min(source.size(), kStagingBytes);
  for (std::size_t at = 0; at < source.size(); at += step) {
    const auto bytes = std::min(step, source.size() - at);
    const auto turn =
        parts.size() % 2;  // two staging buffers: one is filled while the other is copied
    if (parts.size() < 2) {
      auto pin = core.pools().allocate_pinned(step, 1);
      if (!pin) return core.port().refuse(pin.error());
      pins.push_back(std::move(*pin));
    } else {
      parts[parts.size() - 2].wait_ready();
    }
    std::memcpy(pins[turn].data, source.data() + at, bytes);
    Operand from = pins[turn].where, to = destination;
    from.bytes = to.bytes = bytes;
    to.offset += at;
    parts.push_back(detail::submit(core.port(), memory::Copy{dtype, from, to}));
  }
  return when_all(std::move(parts));
}

Result<void> download(DeviceCore& core, const Operand& source, std::span<std::byte> destination,
                      DType dtype) {
  for (int attempt = 1;; ++attempt) {
    auto outcome = download_once(core, source, destination, dtype);
    const bool cut = outcome.code() == Errc::device_lost || outcome.code() == Errc::world_reformed;
    if (!cut || attempt == kReadAttempts || core.port().gate().closed()) return outcome;
  }
}

}  // namespace troupe::rank_process
