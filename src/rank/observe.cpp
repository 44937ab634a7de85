#include "rank/observe.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include <troupe/trace.hpp>

#include "common/core/log.hpp"
#include "common/ipc/trusted_file.hpp"
#include "common/ipc/whole_file.hpp"
#include "rank/metrics.hpp"
#include "rank/protocol/slow_ranks.hpp"
#include "rank/world/world_core.hpp"

namespace troupe::rank_process {
namespace {

namespace fs = std::filesystem;

constexpr auto kMetricsPeriod = std::chrono::seconds(5);
/// As many collectives must be compared before a rank is called the slowest.
constexpr std::size_t kEnough = 100;
/// Bytes of parts that rank 0 receives at a time.
constexpr std::size_t kReceived = 64u << 20, kLeastChunk = 64u << 10;

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

double seconds(std::uint64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / 1e9;
}

std::string part_name(const std::string& file, int rank) {
  return file + ".part." + std::to_string(rank);
}

Error cannot_write(const std::string& what, const std::string& file, int error) {
  return {Errc::io, error, what + ": " + file + " cannot be written: " + std::strerror(error)};
}

/// A temporary name is written and renamed: who reads the file finds all of it.
Result<void> replace(const std::string& file, const std::string& text) {
  const auto draft = file + ".tmp";
  std::error_code ignored;
  if (const auto folder = fs::path(file).parent_path(); !folder.empty())
    fs::create_directories(folder, ignored);
  const auto written = [&]() -> Result<void> {
    auto opened = ipc::create_trusted(draft, 0666);
    if (!opened) return opened.error();
    return ipc::write_whole(opened->get(), std::as_bytes(std::span(text)));
  }();
  if (!written && written.code() != Errc::io)
    return Error{written.code(), 0, "metrics: " + written.error().message};
  if (!written) return cannot_write("metrics", file, written.error().native);
  if (::rename(draft.c_str(), file.c_str()) != 0) return cannot_write("metrics", file, errno);
  return {};
}

/// The beginning of a part, which no other job's has, and its length.
std::string identity_of(const std::string& file) {
  std::error_code failed;
  const auto bytes = fs::file_size(file, failed);
  std::string line;
  std::ifstream stream(file, std::ios::binary);
  std::getline(stream, line);
  return failed || !stream ? std::string() : std::to_string(bytes) + " " + line;
}

std::uint64_t size_in(const std::string& identity) {
  return std::strtoull(identity.c_str(), nullptr, 10);
}

}  // namespace

void Observer::prepare(const Settings& settings, const std::string& engine,
                       FlightRecorder::Options& flight) {
  const bool traces = !settings.trace.empty();
  if (!traces && settings.metrics.empty()) return;
  flight.slots = FlightCollector::kSlots;
  if (traces && engine == "cuda" && settings.trace_kernels)
    flight.activities = FlightCollector::kActivities;
}

Observer::Observer(const Settings& settings, Session& mpi, DeviceCore& device)
    : mpi_(&mpi), device_(&device), trace_file_(settings.trace), metrics_file_(settings.metrics) {}

Result<std::unique_ptr<Observer>> Observer::open(const Settings& settings, Session& mpi,
                                                 DeviceCore& device,
                                                 const FlightRecorder::Options& flight) {
  std::unique_ptr<Observer> observer(new Observer(settings, mpi, device));
  observer->job_ = flight.job;
  observer->first_clock_ = {SteadyClock::time().count(), flight.clock_offset_ns};
  std::unique_ptr<trace::PartWriter> part;
  const auto prepare = [&]() -> Result<void> {
    auto& trace_file = observer->trace_file_;
    auto& metrics = observer->metrics_file_;
    for (const auto& [what, file] :
         {std::pair{"metrics", &metrics}, std::pair{"trace", &trace_file}}) {
      std::error_code ignored;
      if (fs::exists(*file, ignored) && !fs::is_regular_file(*file, ignored) &&
          !fs::is_directory(*file, ignored))
        return Error{Errc::invalid, 0,
                     std::string(what) + ": " + *file + " is there, and is no regular file"};
    }
    if (!metrics.empty()) {
      metrics = metrics_file(metrics, mpi.rank());
      if (auto written = replace(metrics, {}); !written) return written;
    }
    if (trace_file.empty()) return {};
    std::error_code ignored;
    if (fs::is_directory(trace_file, ignored)) return cannot_write("trace", trace_file, EISDIR);
    auto made = trace::PartWriter::create(part_name(trace_file, mpi.rank()),
                                          {.job = flight.job,
                                           .host = host_name(),
                                           .rank = mpi.rank(),
                                           .size = mpi.size(),
                                           .clock_offset_ns = flight.clock_offset_ns,
                                           .time_ns = observer->first_clock_.time_ns});
    if (!made) return Error{made.code(), made.error().native, "trace: " + made.error().message};
    part = std::move(*made);
    return {};
  };
  auto agreed = mpi.everyone().agree(prepare());
  if (!agreed) {
    if (part) (void)::unlink(part->path().c_str());
    return agreed.error();
  }
  if (part || !observer->metrics_file_.empty()) {
    observer->collector_ = std::make_unique<FlightCollector>(FlightCollector::Options{
        .flight = &device.flight(),
        .submitted = [&device] { return device.port().submitted(); },
        .pending = [&device](std::uint64_t ticket) { return device.port().pending(ticket); },
        .part = std::move(part)});
  }
  return observer;
}

Observer::~Observer() {
  forget_world();
  if (!formed_ && collector_ && collector_->traces())
    (void)::unlink(collector_->part_file().c_str());
}

// Metrics

void Observer::watch(const WorldCore& world) {
  formed_ = true;
  if (metrics_file_.empty()) return;
  world_ = &world;
  metrics_thread_ = std::thread([this] { serve(); });
}

void Observer::forget_world() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  ending_changed_.notify_all();
  if (!metrics_thread_.joinable()) return;
  metrics_thread_.join();
  collector_->collect();
  write_metrics();
}

