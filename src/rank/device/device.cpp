#include <troupe/device.hpp>

#include "rank/device/device_core.hpp"
#include "rank/device/memory/staged_copies.hpp"
#include "rank/device/recording/recorder.hpp"

namespace troupe {

using rank_process::Recorder;

const DeviceInfo& Device::info() const {
  return core_->info();
}
Result<void> Device::take_error() const {
  const auto error = core_->port().outcomes().take_error();
  return error ? Result<void>(*error) : Result<void>();
}
Future<void> Device::too_short(const char* what, std::size_t has, std::int64_t needed) const {
  return submitter().refuse({Errc::invalid, 0,
                             std::string("memory.copy: the ") + what + " has " +
                                 std::to_string(has) + " elements, " + std::to_string(needed) +
                                 " are needed"});
}
Future<void> Device::read_mapped(const detail::MappedRange& source, const OperationInfo& info,
                                 std::span<const std::byte> op) const {
  auto& to = submitter();
  if (!source.mapping || !source.mapping->valid())
    return to.refuse({Errc::stale, 0,
                      std::string(info.name) +
                          ": the mapping of its source is of an epoch that has ended: map again"});
  to.keep(source.mapping);
  return detail::submit(to, info, op, {}, {source.mapping->epoch()});
}
Future<void> Device::wrong_upload(std::size_t source, std::int64_t destination,
                                  const std::source_location& where) const {
  return submitter().refuse({Errc::invalid, 0,
                             "upload: the source has " + std::to_string(source) +
                                 " elements, the destination " + std::to_string(destination) +
                                 " (" + where.file_name() + ":" + std::to_string(where.line()) +
                                 ")"});
}
UnreadErrors Device::unread_errors() const {
  return core_->port().outcomes().ledger().unread();
}
std::vector<OpenedLibrary> Device::libraries() const {
  return core_->libraries();
}
std::uint64_t Device::bytes_held() const {
  return core_->pools().bytes_held();
}
detail::Submitter& Device::submitter() const {
  return core_->submitter();
}
Result<std::vector<MemoryUse>> Device::memory_use() const {
  return core_->memory_use();
}
Result<GpuHealth> Device::health() const {
  return core_->health();
}
void Device::inject(SilentFault fault) const {
  if (fault == SilentFault::wrong_product || fault == SilentFault::wrong_products) {
    memory::LibraryFault op;
    op.wrong = fault == SilentFault::wrong_products ? 2 : 1;
    (void)detail::submit(submitter(), op);
    return;
  }
  core_->silent_faults().order(fault);
}
void Device::inject_health(const HealthEvent& event) const {
  core_->inject_health(event);
}
detail::Submitter& Device::preparer() const {
  return core_->preparer();
}
Result<detail::Allocation> Device::allocate(std::uint64_t length, DType dtype) const {
  return core_->pools().allocate(length, dtype);
}
Result<detail::PinnedAllocation> Device::allocate_pinned(std::uint64_t length,
                                                         std::size_t element) const {
  return core_->pools().allocate_pinned(length, element);
}
Future<void> Device::upload_bytes(std::span<const std::byte> source, const Operand& destination,
                                  DType dtype) const {
  if (auto* const recorder = Recorder::of(core_->port()))
    return recorder->refuse({Errc::unsupported, 0, "upload cannot be recorded"});
  return rank_process::upload(*core_, source, destination, dtype);
}
Result<void> Device::download_bytes(const Operand& source, std::span<std::byte> destination,
                                    DType dtype) const {
  if (auto* const recorder = Recorder::of(core_->port()))
    return recorder->refuse({Errc::unsupported, 0, "download cannot be recorded"}).wait();
  return rank_process::download(*core_, source, destination, dtype);
}

}  // namespace troupe
