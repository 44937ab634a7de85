#include <troupe/trace.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "common/ipc/file_size_signal.hpp"
#include "common/ipc/trusted_file.hpp"
#include "common/trace/part.hpp"
#include "common/trace/tracks.hpp"

// Two passes over the parts: the arrows between the ranks of a collective begin at the rank that
// was first and end at the one that was last, which is known once all ranks were read. What is kept
// in memory is one entry for each collective, and the recoveries and commits.

namespace troupe {
namespace {

using namespace trace;

constexpr int kWorldProcess = 1, kFirstRankProcess = 10;
constexpr int kProgramThread = 1, kDeviceHostThread = 2, kRecoveryThread = 3, kCommitThread = 4,
              kHealthThread = 5;
constexpr std::size_t kWrite = 1u << 20;

std::string quoted(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// One collective, on all of its ranks.
struct Key {
  std::uint32_t epoch = 0, group = 0, number = 0;
  friend bool operator==(const Key&, const Key&) = default;
};
struct KeyHash {
  std::size_t operator()(const Key& key) const noexcept {
    const auto high = std::uint64_t{key.epoch} << 32 | key.number;
    return std::hash<std::uint64_t>()(high * 0x9e3779b97f4a7c15u + key.group);
  }
};
Key key_of(const Command& command) {
  return {command.epoch, command.group, command.collective};
}
struct Place {
  std::int64_t time = 0;
  int rank = 0;
  friend auto operator<=>(const Place&, const Place&) = default;
};
struct Meeting {
  Place first, last;
  std::uint64_t id = 0;
};
using Meetings = std::unordered_map<Key, Meeting, KeyHash>;

bool has_run(const Command& command) {
  return command.issued != 0 && command.completed != 0;
}

/// The same on rank 0's clock.
Command shifted(const PartReader& part, Command command) {
  for (auto* time : {&command.submitted, &command.issued, &command.completed})
    if (*time != 0) *time = part.on_rank0(*time);
  return command;
}

/// Writes the events, as one JSON object.
class Events {
 public:
  Events(std::ofstream& file, std::int64_t origin) : file_(&file), origin_(origin) {
    text_ = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  }

  void process(int pid, std::string_view name) {
    metadata(pid, 0, "process_name", quoted(name));
    event(
        "{{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":{},\"args\":{{\"sort_index\":{}}}}"
        "}",
        pid, pid);
  }
  void thread(int pid, int tid, std::string_view name) {
    metadata(pid, tid, "thread_name", quoted(name));
    event(
        "{{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":{},\"tid\":{},"
        "\"args\":{{\"sort_index\":{}}}}}",
        pid, tid, tid);
  }
  void slice(int pid, int tid, std::string_view category, std::string_view name, std::int64_t begin,
             std::int64_t end, std::string_view args) {
    event(
        "{{\"ph\":\"X\",\"cat\":\"{}\",\"name\":{},\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{},"
        "\"args\":{{{}}}}}",
        category, quoted(name), pid, tid, stamp(begin - origin_), stamp(end - begin), args);
  }
  void instant(int pid, int tid, std::string_view category, std::string_view name,
               std::int64_t time, std::string_view args) {
    event(
        "{{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"{}\",\"name\":{},\"pid\":{},\"tid\":{},\"ts\":{},"
        "\"args\":{{{}}}}}",
        category, quoted(name), pid, tid, stamp(time - origin_), args);
  }
  /// Something that may overlap with others of its kind.
  void overlapping(int pid, std::string_view category, std::string_view name, std::uint64_t id,
                   std::int64_t begin, std::int64_t end) {
    for (const auto& [phase, time] : {std::pair{'b', begin}, std::pair{'e', end}}) {
      event(
          "{{\"ph\":\"{}\",\"cat\":\"{}\",\"name\":{},\"pid\":{},\"tid\":{},"
          "\"id2\":{{\"local\":\"{:#x}\"}},\"ts\":{}}}",
          phase, category, quoted(name), pid, kProgramThread, id, stamp(time - origin_));
    }
  }
  void arrow(char phase, int pid, int tid, std::uint64_t id, std::int64_t time) {
    event(
        "{{\"ph\":\"{}\",\"bp\":\"e\",\"cat\":\"collective\",\"name\":\"collective\",\"id\":{},"
        "\"pid\":{},\"tid\":{},\"ts\":{}}}",
        phase, id, pid, tid, stamp(time - origin_));
  }
  void end(const TraceSummary& summary) {
    text_ += fmt::format(
        "\n],\"otherData\":{{\"ranks\":{},\"commands\":{},\"lost\":{},\"recoveries\":{}}}}}\n",
        summary.ranks, summary.commands, summary.lost, summary.recoveries);
    write();
  }

 private:
  /// Microseconds.
  static std::string stamp(std::int64_t ns) {
    return fmt::format("{}.{:03}", ns / 1000, ns % 1000);
  }

  void metadata(int pid, int tid, std::string_view what, std::string_view name) {
    event("{{\"ph\":\"M\",\"name\":\"{}\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":{}}}}}", what,
          pid, tid, name);
  }
  template <class... Args>
  void event(fmt::format_string<Args...> format, Args&&... args) {
    if (std::exchange(any_, true)) text_ += ",\n";
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    if (text_.size() >= kWrite) write();
  }
  void write() {
    file_->write(text_.data(), static_cast<std::streamsize>(text_.size()));
    text_.clear();
  }

  std::ofstream* file_;
  std::int64_t origin_;
  std::string text_;
  bool any_ = false;
};

