#include "rank/store/state_writer.hpp"

#include <algorithm>
#include <chrono>
#include <string>

#include <fmt/format.h>

#include <troupe/clock.hpp>

#include "common/core/log.hpp"
#include "rank/store/part_file.hpp"

namespace troupe::rank_process {

/// What a rank says of its part.
struct StateWriter::Written {
  std::uint32_t ok = 0;
  std::int32_t part = -1;  ///< -1: it has none
  std::int32_t parts = 0;  ///< of the whole state
  std::uint32_t crc = 0;
  std::uint64_t bytes = 0;
  double stall_seconds = 0, write_seconds = 0;
  StateIo io = StateIo::pinned;
};

std::optional<StateWriter::Outcome> StateWriter::write(std::int64_t step, const Share& share) {
  const auto mine = write_part(share);
  std::vector<Written> all(static_cast<std::size_t>(size_));
  all_gather_(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  const std::uint8_t there = !publishes_ || publish(step, all);
  std::vector<std::uint8_t> outcomes(all.size());
  all_gather_(std::as_bytes(std::span(&there, 1)), std::as_writable_bytes(std::span(outcomes)));
  failed_ = std::find(outcomes.begin(), outcomes.end(), 0) != outcomes.end();
  if (failed_) return std::nullopt;
  Outcome outcome{.bytes = 0, .stall_seconds = 0, .io = StateIo::direct, .write_seconds = 0};
  for (const auto& part : all) {
    // Later in the list outdoes earlier: what was not direct on one rank was not on the whole.
    if (part.part >= 0) outcome.io = std::max(outcome.io, part.io);
    outcome.write_seconds = std::max(outcome.write_seconds, part.write_seconds);
    outcome.bytes += part.bytes;
    outcome.stall_seconds = std::max(outcome.stall_seconds, part.stall_seconds);
  }
  return outcome;
}

std::function<Result<StateIo>(const std::filesystem::path&)> StateWriter::of_image(
    std::span<const std::byte> image) {
  return [image](const std::filesystem::path& path) -> Result<StateIo> {
    if (auto written = write_file(path, image); !written) return written.error();
    return StateIo::pinned;
  };
}

StateWriter::Written StateWriter::write_part(const Share& share) const {
  Written mine{.ok = !share.lost, .stall_seconds = share.stall_seconds};
  if (share.table == nullptr) return mine;
  const auto& table = *share.table;
  const auto begin = SteadyClock::time();
  const auto path = generations_.begin(table.step, table.part);
  auto written = path.ok() ? share.write(*path) : Result<StateIo>(path.error());
  if (written.ok() && share.copy != nullptr) {
    const auto copied =
        write_file(path->parent_path() / Generations::copy_name(share.copy_of), *share.copy);
    if (!copied.ok()) written = copied.error();
  }
  if (!written.ok()) tell(written.error().to_string());
  mine.ok = written.ok(), mine.part = table.part, mine.parts = table.parts;
  mine.crc = table.head_crc, mine.bytes = table.bytes;
  if (written.ok()) mine.io = *written;
  mine.write_seconds = std::chrono::duration<double>(SteadyClock::time() - begin).count();
  return mine;
}

void StateWriter::tell(const std::string& what) const {
  if (again_ || !failed_) log::error("checkpoint", "{}", what);
}

bool StateWriter::publish(std::int64_t step, const std::vector<Written>& written) const {
  Manifest manifest{step, {}};
  Result<void> outcome;
  for (std::size_t rank = 0; rank < written.size(); ++rank) {
    const auto& part = written[rank];
    if (part.ok == 0)
      outcome = Error{Errc::io, 0, "rank " + std::to_string(rank) + " could not write its part"};
    if (part.part < 0) continue;
    manifest.parts.resize(static_cast<std::size_t>(part.parts));
    manifest.parts[static_cast<std::size_t>(part.part)] = {part.bytes, part.crc};
  }
  if (outcome.ok()) outcome = generations_.publish(manifest);
  if (outcome.ok()) return true;
  tell(fmt::format("the state of step {} is not {}: {}", step, place_, outcome.error().message));
  generations_.abandon(step);
  return false;
}

}  // namespace troupe::rank_process
