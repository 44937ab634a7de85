#include "rank/token/foreign_slabs.hpp"

#include "rank/token/token_actor.hpp"

namespace troupe::rank_process {

void ForeignSlabs::map(const Id& id, std::uint64_t bytes,
                       std::function<void(Result<std::uint32_t>)> mapped) {
  if (const auto it = mappings_.find(id); it != mappings_.end() && !it->second.gone) {
    if (it->second.bytes != bytes)
      return mapped(Error{Errc::invalid, 0, "a slab of another size than before"});
    if (it->second.ready) return mapped(it->second.region);
    it->second.waiting.push_back(std::move(mapped));
    return;
  }
  if (mappings_.contains(id)) return mapped(Error{Errc::stale, 0, "the slab is gone"});
  constexpr std::uint32_t kMaxMappings = 1u << 22;  // a device host has a table of them
  if (next_ == kMaxMappings)
    return mapped(Error{Errc::out_of_memory, 0, "too many slabs of other ranks were mapped"});
  auto fd = turn_.parts().fds->take(id.first, id.second);
  if (!fd.ok()) return mapped(fd.error());
  const auto region = kForeignRegion | next_++;  // never used again
  auto& mapping = mappings_[id];
  mapping.region = region;
  mapping.bytes = bytes;
  mapping.waiting.push_back(std::move(mapped));
  auto promise = std::make_shared<Promise<void>>();
  const auto there = promise->future();
  turn_.device().tell(device_message::MapForeign{region, std::make_shared<UniqueFd>(std::move(*fd)),
                                                 bytes, std::move(promise)});
  turn_.then(there, [this, id](const Result<void>& outcome) { came(id, outcome); });
}

void ForeignSlabs::came(const Id& id, const Result<void>& outcome) {
  auto& made = mappings_.at(id);
  made.ready = true;
  const auto waiting = std::exchange(made.waiting, {});
  const Result<std::uint32_t> answer =
      outcome.ok() ? Result<std::uint32_t>(made.region) : Result<std::uint32_t>(outcome.error());
  if (!outcome.ok()) mappings_.erase(id);
  for (const auto& tell : waiting) tell(answer);
  if (const auto it = mappings_.find(id); it != mappings_.end() && it->second.gone) unmap(id);
}

void ForeignSlabs::unmap(const Id& id) {
  const auto it = mappings_.find(id);
  if (it == mappings_.end()) return;
  it->second.gone = true;
  if (!it->second.ready || it->second.users != 0) return;  // comes back here
  turn_.device().tell(device_message::DropRegion{it->second.region});
  mappings_.erase(it);
}

void ForeignSlabs::unmap_all_of(int rank) {
  std::vector<Id> mapped;
  for (const auto& [id, mapping] : mappings_) {
    if (id.first == rank) mapped.push_back(id);
  }
  for (const auto& id : mapped) unmap(id);
}

void ForeignSlabs::end_use(const Id& id) {
  auto& mapping = mappings_.at(id);
  --mapping.users;
  if (mapping.gone) unmap(id);
}

}  // namespace troupe::rank_process