void Observer::serve() {
  std::unique_lock lock(mutex_);
  do {
    lock.unlock();
    write_metrics();
    lock.lock();
  } while (!ending_changed_.wait_for(lock, kMetricsPeriod, [this] { return ending_; }));
}

void Observer::write_metrics() {
  const auto& port = device_->port();
  const auto retired = port.retired();
  const auto memory = device_->memory_use();
  const auto health = device_->health();
  const auto& times = device_->flight().times();
  const auto slow = world_->status().slowness().found();
  const auto written =
      replace(metrics_file_,
              to_prometheus({.job = job_,
                             .rank = mpi_->rank(),
                             .totals = collector_->totals(),
                             .queue_depth = port.submitted() - retired,
                             .epoch = world_->epoch().value,
                             .commits = world_->status().run().commits(),
                             .saved = world_->status().run().keeper().saved(),
                             .recoveries = world_->status().epochs().recoveries(),
                             .verified = world_->status().corruptions().verified(),
                             .corruptions = world_->status().corruptions().all(),
                             .waiting_seconds = seconds(times.in_collectives + times.meeting),
                             .idle_seconds = seconds(times.idle),
                             .slowness = slow ? ratio_of(*slow) : 0,
                             .memory = memory.ok() ? *memory : std::vector<MemoryUse>(),
                             .health = health.ok() ? *health : GpuHealth(),
                             .health_events = device_->health_log().counts()}));
  if (!written && !std::exchange(warned_, true))
    log::warn("runtime", "{}", written.error().message);
}

// The end

void Observer::finish(const std::vector<HealthEvent>& health) {
  if (mpi_->rank() == 0) name_unhealthy(health);
  const bool traces = collector_ && collector_->traces();
  if (mpi_->size() == 1 && !traces) return;
  const auto offset = mpi_->clock_offset();
  const trace::Clock clock{SteadyClock::time().count(), offset.count()};
  if (traces) collector_->finish(clock);
  if (mpi_->size() > 1) name_slowest(clock);
  if (traces) merge();
}

void Observer::name_unhealthy(const std::vector<HealthEvent>& health) {
  std::map<int, std::string> said;
  for (const auto& event : health) {
    auto& text = said[event.rank];
    text += (text.empty() ? "" : "; ") + event.text + (event.failing ? " (failing)" : "");
  }
  for (const auto& [rank, text] : said)
    log::warn("world", "health: the GPU of rank {} has said: {}", rank, text);
}

void Observer::name_slowest(const trace::Clock& last) {
  const auto& flight = device_->flight();
  auto mine = flight.arrivals().taken(flight.reading());
  for (auto& arrival : mine) arrival.time_ns = trace::on_rank0(first_clock_, last, arrival.time_ns);
  std::vector<std::vector<std::byte>> outgoing(static_cast<std::size_t>(mpi_->size()));
  const auto bytes = std::as_bytes(std::span(mine));
  outgoing.front().assign(bytes.begin(), bytes.end());
  const auto received = mpi_->everyone().all_to_all(outgoing);
  const auto strides = mpi_->everyone().gather(flight.arrivals().stride());
  const auto hosts = mpi_->everyone().gather_text(host_name());
  if (mpi_->rank() != 0) return;
  std::vector<std::vector<Arrival>> ranks;
  for (const auto& one : received) {
    auto& arrivals = ranks.emplace_back(one.size() / sizeof(Arrival));
    if (!arrivals.empty())
      std::memcpy(arrivals.data(), one.data(), arrivals.size() * sizeof(Arrival));
  }
  const auto slowest =
      find_slowest(ranks, *std::max_element(strides.begin(), strides.end()), kEnough);
  if (!slowest) return;
  log::info("world",
            "slowest: rank {} (host {}) arrived last in {:.0f} % of {} collectives, {:.3g} "
            "ms of waiting per second",
            slowest->rank, hosts[slowest->rank],
            100.0 * static_cast<double>(slowest->last) / static_cast<double>(slowest->collectives),
            slowest->collectives, 1e3 * slowest->waiting);
}

