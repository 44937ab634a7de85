#include <troupe/collectives.hpp>
#include <troupe/group.hpp>

#include "rank/world/split.hpp"
#include "rank/world/world_core.hpp"

namespace troupe {

using rank_process::kEmptyGroup, rank_process::kGoneGroup;

namespace {

/// Numbered, so that it shows which of them a rank has not reached.
std::string call_name(rank_process::WorldCore& core, const rank_process::GroupHandle* group,
                      const char* name) {
  const auto of =
      group != nullptr ? " of group " + std::to_string(group->entry().number()) : std::string();
  return name + of + " (host collective " + std::to_string(core.whereabouts().next_host_call()) +
         ")";
}
std::uint32_t number_of(const rank_process::GroupHandle* group) {
  return group != nullptr ? group->entry().number() : wire::kWorld;
}
/// A host collective begins: this rank waits in it while what is returned lives. In a run its ranks
/// meet before, so that a fault finds all of them in it, and they end it, or none. `same`: what has
/// to be the same on all ranks, beside the name.
rank_process::Whereabouts::Wait host_call(rank_process::WorldCore& core,
                                          const rank_process::GroupHandle* group,
                                          const rank_process::HostGroup& ranks, const char* name,
                                          const std::string& same = {}) {
  const auto named = call_name(core, group, name);
  if (core.status().run().is_under_way())
    core.meet({number_of(group), ranks.calls() + 1, ranks.ranks(), named, name + same});
  ranks.count_call();
  core.whereabouts().count_host_call();
  return {core.whereabouts(),
          named,
          rank_process::Awaits::host_call,
          {number_of(group), ranks.calls(), &ranks.ranks()}};
}

/// What the group looks like to the program.
const rank_process::GroupEntry::View& view_of(const rank_process::WorldCore& core,
                                              const rank_process::GroupHandle& group) {
  static const rank_process::GroupEntry::View nobody;
  if (group.entry().gone()) return nobody;
  return group.entry().view(core.members());
}

}  // namespace

int Collectives::rank() const {
  if (!is_group_) return core_->members().rank();
  return group_ ? view_of(*core_, *group_).rank : -1;
}

int Collectives::size() const {
  if (!is_group_) return core_->members().size();
  return group_ ? static_cast<int>(view_of(*core_, *group_).ranks.size()) : 0;
}

int Collectives::job_rank(int rank) const {
  if (rank < 0 || rank >= size())
    throw Exception(
        {Errc::invalid, 0,
         "job_rank: there is no rank " + std::to_string(rank) + " of " + std::to_string(size())});
  const auto& ranks = is_group_ ? view_of(*core_, *group_).ranks : core_->members().ranks();
  return ranks[static_cast<std::size_t>(rank)];
}

Epoch Collectives::epoch() const {
  return core_ ? core_->epoch() : Epoch(0);
}

detail::Scope Collectives::scope() const {
  return {epoch().value, group_ ? group_->entry().number() : 0};
}

detail::Submitter& Collectives::collectives() {
  if (recorder_ != nullptr) return *recorder_;
  if (core_ == nullptr) throw Exception(kEmptyGroup);  // there is nobody to keep account of it
  if (is_group_ && !group_) return core_->refusals().empty_group;
  if (is_group_ && group_->entry().gone()) return core_->refusals().gone_group;
  if (auto* const recorder = rank_process::Recorder::of(core_->device().port())) {
    if (group_) recorder->keep(group_);  // as long as it may run
    return *recorder;
  }
  return core_->collectives();
}

detail::Submitter& Collectives::messages() {
  if (core_ == nullptr) throw Exception(kEmptyGroup);
  if (recorder_ != nullptr) return core_->refusals().messages_in_bundle;
  if (is_group_ && (!group_ || group_->entry().gone())) return collectives();
  if (auto* const recorder = rank_process::Recorder::of(core_->device().port())) {
    if (group_) recorder->keep(group_);
    return *recorder;
  }
  return core_->device().port();
}

Future<void> Collectives::device_barrier(const std::vector<BarrierRange>& ranges) {
  auto& to = recorder_ != nullptr ? messages() : collectives();
  std::vector<TailOperand> tail;
  for (const auto& range : ranges) {
    if (!range.valid())
      return to.refuse_collective({Errc::stale, 0,
                                   "collective.barrier: the mapping of a range is of an epoch that "
                                   "has ended: map again"},
                                  scope());
    if (range.mapping()) to.keep(range.mapping());
    tail.push_back(range.operand());
  }
  return detail::submit(to, collective::Barrier{DType::u8}, tail, scope());
}

std::vector<detail::MappedRange> Collectives::map_ranges(const GpuToken& mine, DType dtype) {
  struct Card {
    GpuToken token;
    std::uint32_t epoch = 0, reserved = 0;
  };
  const auto all = gather_values(Card{mine, epoch().value});
  std::vector<Future<detail::MappedRange>> asked;
  for (const auto& card : all) asked.push_back(core_->tokens().try_map(card.token, dtype));
  std::vector<detail::MappedRange> ranges;
  Result<void> outcome;
  for (const auto& one : asked) {
    const auto& mapped = one.wait();
    if (mapped.ok()) ranges.push_back(*mapped);
    if (!mapped.ok() && outcome.ok()) outcome = mapped.error();
  }
  for (const auto& card : all) {
    if (card.epoch != all.front().epoch)
      outcome = Error{Errc::world_reformed, 0, "map_all: the ranks are in different epochs"};
  }
  agree(outcome);
  return ranges;
}

Future<void> Collectives::mismatch(const char* what, std::int64_t source,
                                   std::int64_t destination) {
  return collectives().refuse_collective(
      {Errc::invalid, 0,
       std::string("collective.") + what + ": a source of " + std::to_string(source) +
           " and a destination of " + std::to_string(destination) + " elements do not fit a " +
           (is_group_ ? "group" : "world") + " of " + std::to_string(size()) + " ranks"},
      scope());
}

bool Collectives::fit(std::int64_t whole, std::span<const std::int64_t> lengths) const {
  std::int64_t sum = 0;
  for (const auto length : lengths) {
    if (length < 0 || length > whole - sum) return false;
    sum += length;
  }
  return sum == whole && std::ssize(lengths) == size();
}

Future<void> Collectives::mismatched_parts(std::int64_t length, std::size_t parts) {
  return messages().refuse({Errc::invalid, 0,
                            "collective.all_to_all: " + std::to_string(parts) +
                                " parts do not make up " + std::to_string(length) +
                                " elements, one for each of " + std::to_string(size()) + " ranks"});
}

const rank_process::HostGroup& Collectives::hosts() const {
  if (!is_group_) return core_->members();
  if (!group_) throw Exception(kEmptyGroup);
  if (group_->entry().gone()) throw Exception(kGoneGroup);
  const auto& view = view_of(*core_, *group_);
  if (view.rank < 0)
    throw Exception({Errc::peer_lost, 0, "a spectator takes no part in host collectives"});
  return group_->entry().hosts(view.ranks);
}

Group Collectives::split(int colour, int key) {
  const auto& parent = hosts();
  return {core_, rank_process::split(*core_, parent,
                                     {colour, key, number_of(group_.get()),
                                      call_name(*core_, group_.get(), "split")})};
}

void Collectives::barrier() {
  const auto& all = hosts();
  const auto wait = host_call(*core_, group_.get(), all, "barrier");
  all.barrier();
}
std::vector<std::string> Collectives::gather_text(const std::string& text) {
  const auto& all = hosts();
  const auto wait = host_call(*core_, group_.get(), all, "gather_text");
  return all.gather_text(text);
}
void Collectives::host_all_gather(std::span<const std::byte> value, std::span<std::byte> all) {
  const auto& ranks = hosts();
  const auto wait = host_call(*core_, group_.get(), ranks, "gather_values",
                              " of " + std::to_string(value.size()) + " bytes");
  ranks.all_gather(value, all);
}
std::vector<std::vector<std::byte>> Collectives::host_all_to_all(
    const std::vector<std::vector<std::byte>>& outgoing) {
  const auto& all = hosts();
  if (std::ssize(outgoing) != all.size())
    throw Exception({Errc::invalid, 0,
                     "exchange_values: " + std::to_string(outgoing.size()) + " parts for " +
                         std::to_string(all.size()) + " ranks"});
  const auto wait = host_call(*core_, group_.get(), all, "exchange_values");
  return all.all_to_all(outgoing);
}

void Collectives::agree(const Result<void>& outcome) {
  const auto& all = hosts();
  const auto wait = host_call(*core_, group_.get(), all, "agree");
  const auto agreed = all.agree(outcome);
  if (!agreed.ok()) throw CollectiveException(agreed.error());
}

}  // namespace troupe
