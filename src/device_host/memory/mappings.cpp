#include "device_host/memory/mappings.hpp"

#include <string>

#include <troupe/lib/outside.hpp>

#include "device_host/sequences/sequences.hpp"

namespace troupe::host {

namespace to_host = wire::to_host;

void Mappings::on(std::uint64_t request, const to_host::MakeSlab& make) {
  requests_->on_helper(request, [this, request, make]() -> Helpers::Finish {
    auto slab = std::make_shared<Result<Slab>>(core_->engine->memory().make_slab(make.bytes));
    return [this, request, make, slab] {
      if (!slab->ok()) return requests_->answer(request, slab->error());
      addresses_.set(make.region, (*slab)->base, make.bytes);
      requests_->answer_with(request,
                             wire::from_host::SlabMade{wire::Descriptor::lent((*slab)->fd.get())});
    };
  });
}

void Mappings::on(std::uint64_t request, to_host::MapSlab& map_it) {
  const auto fd = std::make_shared<UniqueFd>(map_it.memory.take());
  map(request, map_it.region, map_it.bytes, true, [this, fd, bytes = map_it.bytes] {
    return core_->engine->memory().map_slab(fd->get(), bytes);
  });
}

void Mappings::on(std::uint64_t request, to_host::MapPinned& map_it) {
  const auto fd = std::make_shared<UniqueFd>(map_it.memory.take());
  map(request, map_it.region, map_it.bytes, true, [this, fd, bytes = map_it.bytes] {
    return core_->engine->memory().map_pinned(fd->get(), bytes);
  });
}

void Mappings::on(std::uint64_t request, to_host::MapForeign& map_it) {
  const auto fd = std::make_shared<UniqueFd>(map_it.memory.take());
  map(request, map_it.region, map_it.bytes, false, [this, fd, bytes = map_it.bytes] {
    return core_->engine->memory().map_foreign(fd->get(), bytes);
  });
}

void Mappings::map(std::uint64_t request, std::uint32_t region, std::uint64_t bytes, bool ours,
                   MapNow map_now) {
  // The promotion waits for it anyway, and nothing else runs on a standby.
  if (core_->life.mode() == Life::Mode::standby)
    return mapped(request, region, bytes, ours, map_now());
  requests_->on_helper(request, [this, request, region, bytes, ours, map_now]() -> Helpers::Finish {
    return [this, request, region, bytes, ours, address = map_now()] {
      mapped(request, region, bytes, ours, address);
    };
  });
}

void Mappings::mapped(std::uint64_t request, std::uint32_t region, std::uint64_t bytes, bool ours,
                      const Result<std::byte*>& address) {
  if (address.ok()) {
    addresses_.set(region, *address, bytes);
    return requests_->answer(request, {});
  }
  if (ours) failed(address.error());
  requests_->answer(request, address.error());
}

void Mappings::failed(const Error& error) {
  if (core_->life.mode() == Life::Mode::standby && !failure_) failure_ = error;
}

void Mappings::on(std::uint64_t, const to_host::DropRegion& drop) {
  core_->lanes.forget_region(drop.region);
  addresses_.for_each([&](std::uint32_t region, std::byte* base, std::uint64_t bytes) {
    if (region != drop.region) return;
    if ((region & kPinnedRegion) != 0) {
      dropped_pinned_.emplace_back(base, bytes);
    } else if ((region & kForeignRegion) != 0) {
      core_->engine->memory().unmap_foreign(base, bytes);
    } else {
      core_->engine->memory().unmap_slab(base, bytes);
    }
  });
  addresses_.erase(drop.region);
}

void Mappings::unmap_dropped() {
  for (const auto& [base, bytes] : dropped_pinned_)
    core_->engine->memory().unmap_pinned(base, bytes);
  dropped_pinned_.clear();
}

bool Mappings::reaches(const Operand& range) const {
  return range.bytes == 0 || outside::is_outside(range) || addresses_.find(range) != nullptr;
}

bool Mappings::may_use(const wire::Command& command, const OperandUse& use) {
  if (use.access == Access::read || !is_foreign(use.range->region)) return true;
  return names_for_order(command);
}

Result<void> Mappings::reaches_all(const wire::Command& command) const {
  for (const auto& use : command.operands()) {
    if (!reaches(*use.range) || !may_use(command, use))
      return Error{Errc::internal, 0,
                   std::string(command.name()) + ": an operand is out of bounds"};
  }
  return {};
}

}  // namespace troupe::host
