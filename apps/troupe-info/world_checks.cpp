#include "world_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace troupe::info {
namespace {

constexpr std::int64_t kElements = 1 << 18;  // 2 MiB: several pieces of every algorithm
constexpr std::int64_t kFetched = 1024;

/// Whether all ranks say so. All ranks call it.
bool all_say(const LaunchedJob& job, bool yes) {
  const auto said = job.gather_text(yes ? "yes" : "no");
  return std::count(said.begin(), said.end(), "yes") == job.size();
}

/// What rank r has in element i. Sums over all ranks are exact in f64.
double value_at(int rank, std::int64_t i) {
  return static_cast<double>(rank + 1) * static_cast<double>(i % 1009 + 1);
}

/// What is wrong with a result, in words.
template <class Expected>
std::string compare(const std::vector<double>& got, Expected expected) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double right = expected(static_cast<std::int64_t>(i));
    if (got[i] != right)
      return fmt::format("element {} of {} is {}, not {}", i, got.size(), got[i], right);
  }
  return {};
}

std::vector<double> values_of(int rank, std::int64_t count) {
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = value_at(rank, i);
  return values;
}

/// A buffer with this rank's values.
Result<GpuRef<double>> filled(Device& device, int rank, std::int64_t count) {
  auto buffer = device.try_alloc<double>(count);
  if (!buffer.ok()) return buffer;
  const auto values = values_of(rank, count);
  const auto uploaded = device.upload(std::span(values), *buffer);
  if (const auto& outcome = uploaded.wait(); !outcome.ok()) return outcome.error();
  return buffer;
}

Result<std::vector<double>> read(Device& device, const GpuRef<double>& buffer) {
  try {
    return device.download(buffer);
  } catch (const Exception& e) {
    return e.error();
  }
}

template <class T>
std::string error_of(const Result<T>& result) {
  return result.ok() ? "" : result.error().to_string();
}

}  // namespace

std::string try_all_reduce(Runtime& runtime, const LaunchedJob& job) {
  auto& device = runtime.device();
  const auto buffer = filled(device, job.rank(), kElements);
  if (!all_say(job, buffer.ok())) return error_of(buffer);
  const auto reduced = runtime.world().all_reduce(*buffer, ReduceOp::sum);
  if (const auto& outcome = reduced.wait(); !outcome.ok()) return outcome.error().to_string();
  const auto got = read(device, *buffer);
  if (!got.ok()) return error_of(got);
  const double ranks = job.size();
  return compare(*got,
                 [ranks](std::int64_t i) { return ranks * (ranks + 1) / 2 * value_at(0, i); });
}

std::string try_peers(Runtime& runtime, const LaunchedJob& job) {
  auto& device = runtime.device();
  auto& world = runtime.world();
  const auto active = world.wait_active();  // whatever the check before has come to
  const auto buffer = filled(device, job.rank(), kFetched);
  const bool ready = all_say(job, active.ok() && buffer.ok());
  if (!ready) return active.ok() ? error_of(buffer) : error_of(active);
  const auto token = buffer->token();
  const auto tokens = job.gather_text({reinterpret_cast<const char*>(&token), sizeof token});
  const auto nodes = job.gather_text(std::to_string(job.node()));
  std::string wrong;
  for (int rank = 0; rank < job.size() && wrong.empty(); ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    if (rank == job.rank() || nodes[r] != std::to_string(job.node())) continue;
    GpuToken theirs;
    std::memcpy(&theirs, tokens[r].data(), sizeof theirs);
    const auto fetched = world.fetch<double>(theirs);
    const auto& outcome = fetched.wait();
    const auto got =
        outcome.ok() ? read(device, *outcome) : Result<std::vector<double>>(outcome.error());
    wrong = got.ok() ? compare(*got, [rank](std::int64_t i) { return value_at(rank, i); })
                     : error_of(got);
    if (!wrong.empty()) wrong = fmt::format("from rank {}: {}", rank, wrong);
  }
  (void)all_say(job, true);  // nobody needs this rank's buffer any more
  return wrong;
}

std::string look_at_health(const Device& device) {
  const auto health = device.health();
  if (!health.ok()) return {};
  std::string text;
  const auto add = [&text](bool speaks_against, const std::string& what) {
    if (speaks_against) text += (text.empty() ? "" : ", ") + what;
  };
  const auto action = health->recovery_action.value_or("none");
  add(action != "none", "the driver wants: " + action);
  add(health->remapping_failed.value_or(false), "a row of memory cannot be remapped");
  add(health->remapping_pending.value_or(false), "a row of memory waits for a reset");
  add(health->uncorrected_errors.value_or(0) > 0,
      fmt::format("{} uncorrected errors of memory", health->uncorrected_errors.value_or(0)));
  for (const auto& reason : health->slowed_by.value_or(std::vector<std::string>()))
    add(reason != "power cap", "slowed by: " + reason);
  return text;
}

}  // namespace troupe::info
