#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

namespace troupe::host {

/// Where an engine tells what the device has done: for which command, when (nanoseconds of
/// SteadyClock), on which stream. From any thread.
using ActivitySink = std::function<void(std::uint64_t ticket, std::int64_t begin, std::int64_t end,
                                        std::uint32_t stream, std::string_view name)>;

/// Makes the engine's work visible: to the sink, and to a tool that was attached to the process.
class Tracing {
 public:
  virtual ~Tracing() = default;
  Tracing() = default;
  Tracing(const Tracing&) = delete;
  Tracing& operator=(const Tracing&) = delete;

  /// What this thread gives to the engine until end() is part of the command with this ticket.
  virtual void begin(std::uint64_t ticket, std::string_view operation) noexcept = 0;
  virtual void end() noexcept = 0;
};

/// Without a sink only for tools. nullptr: nobody would see anything. The engine is there, and
/// outlives it.
std::unique_ptr<Tracing> make_tracing(ActivitySink sink);

/// A command while it is given to the engine; `tracing` may be nullptr.
class TracedCommand {
 public:
  TracedCommand(Tracing* tracing, std::uint64_t ticket, std::string_view operation) noexcept
      : tracing_(tracing) {
    if (tracing_ != nullptr) [[unlikely]]
      tracing_->begin(ticket, operation);
  }
  ~TracedCommand() {
    if (tracing_ != nullptr) [[unlikely]]
      tracing_->end();
  }
  TracedCommand(const TracedCommand&) = delete;
  TracedCommand& operator=(const TracedCommand&) = delete;

 private:
  Tracing* tracing_;
};

}  // namespace troupe::host
