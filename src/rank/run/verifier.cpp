#include "rank/run/verifier.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "rank/run/corruptions.hpp"

namespace troupe::rank_process {
namespace {

/// Earlier passes that the state of a rank differs from.
struct Differs {
  std::uint8_t from_first = 0, from_second = 0;
};

}  // namespace

struct Verifier::Told {
  std::uint64_t contribution = CollectiveDigests::kNone;  ///< the first that differs
  std::int32_t entry = -1;                                ///< the first that differs; -1: none
  std::int32_t reserved = 0;
  std::uint64_t element = 0, count = 0;
  ShortText first = {}, second = {};  ///< its values
  Place place = {};
};

void Verifier::begin(std::int64_t step) {
  begin_ = step;
  pass_ = Pass::first;
  second_.clear();
  // A run that goes on from another step after a fault verifies the same intervals.
  due_ = every_ > 0 && (step - run_->first_step) / run_->commit_every % every_ == every_ - 1;
  pause();
  if (!due_) return;
  core_->device().run_singly(true);
  if (core_->members().size() > 1) core_->collective_digests().begin(0);
}

void Verifier::go_on() {
  if (pass_ == Pass::second && core_->members().size() > 1) core_->collective_digests().begin(1);
}

Verifier::Outcome Verifier::end(std::int64_t next) {
  next_ = next;
  core_->collective_digests().end();
  switch (pass_) {
    case Pass::first: break;
    case Pass::second: return end_second();
    case Pass::third: return end_third();
  }
  if (auto kept = checkpoint_->set_aside(); !kept) throw Exception(kept.error());
  pass_ = Pass::second;
  return Outcome::again;
}

Verifier::Outcome Verifier::end_second() {
  const auto differs = differs_from_aside();
  const auto all = exchange_->gather(static_cast<std::uint8_t>(differs.has_value()));
  if (std::find(all.begin(), all.end(), 1) == all.end()) {
    core_->status().corruptions().count_verified();
    return Outcome::good;
  }
  Told mine;
  if (core_->members().size() > 1)
    mine.contribution = core_->collective_digests().first_difference();
  if (differs) {
    mine.entry = static_cast<std::int32_t>(differs->index);
    mine.element = differs->how.first;
    mine.count = differs->how.count;
    mine.first.put(differs->how.before);
    mine.second.put(differs->how.after);
  }
  mine.place = place_of(*core_);
  const auto told = exchange_->gather(mine);
  // Ranks with the first contribution that differs; if none does, ranks whose states differ.
  const auto first = std::min_element(told.begin(), told.end(), [](const auto& a, const auto& b) {
                       return a.contribution < b.contribution;
                     })->contribution;
  std::vector<std::size_t> suspects;
  for (std::size_t rank = 0; rank < told.size(); ++rank) {
    if (first != CollectiveDigests::kNone ? told[rank].contribution == first
                                          : told[rank].entry >= 0)
      suspects.push_back(rank);
  }
  const auto with_entry =
      std::find_if(told.begin(), told.end(), [](const Told& rank) { return rank.entry >= 0; });
  const auto& suspect = told[suspects.front()];
  const auto& seen = suspect.entry >= 0 ? suspect : *with_entry;
  found_ = {.first_step = begin_,
            .last_step = next_ - 1,
            .entry = checkpoint_->saved_entries()[static_cast<std::size_t>(seen.entry)].name,
            .element = seen.element,
            .count = seen.count,
            .wrong = seen.first.text,
            .right = seen.second.text};
  if (suspects.size() == 1) {
    found_.rank = core_->members().ranks()[suspects.front()];
    found_.gpu = suspect.place.gpu;
    found_.host = suspect.place.host;
  }
  second_.clear();
  for (std::size_t i = 0; i < checkpoint_->saved_entries().size(); ++i) {
    second_.emplace_back();
    if (!is_constant(i)) second_.back() = checkpoint_->contents(i).take();
  }
  pass_ = Pass::third;
  return Outcome::again;
}

Verifier::Outcome Verifier::end_third() {
  const auto all = exchange_->gather(Differs{.from_first = differs_from_aside().has_value(),
                                             .from_second = differs_from_second().has_value()});
  const auto none = [&](std::uint8_t Differs::*from) {
    return std::none_of(all.begin(), all.end(),
                        [&](const Differs& rank) { return rank.*from != 0; });
  };
  const bool is_first = none(&Differs::from_first), is_second = none(&Differs::from_second);
  remember(!is_first && !is_second, is_first);
  second_.clear();
  if (is_first || is_second) {
    core_->status().corruptions().count_verified();
    return Outcome::good;
  }
  return Outcome::undecided;
}

void Verifier::remember(bool persistent, bool second_is_wrong) {
  auto found = std::exchange(found_, {});
  if (second_is_wrong) std::swap(found.wrong, found.right);
  if (persistent) found.right.clear();
  found.persistent = persistent;
  tell_corruption(*core_, std::move(found));
}

bool Verifier::is_constant(std::size_t entry) const {
  const auto& constants = checkpoint_->constants();
  return std::binary_search(constants.begin(), constants.end(), entry);
}

std::vector<std::size_t> Verifier::other_digests() {
  std::vector<std::size_t> buffers, others;
  const auto& entries = checkpoint_->saved_entries();
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (entries[i].dtype && entries[i].count > 0) buffers.push_back(i);
  if (buffers.empty()) return others;
  const auto needed = static_cast<std::int64_t>(2 * buffers.size());
  if (digests_.length() < needed)
    digests_ = Device(core_->shared_device()).alloc<std::uint64_t>(needed, "digests");
  if (!digests_.valid()) digests_.renew();
  const Device device(core_->shared_device());
  const auto digest = [&](const Operand& range, std::size_t place) {
    const auto slot = digests_.slice(static_cast<std::int64_t>(place), 1);
    (void)detail::submit(device.submitter(), memory::Digest{DType::u8, range, slot.operand()});
  };
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    digest(checkpoint_->range(buffers[i]), 2 * i);
    digest(checkpoint_->range_aside(buffers[i]), 2 * i + 1);
  }
  const auto values = device.download(digests_.slice(0, needed));
  for (std::size_t i = 0; i < buffers.size(); ++i)
    if (values[2 * i] != values[2 * i + 1]) others.push_back(buffers[i]);
  return others;
}

std::optional<Verifier::Entry> Verifier::differs_from_aside() {
  const auto& entries = checkpoint_->saved_entries();
  const auto others = other_digests();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].dtype && std::find(others.begin(), others.end(), i) == others.end()) continue;
    if (is_constant(i)) continue;
    const auto before = checkpoint_->contents_aside(i).take();
    const auto now = checkpoint_->contents(i).take();
    if (auto how = compare(entries[i], before, now, checkpoint_->look(i).verify_tolerance))
      return Entry{i, *how};
  }
  return std::nullopt;
}

std::optional<Verifier::Entry> Verifier::differs_from_second() {
  const auto& entries = checkpoint_->saved_entries();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (is_constant(i)) continue;
    const auto now = checkpoint_->contents(i).take();
    if (auto how = compare(entries[i], second_[i], now, checkpoint_->look(i).verify_tolerance))
      return Entry{i, *how};
  }
  return std::nullopt;
}

}  // namespace troupe::rank_process
