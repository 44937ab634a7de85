#include "rank/run/device_exchange.hpp"

namespace troupe::rank_process {
namespace {

/// A buffer of at least so many bytes, its contents undefined.
void make_room(const Device& device, GpuRef<std::uint8_t>& buffer, std::int64_t bytes) {
  if (buffer.length() < bytes) buffer = device.alloc<std::uint8_t>(bytes, "an exchange of a run");
  if (!buffer.valid()) buffer.renew();
}

}  // namespace

std::vector<std::uint8_t> DeviceExchange::all_gather(std::span<const std::byte> mine) {
  const auto bytes = static_cast<std::int64_t>(mine.size());
  const auto all = bytes * core_->members().size();
  make_room(device_, mine_, bytes);
  make_room(device_, all_, all);
  const auto source = mine_.slice(0, bytes), destination = all_.slice(0, all);
  device_.upload(std::span(reinterpret_cast<const std::uint8_t*>(mine.data()), mine.size()),
                 source);
  detail::submit(device_.submitter(),
                 collective::AllGather{DType::u8, static_cast<std::uint64_t>(bytes),
                                       source.operand(), destination.operand()},
                 {}, core_->epoch().value)
      .get();
  return device_.download(destination);
}

}  // namespace troupe::rank_process
