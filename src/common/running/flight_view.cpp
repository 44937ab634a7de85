#include "common/running/flight_view.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>

#include "common/ipc/shared_memory.hpp"
#include "common/ipc/system_error.hpp"

namespace troupe::running {

FlightView::~FlightView() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), bytes_);
}

Result<FlightView> FlightView::map(const UniqueFd& fd) {
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return ipc::system_error("fstat");
  FlightView view;
  view.bytes_ = static_cast<std::size_t>(info.st_size);
  const Error other{Errc::invalid, 0, "no flight recorder of this version"};
  if (!ipc::SharedMemory::keeps_size(fd.get())) return other;
  if (view.bytes_ < wire::kFlightDataOffset) return other;
  void* const address = ::mmap(nullptr, view.bytes_, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (address == MAP_FAILED) return ipc::system_error("mmap");
  view.data_ = static_cast<const std::byte*>(address);
  // Read once and kept: the process that writes the segment may change it after the check.
  const auto capacity = view.capacity_ =
      *const_cast<const volatile std::uint64_t*>(&view.header().capacity);
  // A capacity that makes flight_bytes() overflow is larger than the segment as well.
  if (view.header().version != wire::kFlightVersion || (capacity & (capacity - 1)) != 0 ||
      capacity > view.bytes_ || view.bytes_ < wire::flight_bytes(capacity, 0))
    return other;
  return view;
}

std::vector<FlightView::Command> FlightView::commands() const {
  const auto* const slots =
      reinterpret_cast<const wire::FlightSlot*>(data_ + wire::kFlightDataOffset);
  std::vector<Command> commands;
  for (std::uint64_t i = 0; i < capacity(); ++i) {
    const auto& slot = slots[i];
    Command command;
    command.ticket = slot.ticket.load(std::memory_order_acquire);
    if (command.ticket == 0) continue;
    command.issued = slot.issued.load(std::memory_order_relaxed);
    command.completed = slot.completed.load(std::memory_order_relaxed);
    const auto on = slot.queue.load(std::memory_order_relaxed);
    command.queue = wire::queue_in(on);
    command.opcode = wire::opcode_in(on);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (slot.ticket.load(std::memory_order_relaxed) == command.ticket) commands.push_back(command);
  }
  std::sort(commands.begin(), commands.end(),
            [](const Command& a, const Command& b) { return a.ticket < b.ticket; });
  return commands;
}

std::vector<std::pair<std::uint32_t, double>> busy_shares(
    const std::vector<FlightView::Command>& commands, std::uint64_t since, std::uint64_t now) {
  if (now <= since) return {};
  struct Queue {
    std::uint64_t until, busy = 0;  ///< what comes before `until` is counted
  };
  std::map<std::uint32_t, Queue> queues;
  for (const auto& command : commands) {
    if (command.queue == 0) continue;
    const auto end = command.completed == 0 ? now : std::min(command.completed, now);
    if (end <= since) continue;
    auto& queue = queues.try_emplace(command.queue, Queue{since}).first->second;
    const auto begin = std::max(command.issued, queue.until);
    if (begin >= end) continue;
    queue.busy += end - begin;
    queue.until = end;
  }
  std::vector<std::pair<std::uint32_t, double>> shares;
  for (const auto& [index, queue] : queues)
    shares.emplace_back(index, static_cast<double>(queue.busy) / static_cast<double>(now - since));
  return shares;
}

}  // namespace troupe::running
