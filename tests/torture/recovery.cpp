#include <fmt/format.h>

#include <algorithm>

#include "catalogue/values.hpp"
#include "runner.hpp"

// After faults: the world works again, and what must be there is there.

namespace troupe::torture {

using namespace std::chrono_literals;

/// Whether an all_reduce on all ranks tells that they are in one epoch and all devices work.
bool Runner::settled_now() {
  const auto epoch = world_.wait_active();
  if (epoch.code() == Errc::budget_exhausted) throw CollectiveException(epoch.error());
  if (!epoch.ok()) throw Finding("the world has ended: " + epoch.error().to_string());
  const auto epochs = world_.gather_values(epoch->value);
  for (const auto other : epochs) {
    if (other != epochs[0]) return false;
  }
  if (!meeting_.valid()) meeting_.renew();
  device_.fill(meeting_, 1.0 + rank_);
  const auto reduced = world_.all_reduce(meeting_, ReduceOp::sum);
  wait(reduced, "an all_reduce after faults");
  bool works = reduced.wait().ok();
  try {
    const auto values = device_.download(meeting_);
    if (works && values[3] != ranks_ * (ranks_ + 1) / 2.0)
      throw Finding("WRONG CONTENTS: an all_reduce after faults");
  } catch (const Exception& e) {
    if (!is_of_a_fault(e.code()))
      throw Finding(std::string("a download after faults: ") + e.what());
    works = false;
  }
  return !any_rank(!works);
}

void Runner::settle() {
  account_.at(account_.where() + ", settling");
  const auto end = Clock::now() + conduct_.deadline;
  while (!settled_now()) {
    if (any_rank(Clock::now() > end)) throw Finding("the world does not come back after faults");
    std::this_thread::sleep_for(2ms);
    account_.advance();
  }
}

/// Only what was ordered may have been overcome; and a device host that a busy machine kept silent
/// for too long.
void Runner::check_recoveries() {
  if (program_->stormy) return;
  const auto list = world_.recoveries();
  bool by_clock = list.size() > known_;
  for (std::size_t i = known_; i < list.size(); ++i) by_clock = by_clock && list[i].kind == "hang";
  if (by_clock) {
    stormy_ = true;
    return;
  }
  if (any_rank(suspicious_)) {
    const std::lock_guard lock(mutex_);
    if (suspicious_)
      throw Finding(
          fmt::format("without any fault it fails: {} (recoveries:{})", suspicion_, recoveries()));
    std::this_thread::sleep_for(5s);  // another rank has more to say
  }
}

std::string Runner::lost_buffers() {
  std::string lost(program_->buffers.size(), kThere);
  for (int b = 0; b < static_cast<int>(program_->buffers.size()); ++b) {
    if (!hands_->valid(b) || oracle_->unsure(rank_, b)) lost[static_cast<std::size_t>(b)] = kLost;
  }
  return lost;
}

std::string Runner::recoveries() const {
  std::string text;
  const auto list = world_.recoveries();
  for (std::size_t i = std::min(known_, list.size()); i < list.size(); ++i)
    text += fmt::format(" {} of rank {}", list[i].kind, list[i].rank);
  return text.empty() ? " none" : text;
}

/// All that is valid is what the oracle says; what is not may be so. False: a fault came between.
bool Runner::try_verify() {
  for (int b = 0; b < static_cast<int>(program_->buffers.size()); ++b) {
    const auto& spec = program_->buffers[static_cast<std::size_t>(b)];
    if (!hands_->valid(b)) {
      if (!oracle_->may_be_stale(rank_, b))
        throw Finding(
            fmt::format("buffer {} of rank {} ({} {}) is stale although nothing that "
                        "wrote it has failed",
                        b, rank_, spec.length, troupe::to_string(spec.dtype)));
      continue;
    }
    if (oracle_->must_be_stale(rank_, b))
      throw Finding(fmt::format(
          "buffer {} of rank {} ({} {}) is valid although an operation that wrote it has failed "
          "because of its data",
          b, rank_, spec.length, troupe::to_string(spec.dtype)));
    if (oracle_->unsure(rank_, b)) continue;
    std::vector<std::byte> bytes;
    try {
      bytes = account_.seen(hands_->download({rank_, b, 0, spec.length}));
    } catch (const Exception& e) {
      if (!is_of_a_fault(e.code()))
        throw Finding(fmt::format("buffer {} of rank {} cannot be read: {}", b, rank_, e.what()));
      const std::lock_guard lock(mutex_);
      if (!suspicious_.exchange(true))
        suspicion_ = fmt::format("download of buffer {}: {}", b, e.what());
      return false;
    }
    const auto& expected = oracle_->contents(rank_, b);
    const auto difference = first_difference(spec, bytes, expected);
    if (difference < 0) continue;
    const auto size = size_of(spec.dtype);
    std::int64_t wrong = 0;
    for (std::size_t i = 0; i + size <= bytes.size(); i += size)
      wrong += std::memcmp(bytes.data() + i, expected.data() + i, size) != 0 ? 1 : 0;
    throw Finding(
        fmt::format("WRONG CONTENTS: buffer {} of rank {} ({} {}): {} elements are wrong, the "
                    "first: {}; recoveries:{}",
                    b, rank_, spec.length, troupe::to_string(spec.dtype), wrong,
                    in_words(spec, difference, bytes, expected), recoveries()));
  }
  return true;
}

/// False: a fault came between.
bool Runner::try_write(const std::string& lost) {
  try {
    for (int b = 0; b < static_cast<int>(lost.size()); ++b) {
      if (lost[static_cast<std::size_t>(b)] != kLost) continue;
      if (!hands_->valid(b)) hands_->renew(b);
      hands_->upload(b, Oracle::initial(*program_, rank_, b, version_)).get();
    }
  } catch (const Exception& e) {
    if (!is_of_a_fault(e.code())) throw Finding(std::string("after a loss: ") + e.what());
    return false;
  }
  return true;
}

void Runner::write_anew(const std::string& lost) {
  ++version_;
  const auto end = Clock::now() + 2 * conduct_.deadline;
  const auto all = world_.gather_text(lost);
  while (any_rank(!try_write(lost))) {
    settle();
    check_recoveries();
    if (any_rank(Clock::now() > end)) throw Finding("lost buffers cannot be written anew");
  }
  for (int r = 0; r < ranks_; ++r) {
    for (int b = 0; b < static_cast<int>(lost.size()); ++b) {
      if (all[static_cast<std::size_t>(r)][static_cast<std::size_t>(b)] == kLost)
        oracle_->reset(r, b, version_);
      else
        oracle_->forgive(r, b);
    }
  }
}

void Runner::verify() {
  const auto end = Clock::now() + 2 * conduct_.deadline;
  // A fault may show late, and strike again what is being looked at.
  while (any_rank(!try_verify())) {
    settle();
    check_recoveries();
    if (any_rank(Clock::now() > end)) throw Finding("the contents cannot be read");
  }
  write_anew(lost_buffers());
}

}  // namespace troupe::torture