void Observer::merge() {
  const auto parts = gather_parts();
  Result<void> outcome = parts.ok() ? Result<void>() : Result<void>(parts.error());
  if (outcome.ok() && mpi_->rank() == 0) {
    const auto merged = merge_trace(*parts, trace_file_);
    if (merged.ok()) {
      log::info("runtime", "trace: {} has {} commands of {} ranks", trace_file_, merged->commands,
                merged->ranks);
      if (merged->lost != 0)
        log::warn("runtime",
                  "the trace lacks {} commands or GPU activities, which passed faster than they "
                  "could be collected",
                  merged->lost);
      for (const auto& part : *parts) (void)::unlink(part.c_str());
    } else {
      outcome = merged.error();
    }
  }
  outcome = mpi_->everyone().agree(outcome);
  if (outcome.ok()) {
    (void)::unlink(collector_->part_file().c_str());
  } else if (mpi_->rank() == 0) {
    log::warn("runtime", "the parts of the trace, {}.part.*, are left as they are: {}", trace_file_,
              outcome.error().message);
  }
}

Result<std::vector<std::string>> Observer::gather_parts() {
  const auto& everyone = mpi_->everyone();
  const auto identities = everyone.gather_text(identity_of(collector_->part_file()));
  std::vector<std::string> files(identities.size());
  std::vector<std::uint64_t> bytes(identities.size());
  std::string missing;  // '1' for each rank whose part rank 0 does not see
  for (std::size_t rank = 0; rank < files.size(); ++rank) {
    bytes[rank] = size_in(identities[rank]);
    if (mpi_->rank() != 0) continue;
    files[rank] = part_name(trace_file_, static_cast<int>(rank));
    const bool seen = identity_of(files[rank]) == identities[rank];
    missing += seen ? '0' : '1';
    if (!seen) files[rank] += ".received";
  }
  missing = everyone.gather_text(missing).front();
  if (auto sent = everyone.agree(send_missing(missing, bytes)); !sent) return sent.error();
  return mpi_->rank() == 0 ? files : std::vector<std::string>();
}

Result<void> Observer::send_missing(const std::string& missing,
                                    const std::vector<std::uint64_t>& bytes) {
  const auto senders = std::count(missing.begin(), missing.end(), '1');
  if (senders == 0) return {};
  const auto piece = std::max(kReceived / static_cast<std::size_t>(senders), kLeastChunk);
  std::uint64_t longest = 0;
  for (std::size_t rank = 0; rank < bytes.size(); ++rank)
    if (missing[rank] == '1') longest = std::max(longest, bytes[rank]);
  const bool sends = missing[static_cast<std::size_t>(mpi_->rank())] == '1';
  std::ifstream own;
  if (sends) own.open(collector_->part_file(), std::ios::binary);
  std::vector<std::ofstream> received(mpi_->rank() == 0 ? missing.size() : 0);
  for (std::size_t rank = 0; rank < received.size(); ++rank) {
    if (missing[rank] != '1') continue;
    // Go on if the file cannot be opened, and report it after the loop below: the other ranks wait
    // in its all_to_all().
    const auto file =
        ipc::create_trusted(part_name(trace_file_, static_cast<int>(rank)) + ".received", 0666);
    if (file.ok())
      received[rank].open("/proc/self/fd/" + std::to_string(file->get()), std::ios::binary);
    else
      received[rank].setstate(std::ios::failbit);
  }
  for (std::uint64_t at = 0; at < longest; at += piece) {
    std::vector<std::vector<std::byte>> outgoing(missing.size());
    if (sends) {
      outgoing.front().resize(piece);
      own.read(reinterpret_cast<char*>(outgoing.front().data()),
               static_cast<std::streamsize>(piece));
      outgoing.front().resize(static_cast<std::size_t>(own.gcount()));
    }
    const auto incoming = mpi_->everyone().all_to_all(outgoing);
    for (std::size_t rank = 0; rank < received.size(); ++rank) {
      if (!incoming[rank].empty())
        received[rank].write(reinterpret_cast<const char*>(incoming[rank].data()),
                             static_cast<std::streamsize>(incoming[rank].size()));
    }
  }
  for (std::size_t rank = 0; rank < received.size(); ++rank) {
    if (missing[rank] == '1' && !received[rank].flush())
      return cannot_write("trace", part_name(trace_file_, static_cast<int>(rank)) + ".received",
                          errno);
  }
  return {};
}

}  // namespace troupe::rank_process