/// What the first pass finds.
struct Survey {
  std::int64_t origin = std::numeric_limits<std::int64_t>::max();
  Meetings meetings;
  TraceSummary summary;

  void see(std::int64_t time) {
    if (time != 0) origin = std::min(origin, time);
  }
};

Result<void> survey(PartReader& part, Survey& found) {
  // What it says of the clocks and of what is lost stands at its end.
  if (auto read = part.read({}); !read) return read;
  found.see(part.on_rank0(part.head().time_ns));
  Tracks tracks;
  auto read = part.read(
      {.command =
           [&](const Command& raw, const std::string&) {
             const auto command = shifted(part, raw);
             ++found.summary.commands;
             found.see(command.submitted);
             if (!has_run(command)) return;
             const auto place = tracks.place(command.queue, command.issued, command.completed);
             if (command.collective == 0) return;
             const Place at{place.begin, part.head().rank};
             const auto [it, fresh] = found.meetings.try_emplace(key_of(command), Meeting{at, at});
             it->second.first = std::min(it->second.first, at);
             it->second.last = std::max(it->second.last, at);
             if (fresh) it->second.id = found.meetings.size();
           },
       .span =
           [&](const Span& span, std::string_view) {
             found.see(part.on_rank0(span.begin));
             if (span.kind == SpanKind::recovery && part.head().rank == 0)
               ++found.summary.recoveries;
           },
       .activity = [&](const Activity& activity,
                       std::string_view) { found.see(part.on_rank0(activity.begin)); }});
  found.summary.lost += part.counts().lost + part.counts().lost_activities;
  return read;
}

/// The events of one rank.
class RankWriter {
 public:
  RankWriter(Events& events, PartReader& part, Survey& found)
      : events_(&events), part_(&part), found_(&found), pid_(kFirstRankProcess + part.head().rank) {
    const auto& counts = part.counts();
    auto name = fmt::format("rank {} ({})", part.head().rank, part.head().host);
    if (counts.lost + counts.lost_activities != 0)
      name += fmt::format(", {} commands and {} GPU activities are missing", counts.lost,
                          counts.lost_activities);
    events.process(pid_, name);
    events.thread(pid_, kProgramThread, "program: submissions");
    events.thread(pid_, kDeviceHostThread, "device host: issued, and never done");
    for (const int pid : {pid_, part.head().rank == 0 ? kWorldProcess : pid_}) {
      events.thread(pid, kRecoveryThread, "recoveries");
      events.thread(pid, kCommitThread, "commits");
    }
  }

  Result<void> write() {
    auto read = part_->read(
        {.command = [this](const Command& raw,
                           const std::string& name) { write(shifted(*part_, raw), name); },
         .span = [this](const Span& span,
                        std::string_view text) { spans_.emplace_back(span, text); },
         .activity = [this](const Activity& activity,
                            std::string_view name) { write(activity, name); }});
    if (!read) return read;
    // What holds others comes before them.
    std::stable_sort(spans_.begin(), spans_.end(), [](const auto& a, const auto& b) {
      return std::pair(a.first.begin, -a.first.end) < std::pair(b.first.begin, -b.first.end);
    });
    for (const auto& [span, text] : spans_) write(span, text);
    return {};
  }

 private:
  void write(const Command& command, const std::string& name) {
    auto args = fmt::format("\"ticket\":{},\"bytes\":{}", command.ticket, command.bytes);
    if (command.count != 0) args += fmt::format(",\"count\":{}", command.count);
    if (command.peer >= 0) args += fmt::format(",\"peer\":{}", command.peer);
    if (command.epoch != 0) args += fmt::format(",\"epoch\":{}", command.epoch);
    if (command.group != 0) args += fmt::format(",\"group\":{}", command.group);
    if (command.collective != 0) args += fmt::format(",\"collective\":{}", command.collective);
    if (command.repeated != 0) args += ",\"repeated\":true";
    if (command.outcome != 0)
      args += fmt::format(",\"outcome\":\"{}\"", to_string(static_cast<Errc>(command.outcome)));
    events_->instant(pid_, kProgramThread, "submit", name, command.submitted, args);
    if (command.issued == 0) return;
    events_->overlapping(pid_, "queue", name, command.ticket, command.submitted, command.issued);
    if (command.completed == 0)
      return events_->instant(pid_, kDeviceHostThread, "lost", name, command.issued, args);
    const auto place = queues_.place(command.queue, command.issued, command.completed);
    const auto tid = thread_of(queue_threads_, {command.queue, place.lane}, [&] {
      const auto library = name.substr(0, name.find('.'));
      return command.queue == 0 ? std::string("device: without a queue")
                                : fmt::format("device: {} (queue {})", library, command.queue);
    });
    events_->slice(pid_, tid, "execute", name, place.begin, command.completed, args);
    if (command.collective != 0) write_arrow(command, tid, place.begin);
  }

