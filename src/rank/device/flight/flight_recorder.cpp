#include "rank/device/flight/flight_recorder.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>

#include <nlohmann/json.hpp>
#include <troupe/lib/collective.hpp>
#include <troupe/lib/outside.hpp>

#include "common/core/log.hpp"
#include "common/ipc/file_size_signal.hpp"
#include "common/wire/record.hpp"

namespace troupe::rank_process {
namespace {

/// Words of a slot.
enum Word : std::size_t {
  kTicket,  ///< stored last; 0: being written
  kWhat,    ///< opcode, epoch
  kBytes,
  kCount,
  kPeer,       ///< peer, number of the collective
  kGroup,      ///< Way of its messages, number of the group
  kSubmitted,  ///< ticks
  kFailed,     ///< ticket << 8 | Errc
  kRepeated    ///< ticket
};

constexpr std::uint64_t pair_of(std::uint32_t high, std::uint32_t low) {
  return std::uint64_t{high} << 32 | low;
}

/// The rank that all messages go to or come from; ~0u: there are several, or no messages.
std::uint32_t only_peer(std::span<const TailOperand> messages) {
  const bool one = !messages.empty() &&
                   std::all_of(messages.begin(), messages.end(), [&](const TailOperand& message) {
                     return message.tag == messages.front().tag;
                   });
  return one ? messages.front().tag : ~0u;
}

using Way = FlightRecorder::Way;

/// The direction of an exchange's messages.
Way way_of(std::span<const TailOperand> messages) {
  const auto sends =
      std::count_if(messages.begin(), messages.end(),
                    [](const TailOperand& message) { return message.access == Access::read; });
  return messages.empty()                ? Way::none
         : sends == std::ssize(messages) ? Way::sends
         : sends == 0                    ? Way::receives
                                         : Way::both;
}

// SIGUSR2 is the process's, recorders come and go: the one that is there hears it.
std::atomic<int> signal_bell{-1};
std::atomic<bool> signalled{false};
struct sigaction action_before;

void on_signal(int) {
  const int before = errno;
  signalled.store(true);
  const int bell = signal_bell.load();
  const std::uint64_t one = 1;
  if (bell >= 0) [[maybe_unused]]
    const auto written = ::write(bell, &one, sizeof one);
  errno = before;
}

/// Takes SIGUSR2 unless the program has a use for it, or another recorder has it.
bool catch_signal(int bell) {
  int nobody = -1;
  if (!signal_bell.compare_exchange_strong(nobody, bell)) return false;
  ::sigaction(SIGUSR2, nullptr, &action_before);
  if ((action_before.sa_flags & SA_SIGINFO) == 0 && action_before.sa_handler == SIG_DFL) {
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    ::sigaction(SIGUSR2, &action, nullptr);
    return true;
  }
  signal_bell.store(-1);
  return false;
}

void release_signal() {
  ::sigaction(SIGUSR2, &action_before, nullptr);
  signal_bell.store(-1);
}

/// The folder may be one in which others can write, and a name there a link that somebody has left
/// to a file of ours: what is there is removed, not written to.
bool write_new(const std::string& path, std::string_view text) {
  const ipc::NoFileSizeSignal held_back;
  (void)::unlink(path.c_str());
  const UniqueFd file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  while (file && !text.empty()) {
    const auto written = ::write(file.get(), text.data(), text.size());
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
  return static_cast<bool>(file);
}

template <std::size_t kSize>
void put_text(std::string_view text, char (&array)[kSize]) {
  const auto length = std::min(text.size(), kSize - 1);
  std::memcpy(array, text.data(), length);
  array[length] = '\0';
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

nlohmann::json to_json(const FlightRecorder::Record& record) {
  nlohmann::json json{{"ticket", record.ticket},
                      {"op", operation_name(record.opcode)},
                      {"bytes", record.bytes},
                      {"submitted_ns", record.submitted.count()}};
  if (record.epoch != 0) json["epoch"] = record.epoch;
  if (record.group != 0) json["group"] = record.group;
  if (record.count != 0) json["count"] = record.count;
  if (record.peer >= 0) json["peer"] = record.peer;
  if (record.collective != 0) json["collective"] = record.collective;
  if (record.issued.count() != 0) json["issued_ns"] = record.issued.count();
  if (record.completed.count() != 0) json["completed_ns"] = record.completed.count();
  if (record.outcome != Errc::ok) json["outcome"] = to_string(record.outcome);
  if (record.repeated) json["repeated"] = true;
  return json;
}

}  // namespace

FlightRecorder::Options FlightRecorder::rounded(Options options) {
  if (options.records != 0) options.records = std::bit_ceil(options.records);
  options.slots = std::max(options.records, options.slots);
  if (options.slots != 0) options.slots = std::bit_ceil(options.slots);
  if (options.job.empty()) options.job = std::to_string(::getpid());
  return options;
}

Result<ipc::SharedMemory> FlightRecorder::make_segment(Options options) {
  options = rounded(std::move(options));
  auto segment = ipc::SharedMemory::create(wire::kFlightLabel,
                                           wire::flight_bytes(options.slots, options.activities));
  if (!segment) return segment.error();
  auto& header = *reinterpret_cast<wire::FlightHeader*>(segment->data());
  header.version = wire::kFlightVersion;
  header.capacity = options.slots;
  header.activities = options.activities;
  return segment;
}

Result<std::unique_ptr<FlightRecorder>> FlightRecorder::create(Options options) {
  auto segment = make_segment(options);
  if (!segment) return segment.error();
  return create(std::move(options), std::move(*segment));
}

Result<std::unique_ptr<FlightRecorder>> FlightRecorder::create(Options options,
                                                               ipc::SharedMemory segment) {
  auto bell = ipc::Doorbell::create();
  if (!bell) return bell.error();
  return std::unique_ptr<FlightRecorder>(
      new FlightRecorder(rounded(std::move(options)), std::move(segment), std::move(*bell)));
}

FlightRecorder::FlightRecorder(Options options, ipc::SharedMemory segment, ipc::Doorbell bell)
    : options_(std::move(options)),
      segment_(std::move(segment)),
      slots_(std::make_unique<Slot[]>(options_.slots)),
      bell_(std::move(bell)) {
  auto& own = board();
  own.rank = options_.rank;
  own.size = options_.size;
  own.began_ns = SteadyClock::time().count();
  put_text(options_.job, own.job);
  own.pid.store(::getpid(), std::memory_order_release);
  if (options_.records == 0 || options_.directory == "none") return;
  catches_signal_ = catch_signal(bell_.fd());
  writer_ = std::thread([this] { serve(); });
}

FlightRecorder::~FlightRecorder() {
  if (catches_signal_) release_signal();
  ending_.store(true);
  bell_.ring();
  if (writer_.joinable()) writer_.join();
}

void FlightRecorder::show_device(std::string_view name) noexcept {
  put_text(name, board().device);
  board().described.store(1, std::memory_order_release);
}

void FlightRecorder::submitted(std::uint64_t ticket, const detail::CommandView& command,
                               std::uint32_t collective, bool ahead) noexcept {
  if (options_.slots == 0) return;
  std::uint64_t bytes = 0;
  const auto add = [&bytes](const Operand& range) {
    if (!outside::is_outside(range)) bytes += range.bytes;
  };
  for (const auto& use : command.uses()) add(*use.range);
  for (const auto& part : command.tail) add(part.range);
  auto& word = slot_of(ticket).word;
  const auto set = [&](Word which, std::uint64_t value) {
    word[which].store(value, std::memory_order_relaxed);
  };
  set(kTicket, 0);
  std::atomic_thread_fence(std::memory_order_release);
  const auto agreed =
      command.info->agreement != nullptr ? command.info->agreement(command.op.data()) : Agreement();
  set(kWhat, pair_of(command.info->opcode, command.scope.epoch));
  set(kBytes, bytes);
  // A bundle has a digest for a count, and the number of its collectives for a root.
  const bool bundle = command.info == &info_of<collective::Bundle>;
  set(kCount, bundle ? agreed.root : agreed.count);
  const bool exchange = command.info == &info_of<collective::Exchange>;
  set(kPeer, pair_of(exchange ? only_peer(command.tail)
                     : bundle ? Agreement::kNone
                              : agreed.root,
                     collective));
  set(kGroup, pair_of(static_cast<std::uint32_t>(exchange ? way_of(command.tail) : Way::none),
                      command.scope.group));
  const auto now = ticks();
  set(kSubmitted, now);
  word[kTicket].store(ticket, std::memory_order_release);
  recorded_.store(recorded_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  if (collective != 0 && command.scope.group == 0) {
    world_.store(pair_of(command.scope.epoch, collective), std::memory_order_relaxed);
    arrivals_.add(command.scope.epoch, collective, now, ahead);
  }
}

void FlightRecorder::failed(std::uint64_t ticket, Errc code) noexcept {
  if (options_.slots == 0) return;
  slot_of(ticket).word[kFailed].store(ticket << 8 | static_cast<std::uint64_t>(code),
                                      std::memory_order_relaxed);
}

void FlightRecorder::repeated(std::uint64_t ticket) noexcept {
  if (options_.slots == 0) return;
  slot_of(ticket).word[kRepeated].store(ticket, std::memory_order_relaxed);
}

std::optional<FlightRecorder::Record> FlightRecorder::read(
    std::uint64_t slot, const TickScale::Reading& reading) const {
  const auto get = [&](Word which) {
    return slots_[slot].word[which].load(std::memory_order_relaxed);
  };
  Record record;
  record.ticket = slots_[slot].word[kTicket].load(std::memory_order_acquire);
  if (record.ticket == 0) return std::nullopt;
  record.opcode = static_cast<std::uint32_t>(get(kWhat) >> 32);
  record.epoch = static_cast<std::uint32_t>(get(kWhat));
  record.bytes = get(kBytes);
  record.count = get(kCount);
  record.peer = static_cast<std::int32_t>(get(kPeer) >> 32);
  record.collective = static_cast<std::uint32_t>(get(kPeer));
  record.group = static_cast<std::uint32_t>(get(kGroup));
  record.way = static_cast<Way>(get(kGroup) >> 32);
  record.submitted = reading.time_of(get(kSubmitted));
  if (get(kFailed) >> 8 == record.ticket) record.outcome = static_cast<Errc>(get(kFailed) & 0xff);
  record.repeated = get(kRepeated) == record.ticket;
  std::atomic_thread_fence(std::memory_order_acquire);
  if (get(kTicket) != record.ticket) return std::nullopt;  // a newer operation has taken it
  const auto& host =
      reinterpret_cast<const wire::FlightSlot*>(segment_.data() + wire::kFlightDataOffset)[slot];
  if (host.ticket.load(std::memory_order_acquire) == record.ticket) {
    const auto completed = host.completed.load(std::memory_order_relaxed);
    record.issued = reading.time_of(host.issued.load(std::memory_order_relaxed));
    if (completed != 0) record.completed = reading.time_of(completed);
    record.queue = wire::queue_in(host.queue.load(std::memory_order_relaxed));
  }
  return record;
}

std::optional<FlightRecorder::Record> FlightRecorder::record(
    std::uint64_t ticket, const TickScale::Reading& reading) const {
  if (options_.slots == 0) return std::nullopt;
  auto record = read(ticket & (options_.slots - 1), reading);
  return record && record->ticket == ticket ? record : std::nullopt;
}

std::vector<FlightRecorder::Record> FlightRecorder::records() const {
  const auto reading = scale_.read();
  std::vector<Record> records;
  for (std::uint64_t i = 0; i < options_.slots; ++i) {
    if (const auto record = read(i, reading)) records.push_back(*record);
  }
  std::sort(records.begin(), records.end(),
            [](const Record& a, const Record& b) { return a.ticket < b.ticket; });
  if (records.size() > options_.records)
    records.erase(records.begin(), records.end() - static_cast<std::ptrdiff_t>(options_.records));
  return records;
}

std::vector<FlightRecorder::Activity> FlightRecorder::take_activities() {
  /// Looks at a slot that is taken and not filled before its writer counts as dead: it takes
  /// nanoseconds, and between two looks there are milliseconds.
  constexpr unsigned kPatience = 100;
  std::vector<Activity> taken;
  if (options_.activities == 0) return taken;
  auto* const ring_at = segment_.data() + wire::activities_offset(options_.slots);
  auto& ring = *reinterpret_cast<wire::ActivityRing*>(ring_at);
  const auto* const slots = reinterpret_cast<const wire::ActivitySlot*>(ring_at + sizeof ring);
  auto at = ring.read.load(std::memory_order_relaxed);
  // A device host that has gone mad cannot make this go on for ever.
  const auto end =
      at + std::min(ring.claimed.load(std::memory_order_acquire) - at, options_.activities);
  for (; at != end; ++at) {
    const auto& slot = slots[at & (options_.activities - 1)];
    if (slot.number.load(std::memory_order_acquire) != at + 1) {
      if (++looks_ < kPatience) break;
      ++unfilled_;
    } else {
      taken.push_back({slot.ticket, TimePoint(slot.begin), TimePoint(slot.end), slot.stream,
                       std::string(slot.name, ::strnlen(slot.name, sizeof slot.name))});
    }
    looks_ = 0;
  }
  ring.read.store(at, std::memory_order_release);
  return taken;
}

std::uint64_t FlightRecorder::lost_activities() const noexcept {
  if (options_.activities == 0) return 0;
  const auto& ring = *reinterpret_cast<const wire::ActivityRing*>(
      segment_.data() + wire::activities_offset(options_.slots));
  return ring.dropped.load(std::memory_order_relaxed) + unfilled_;
}

FlightRecorder::Dump FlightRecorder::take(std::string reason) {
  Dump dump{std::move(reason),
            SteadyClock::time(),
            world_.load(std::memory_order_relaxed),
            records(),
            health(),
            {}};
  const std::lock_guard lock(mutex_);
  if (whereabouts_) dump.whereabouts = whereabouts_();
  return dump;
}

void FlightRecorder::health_said(const HealthEvent& event) {
  const std::lock_guard lock(mutex_);
  if (health_.size() < kMostHealth) health_.push_back({SteadyClock::time(), event});
}

std::vector<FlightRecorder::Health> FlightRecorder::health(std::size_t known) const {
  const std::lock_guard lock(mutex_);
  const auto first = static_cast<std::ptrdiff_t>(std::min(known, health_.size()));
  return {health_.begin() + first, health_.end()};
}

std::string FlightRecorder::describe(std::uint64_t ticket) const {
  const auto found = record(ticket, reading());
  if (!found) return {};
  std::string text(operation_name(found->opcode));
  if (found->count != 0) text += " of " + std::to_string(found->count) + " elements";
  const auto group = "group " + std::to_string(found->group);
  if (found->collective != 0) {
    text += " (collective " + std::to_string(found->collective) + " of " +
            (found->group != 0 ? group + " in " : "") + "epoch " + std::to_string(found->epoch) +
            ")";
  } else if (found->group != 0) {
    text += " (in " + group + ")";
  }
  const auto peer =
      found->peer >= 0 ? "rank " + std::to_string(found->peer) : std::string("several ranks");
  if (found->way == Way::sends) text += ", which only sends, to " + peer;
  if (found->way == Way::receives) text += ", which only receives, from " + peer;
  if (found->way == Way::both) text += ", with " + peer;
  return text;
}

void FlightRecorder::dump(std::string reason) {
  if (!writer_.joinable()) return;
  auto taken = take(std::move(reason));
  {
    const std::lock_guard lock(mutex_);
    asked_ = std::move(taken);
  }
  bell_.ring();
}

void FlightRecorder::serve() {
  for (;;) {
    pollfd fd{bell_.fd(), POLLIN, 0};
    ::poll(&fd, 1, -1);
    bell_.clear();
    const bool ending = ending_.load();  // first: what was asked for before the end is written
    std::optional<Dump> asked;
    {
      const std::lock_guard lock(mutex_);
      asked = std::exchange(asked_, std::nullopt);
    }
    if (catches_signal_ && signalled.exchange(false)) asked = take("SIGUSR2");
    if (asked) write(*asked);
    if (ending) return;
  }
}

void FlightRecorder::write(const Dump& dump) const {
  namespace fs = std::filesystem;
  const auto path = fs::path(options_.directory) / ("troupe-flight." + options_.job + "." +
                                                    std::to_string(options_.rank) + ".json");
  nlohmann::json json{{"troupe_flight", 1},
                      {"job", options_.job},
                      {"rank", options_.rank},
                      {"size", options_.size},
                      {"host", host_name()},
                      {"pid", ::getpid()},
                      {"reason", dump.reason},
                      {"whereabouts", dump.whereabouts},
                      {"time_ns", dump.time.count()},
                      {"clock_offset_ns", options_.clock_offset_ns},
                      {"epoch", static_cast<std::uint32_t>(dump.world >> 32)},
                      {"collectives", static_cast<std::uint32_t>(dump.world)}};
  auto& said = json["health"] = nlohmann::json::array();
  for (const auto& [time, event] : dump.health) {
    said.push_back({{"time_ns", time.count()},
                    {"kind", to_string(event.kind)},
                    {"text", event.text},
                    {"failing", event.failing}});
  }
  auto& records = json["records"] = nlohmann::json::array();
  for (const auto& record : dump.records) records.push_back(to_json(record));
  std::error_code ignored;  // what is missing shows when the file is opened
  fs::create_directories(options_.directory, ignored);
  // Whoever reads the file while the job runs finds the old dump or the new one, never half of one.
  const auto draft = path.string() + ".part";
  const auto text = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
  std::error_code failed;
  const bool written = write_new(draft, text);
  if (written) fs::rename(draft, path, failed);
  if (!written || failed) {
    log::warn("device", "the flight recorder cannot write {}", path.string());
  } else {
    log::debug("device", "flight recorder: {} ({})", path.string(), dump.reason);
  }
}

}  // namespace troupe::rank_process
