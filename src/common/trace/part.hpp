#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/clock.hpp>
#include <troupe/error.hpp>

#include "common/ipc/unique_fd.hpp"

/// What one rank writes of a trace: a file that only grows, so that what was written before an
/// abrupt end is there afterwards. One line of JSON says whose it is; frames follow. Times are
/// nanoseconds of the node's own clock (SteadyClock).
namespace troupe::trace {

struct Head {
  std::string job, host;
  int rank = 0, size = 1;
  std::int64_t clock_offset_ns = 0;  ///< added to the node's clock it gives rank 0's, at …
  std::int64_t time_ns = 0;          ///< … this time
};

enum class FrameKind : std::uint32_t { command = 1, name, span, activity, counts, clock };

struct FrameHead {
  FrameKind kind;
  std::uint32_t bytes;  ///< that follow
};

/// One command of the rank. A time of 0: it has not happened.
struct Command {
  std::uint64_t ticket = 0, bytes = 0, count = 0;
  std::int64_t submitted = 0, issued = 0, completed = 0;
  std::uint32_t name = 0;                              ///< number of a name frame before this one
  std::uint32_t epoch = 0, group = 0, collective = 0;  ///< collective 0: it is none
  std::int32_t peer = -1;
  std::uint32_t queue = 0;  ///< of the device host; 0: none
  std::uint32_t outcome = 0;
  std::uint32_t repeated = 0;
};

enum class SpanKind : std::uint32_t {
  recovery = 1,
  phase,
  commit,
  health,    ///< what the GPU said of itself, at one time
  formation  ///< of the world, at the program's start
};

/// Something that took a while, or happened; its text follows.
struct Span {
  std::int64_t begin = 0, end = 0;
  SpanKind kind{};
  std::uint32_t reserved = 0;
};

/// What a GPU did for a command; its name follows.
struct Activity {
  std::uint64_t ticket = 0;
  std::int64_t begin = 0, end = 0;
  std::uint32_t stream = 0, kind = 0;
};

/// How far the part is complete: the newest of these frames counts.
struct Counts {
  std::uint64_t submitted = 0;        ///< commands so far
  std::uint64_t lost = 0;             ///< of these, not in the part
  std::uint64_t lost_activities = 0;  ///< not in the part
  friend bool operator==(const Counts&, const Counts&) = default;
};

/// The clocks of nodes drift: they are compared again at the end.
struct Clock {
  std::int64_t time_ns = 0, offset_ns = 0;
};

/// A time of a node on rank 0's clock, by two comparisons of the clocks.
[[nodiscard]] std::int64_t on_rank0(const Clock& first, const Clock& last, std::int64_t time_ns);

/// Writes a part. Any thread. After an error nothing more is written; error() tells it.
class PartWriter {
 public:
  /// Makes the folder where needed; a file of the user's under that name is emptied. Errors: io;
  /// invalid, there is something else under that name: see ipc::create_trusted().
  static Result<std::unique_ptr<PartWriter>> create(const std::string& path, const Head& head);

  /// The number of a name, which is written when it is new.
  std::uint32_t name(std::string_view text);
  void add(const Command& command);
  void add(const Span& span, std::string_view text);
  void add(const Activity& activity, std::string_view name);
  void add(const Counts& counts);
  void add(const Clock& clock);
  /// What was added is in the file.
  void flush();
  [[nodiscard]] Result<void> error() const;
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  PartWriter(std::string path, UniqueFd file) : path_(std::move(path)), file_(std::move(file)) {}
  void put(FrameKind kind, std::span<const std::byte> fixed, std::string_view text = {});
  void flush_locked();

  const std::string path_;
  mutable std::mutex mutex_;
  UniqueFd file_;
  std::string buffer_;
  std::vector<std::string> names_;
  Result<void> error_;
};

/// Reads a part, a frame at a time. A last frame that is cut off ends it.
class PartReader {
 public:
  /// Errors name the file: io, invalid.
  static Result<PartReader> open(const std::string& path);

  struct Visitor {
    std::function<void(const Command&, const std::string& name)> command;
    std::function<void(const Span&, std::string_view text)> span;
    std::function<void(const Activity&, std::string_view name)> activity;
  };
  /// Calls what the visitor has for each frame, in the order of the file. May be called again.
  /// Errors: io, invalid (a frame that cannot be one).
  Result<void> read(const Visitor& visitor);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] const Head& head() const noexcept { return head_; }
  /// Known once it was read.
  [[nodiscard]] const Counts& counts() const noexcept { return counts_; }
  /// A time of the part on rank 0's clock, by both comparisons of the clocks, once it was read.
  [[nodiscard]] std::int64_t on_rank0(std::int64_t time_ns) const {
    return trace::on_rank0({head_.time_ns, head_.clock_offset_ns}, last_clock_, time_ns);
  }

 private:
  std::string path_;
  Head head_;
  std::int64_t frames_at_ = 0;
  Counts counts_;
  Clock last_clock_;
};

}  // namespace troupe::trace
