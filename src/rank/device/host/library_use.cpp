#include "rank/device/host/library_use.hpp"

#include <span>
#include <sstream>
#include <utility>

#include "common/core/log.hpp"

namespace troupe::rank_process {

LibraryUse::LibraryUse(HostRequests* requests, const std::string& tuning_file)
    : requests_(requests), tunings_(tuning_file) {}

void LibraryUse::load() {
  const auto kept = tunings_.load();
  for (auto one = kept.rbegin(); one != kept.rend(); ++one) warm_.add_plan(one->library, one->plan);
}

void LibraryUse::name_modules(const HostLink& host) const {
  for (auto& stamp : host.header().libraries) {
    if (const auto known = modules_.find(stamp.library()); known != modules_.end())
      stamp.module = known->second;
  }
}

void LibraryUse::note_modules(const HostLink& host) {
  auto& header = host.header();
  for (const auto& stamp : header.libraries) {
    if (stamp.module == decltype(stamp.module){}) continue;
    const auto known = modules_.try_emplace(std::string(stamp.library()), stamp.module).first;
    if (known->second != stamp.module)
      header.unknown.add(stamp.lane, stamp.library(), "its module was replaced as the job began");
  }
}

std::optional<OpenedLibrary> LibraryUse::library_opened(const OpenedLibrary& library,
                                                        const Heirs& heirs) {
  const auto& name = library.name;
  auto& known = opened_[name];
  const bool is_new = known != library;
  if (is_new) {
    std::string stands_on;
    for (const auto& [its_name, version, file] : library.stands_on) {
      stands_on += (stands_on.empty() ? ": " : ", ") + its_name + " " + version;
      if (!file.empty()) stands_on += " (" + file + ")";
    }
    log::info("device", "library {} is open{}", name, stands_on);
    known = library;
  }
  if (warm_.add_library(name)) {
    WarmSet news;
    news.add_library(name);
    warm_up(heirs, news);
  }
  return is_new ? std::optional(known) : std::nullopt;
}

void LibraryUse::kind_recurs(const wire::from_host::KindRecurs& told, const Heirs& heirs) {
  kinds_recur({{{told.key, told.record}}}, heirs);
}

void LibraryUse::kinds_recur(device_message::KindsRecur recur, const Heirs& heirs) {
  WarmSet news;
  for (auto& [key, record] : recur.kinds) {
    if (warm_.add_kind(key, record)) news.add_kind(key, std::move(record));
  }
  warm_up(heirs, news);
}

void LibraryUse::lacks(const std::string& lines) {
  if (lines == std::exchange(lacking_, lines)) return;
  std::istringstream each(lines);
  for (std::string line; std::getline(each, line);) log::warn("lib", "no library {}", line);
}

void LibraryUse::plans_made(wire::from_host::PlansMade told, const Heirs& heirs) {
  WarmSet news;
  std::vector<TuningFile::Entry> measured;
  for (const auto& plan : told.plans) measured.push_back({told.library, plan});
  tunings_.add(measured);
  for (auto& plan : told.plans) {
    if (warm_.add_plan(told.library, plan)) news.add_plan(told.library, std::move(plan));
  }
  warm_up(heirs, news);
}

void LibraryUse::lost(std::uint64_t host) {
  if (!warming_.contains(host)) return;
  log::warn("device",
            "device host {} ended while it prepared what others have run: the next one "
            "prepares nothing",
            host);
  warm_.clear_kinds();
}

std::vector<OpenedLibrary> LibraryUse::opened() const {
  std::vector<OpenedLibrary> all;
  for (const auto& [name, library] : opened_) all.push_back(library);
  return all;
}

void LibraryUse::warm_up(const Heirs& heirs, const WarmSet& what) {
  for (const auto& heir : heirs) warm_up(*heir, what);
}

void LibraryUse::warm_up(const HostLink& host, const WarmSet& what) {
  const auto& socket = host.socket();
  for (const auto& library : what.libraries())
    (void)wire::send_control(socket, wire::to_host::OpenLibrary{library});
  // Without a descriptor to send them with, the host makes the plans by itself.
  if (auto plans = what.plans(); !plans.empty())
    (void)wire::send_control(socket, wire::to_host::AdoptPlans{std::move(plans)});
  auto kinds = what.kinds();
  if (kinds.empty()) return;
  const auto prepared = [this, id = host.id()](const Result<wire::from_host::Done>& answer) {
    if (answer.ok()) warming_.erase(id);
  };
  if (requests_->ask(host, wire::to_host::Prepare{std::move(kinds)}, prepared).ok())
    warming_.insert(host.id());
}

}  // namespace troupe::rank_process
