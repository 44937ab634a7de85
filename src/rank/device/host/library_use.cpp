#include "rank/device/host/library_use.hpp"

#include <span>
#include <sstream>
#include <utility>

#include "common/core/log.hpp"
#include "common/wire/opened_library.hpp"

namespace troupe::rank_process {

using wire::ControlKind;

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

std::optional<OpenedLibrary> LibraryUse::library_opened(const std::string& told,
                                                        const Heirs& heirs) {
  auto library = wire::decode_opened_library(told);
  if (!library.ok()) {
    log::error("device", "{}", library.error().message);
    return std::nullopt;
  }
  const auto& name = library->name;
  auto& known = opened_[name];
  const bool is_new = known != *library;
  if (is_new) {
    std::string stands_on;
    for (const auto& [its_name, version, file] : library->stands_on) {
      stands_on += (stands_on.empty() ? ": " : ", ") + its_name + " " + version;
      if (!file.empty()) stands_on += " (" + file + ")";
    }
    log::info("device", "library {} is open{}", name, stands_on);
    known = *library;
  }
  if (warm_.add_library(name)) {
    WarmSet news;
    news.add_library(name);
    warm_up(heirs, news);
  }
  return is_new ? std::optional(known) : std::nullopt;
}

void LibraryUse::kind_recurs(const wire::ControlMessage& told, const Heirs& heirs) {
  const auto bytes = std::as_bytes(std::span(told.text));
  kinds_recur({{{told.head.bytes, {bytes.begin(), bytes.end()}}}}, heirs);
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

void LibraryUse::plans_made(const wire::ControlMessage& told, const Heirs& heirs) {
  auto blobs = told.fd
                   ? wire::unpack_blobs(told.fd.get())
                   : Result<std::vector<std::vector<std::byte>>>(Error{Errc::io, 0, "no plans"});
  if (!blobs.ok() || blobs->empty()) return;
  const std::string library(reinterpret_cast<const char*>(blobs->front().data()),
                            blobs->front().size());
  WarmSet news;
  std::vector<TuningFile::Entry> measured;
  for (std::size_t i = 1; i < blobs->size(); ++i) measured.push_back({library, (*blobs)[i]});
  tunings_.add(measured);
  for (std::size_t i = 1; i < blobs->size(); ++i) {
    if (warm_.add_plan(library, (*blobs)[i])) news.add_plan(library, std::move((*blobs)[i]));
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
    (void)wire::send_control(socket, {.kind = ControlKind::open_library}, library);
  // Without a descriptor to send them with, the host finds out by itself.
  if (const auto plans = what.plans(); !plans.empty()) {
    if (const auto packed = wire::pack_blobs(plans); packed.ok())
      (void)wire::send_control(socket, {.kind = ControlKind::adopt_plans}, {}, packed->get());
  }
  const auto kinds = what.kinds();
  if (kinds.empty()) return;
  const auto packed = wire::pack_blobs(kinds);
  if (!packed.ok()) return;
  warming_.insert(host.id());
  requests_->ask(host, {.kind = ControlKind::prepare}, packed->get(),
                 [this, id = host.id()](const Result<wire::ControlMessage>& answer) {
                   if (answer.ok()) warming_.erase(id);
                 });
}

}  // namespace troupe::rank_process