  void write_arrow(const Command& command, int tid, std::int64_t begin) {
    const auto& meeting = found_->meetings.at(key_of(command));
    if (meeting.first == meeting.last) return;  // no other rank has it
    const Place at{begin, part_->head().rank};
    const char phase = at == meeting.first ? 's' : at == meeting.last ? 'f' : 't';
    events_->arrow(phase, pid_, tid, meeting.id, begin);
    if (phase != 's') ++found_->summary.arrows;
  }

  void write(const Activity& activity, std::string_view name) {
    const auto begin = part_->on_rank0(activity.begin), end = part_->on_rank0(activity.end);
    const auto lane = streams_.place_apart(activity.stream, begin, end);
    const auto tid = thread_of(stream_threads_, {activity.stream, lane},
                               [&] { return fmt::format("GPU: stream {}", activity.stream); });
    events_->slice(pid_, tid, "gpu", name, begin, end,
                   fmt::format("\"ticket\":{}", activity.ticket));
  }

  void write(const Span& span, const std::string& text) {
    if (span.kind == SpanKind::health) return write_health(part_->on_rank0(span.begin), text);
    const auto tid = span.kind == SpanKind::commit ? kCommitThread : kRecoveryThread;
    const std::string_view category = span.kind == SpanKind::commit      ? "commit"
                                      : span.kind == SpanKind::phase     ? "phase"
                                      : span.kind == SpanKind::formation ? "formation"
                                                                         : "recovery";
    const auto begin = part_->on_rank0(span.begin), end = part_->on_rank0(span.end);
    events_->slice(pid_, tid, category, text, begin, end, "");
    if (part_->head().rank == 0) events_->slice(kWorldProcess, tid, category, text, begin, end, "");
  }

  /// The track is there if the GPU has said anything.
  void write_health(std::int64_t time, const std::string& text) {
    if (!std::exchange(has_health_, true))
      events_->thread(pid_, kHealthThread, "health of the GPU");
    events_->instant(pid_, kHealthThread, "health", text, time, "");
  }

  using Threads = std::map<std::pair<std::uint32_t, std::size_t>, int>;
  template <class Name>
  int thread_of(Threads& threads, std::pair<std::uint32_t, std::size_t> which, Name&& name) {
    const auto [it, fresh] = threads.try_emplace(which, next_thread_);
    if (fresh) events_->thread(pid_, next_thread_++, name());
    return it->second;
  }

  Events* events_;
  PartReader* part_;
  Survey* found_;
  int pid_;
  int next_thread_ = 10;
  bool has_health_ = false;
  Tracks queues_, streams_;
  Threads queue_threads_, stream_threads_;
  std::vector<std::pair<Span, std::string>> spans_;
};

Result<std::vector<PartReader>> open_all(const std::vector<std::string>& files) {
  std::vector<PartReader> parts;
  for (const auto& file : files) {
    auto part = PartReader::open(file);
    if (!part) return part.error();
    parts.push_back(std::move(*part));
  }
  std::sort(parts.begin(), parts.end(),
            [](const PartReader& a, const PartReader& b) { return a.head().rank < b.head().rank; });
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const auto &one = parts[i - 1], &other = parts[i];
    const auto both = one.path() + " and " + other.path();
    if (one.head().job != other.head().job || one.head().size != other.head().size)
      return Error{Errc::invalid, 0, both + " are of different jobs"};
    if (one.head().rank == other.head().rank)
      return Error{Errc::invalid, 0, both + " are both of rank " + std::to_string(one.head().rank)};
  }
  return parts;
}

}  // namespace

Result<TraceSummary> merge_trace(const std::vector<std::string>& files, const std::string& file) {
  auto parts = open_all(files);
  if (!parts) return parts.error();
  Survey found;
  found.summary.ranks = static_cast<int>(parts->size());
  for (auto& part : *parts)
    if (auto seen = survey(part, found); !seen) return seen.error();
  const ipc::NoFileSizeSignal held_back;
  // Whoever opens the file finds all of the trace or none of it.
  const auto draft = file + ".draft";
  const auto opened = ipc::create_trusted(draft, 0666);
  if (!opened && opened.code() != Errc::io) return opened.error();
  if (!opened) return Error{Errc::io, opened.error().native, file + ": cannot be written"};
  std::ofstream stream("/proc/self/fd/" + std::to_string(opened->get()), std::ios::binary);
  if (!stream) return Error{Errc::io, errno, file + ": cannot be written"};
  Events events(stream, found.origin);
  events.process(kWorldProcess, "world");
  for (auto& part : *parts)
    if (auto written = RankWriter(events, part, found).write(); !written) return written.error();
  events.end(found.summary);
  stream.close();
  std::error_code failed;
  if (stream) std::filesystem::rename(draft, file, failed);
  if (!stream || failed) {
    std::filesystem::remove(draft, failed);
    return Error{Errc::io, 0, file + ": cannot be written"};
  }
  return found.summary;
}

}  // namespace troupe
