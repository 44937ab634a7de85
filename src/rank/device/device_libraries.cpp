#include "common/core/log.hpp"
#include "common/wire/opened_library.hpp"
#include "rank/device/device_actor.hpp"

// What device hosts have opened and used: to tell of it, and to have their successors prepare it.

namespace troupe::rank_process {

using namespace device_message;
using wire::ControlKind;

void DeviceActor::library_opened(const std::string& told) {
  auto library = wire::decode_opened_library(told);
  if (!library.ok()) return log::error("device", "{}", library.error().message);
  const auto& name = library->name;
  auto& known = opened_[name];
  if (known != *library) {
    std::string stands_on;
    for (const auto& [its_name, version, file] : library->stands_on) {
      stands_on += (stands_on.empty() ? ": " : ", ") + its_name + " " + version;
      if (!file.empty()) stands_on += " (" + file + ")";
    }
    log::info("device", "library {} is open{}", name, stands_on);
    known = *library;
    report(DeviceLibrary{known});
  }
  if (!warm_.add_library(name)) return;
  WarmSet news;
  news.add_library(name);
  warm_up_others(news);
}

void DeviceActor::on(Listen listen) {
  listener_ = std::move(listen.listener);
  for (const auto& [name, library] : opened_) report(DeviceLibrary{library});
}

/// What has been opened is told ahead of the answer.
void DeviceActor::on(const AskLibraries& ask) {
  const auto tell = [this, ask] {
    std::vector<OpenedLibrary> all;
    for (const auto& [name, library] : opened_) all.push_back(library);
    ask.told->resolve(std::move(all));
  };
  if (failed_ || fault_ || !active_->ready) return tell();
  request(*active_, {.kind = ControlKind::tell_libraries}, -1,
          [tell](const Result<wire::ControlMessage>&) { tell(); });
}

void DeviceActor::kind_recurs(const wire::ControlMessage& told) {
  const auto bytes = std::as_bytes(std::span(told.text));
  on(KindsRecur{{{told.head.bytes, {bytes.begin(), bytes.end()}}}});
}

void DeviceActor::on(KindsRecur recur) {
  WarmSet news;
  for (auto& [key, record] : recur.kinds) {
    if (warm_.add_kind(key, record)) news.add_kind(key, std::move(record));
  }
  warm_up_others(news);
}

void DeviceActor::plans_made(const wire::ControlMessage& told) {
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
  warm_up_others(news);
}

void DeviceActor::warm_up_others(const WarmSet& what) {
  for (auto* const other : {standby_ ? &*standby_ : nullptr, successor_ ? &*successor_ : nullptr}) {
    if (other != nullptr && other->ready) warm_up(*other, what);
  }
}

void DeviceActor::warm_up(Incarnation& host, const WarmSet& what) {
  const auto& socket = host.link->socket();
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
  host.warming = true;
  request(host, {.kind = ControlKind::prepare}, packed->get(),
          [this, link = host.link->id()](const Result<wire::ControlMessage>& answer) {
            auto* const warmed = find(link);
            if (answer.ok() && warmed != nullptr) warmed->warming = false;
          });
}

void DeviceActor::forget_warm_set(const Incarnation& host) {
  if (!host.warming) return;
  log::warn("device",
            "device host {} ended while it prepared what others have run: the next one "
            "prepares nothing",
            host.link->id());
  warm_.clear_kinds();
}

}  // namespace troupe::rank_process
