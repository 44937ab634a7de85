#include "rank/run/inheritance.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include <troupe/device.hpp>

#include "common/core/log.hpp"
#include "common/ipc/system_error.hpp"
#include "rank/store/part_table.hpp"
#include "rank/token/token_actor.hpp"

namespace troupe::rank_process {
namespace {

/// Slabs that this process's device host has mapped for the while.
class MappedSlabs {
 public:
  explicit MappedSlabs(DeviceCore& device) : device_(&device) {}
  ~MappedSlabs() {
    for (const auto& [name, region] : regions_) device_->tell(device_message::DropRegion{region});
  }
  MappedSlabs(const MappedSlabs&) = delete;
  MappedSlabs& operator=(const MappedSlabs&) = delete;

  Result<void> map(const KeptSlab& slab) {
    if (regions_.size() == ForeignSlabs::kFirst)
      return Error{Errc::out_of_memory, 0, "too many slabs were left"};
    const auto region = kForeignRegion | static_cast<std::uint32_t>(regions_.size());
    const auto mapped = std::make_shared<Promise<void>>();
    const auto there = mapped->future();
    auto memory = std::make_shared<UniqueFd>(::fcntl(slab.memory.get(), F_DUPFD_CLOEXEC, 0));
    if (!*memory) return ipc::system_error("fcntl");
    device_->tell(device_message::MapForeign{region, std::move(memory), slab.bytes, mapped});
    if (const auto& outcome = there.wait(); !outcome.ok()) return outcome;
    regions_[{slab.incarnation, slab.region}] = region;
    return {};
  }
  /// Errors: invalid (it was not left).
  [[nodiscard]] Result<Operand> find(std::uint32_t incarnation, const Operand& range) const {
    const auto it = regions_.find({incarnation, range.region});
    if (it == regions_.end()) return Error{Errc::invalid, 0, "a slab of a commit was not left"};
    return Operand{.region = it->second, .offset = range.offset, .bytes = range.bytes};
  }

 private:
  DeviceCore* device_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> regions_;
};

Result<HeldPart> copy_out(DeviceCore& device, const CommitLedger::Commit& commit,
                          const MappedSlabs& slabs) {
  std::vector<SavedEntry> entries;
  for (const auto& entry : commit.entries) entries.push_back(entry.saved);
  auto table = lay_out(entries);
  table.part = commit.part, table.parts = commit.parts, table.step = commit.step;
  auto pinned = device.pools().allocate_apart(table.bytes);
  if (!pinned) return pinned.error();
  if (const auto mapped = device.pools().map_apart(pinned->where).wait(); !mapped.ok())
    return mapped.error();
  const std::span image(pinned->data, table.bytes);
  std::vector<Future<void>> copies;
  Result<void> outcome;
  for (std::size_t i = 0; i < commit.entries.size() && outcome.ok(); ++i) {
    const auto& [saved, where] = commit.entries[i];
    const auto& place = table.places[i];
    const auto size = saved.dtype ? where.device.bytes : where.host.size();
    if (size != place.bytes) outcome = Error{Errc::invalid, 0, "an entry has another size"};
    if (!outcome.ok() || place.bytes == 0) continue;
    if (!saved.dtype) {
      std::copy(where.host.begin(), where.host.end(),
                image.begin() + static_cast<std::ptrdiff_t>(place.offset));
      continue;
    }
    const auto from = slabs.find(commit.incarnation, where.device);
    if (!from.ok()) {
      outcome = from.error();
      continue;
    }
    auto to = pinned->where;
    to.offset += place.offset, to.bytes = place.bytes;
    copies.push_back(
        detail::submit(device.port().deliveries(), memory::Copy{DType::u8, *from, to}));
  }
  // None may still be under way when their memory is let go.
  if (const auto copied = when_all(std::move(copies)).wait(); !copied.ok()) outcome = copied;
  if (!outcome.ok()) return outcome.error();
  seal(table, image);
  return HeldPart::in_memory(
      commit.step, std::make_shared<const std::vector<std::byte>>(image.begin(), image.end()));
}

}  // namespace

Inheritance::Inheritance(std::shared_ptr<Estate> estate)
    : estate_(std::move(estate)), slabs_(estate_->take()) {
  if (!slabs_.empty()) commits_ = CommitLedger::read(estate_->file());
}

std::vector<HeldPart> Inheritance::copy_out(DeviceCore& device) const {
  std::vector<HeldPart> parts;
  MappedSlabs slabs(device);
  for (const auto& slab : slabs_) {
    const bool wanted = std::any_of(commits_.begin(), commits_.end(), [&](const auto& commit) {
      return commit.incarnation == slab.incarnation;
    });
    if (!wanted) continue;
    if (const auto mapped = slabs.map(slab); !mapped.ok())
      log::debug("checkpoint", "device memory that this rank has left: {}",
                 mapped.error().to_string());
  }
  for (const auto& commit : commits_) {
    auto part = rank_process::copy_out(device, commit, slabs);
    if (part.ok()) {
      log::info("checkpoint", "the commit of step {} has outlived this rank's process on the GPU",
                commit.step);
      parts.push_back(std::move(*part));
    } else {
      log::debug("checkpoint", "the commit of step {}: {}", commit.step, part.error().to_string());
    }
  }
  return parts;
}

void Inheritance::drop() {
  if (slabs_.empty()) return;
  slabs_.clear();
  commits_.clear();
  estate_->have_taken();
}

}  // namespace troupe::rank_process
