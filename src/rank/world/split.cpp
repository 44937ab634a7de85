#include "rank/world/split.hpp"

#include <algorithm>
#include <cstring>

#include "rank/world/world_core.hpp"

namespace troupe::rank_process {
namespace {

/// A fault of a device ends the epoch. What looks like one and ends none, such as a connection that
/// breaks while it is made, is tried again after so long.
constexpr auto kNoFault = std::chrono::seconds(1);

/// What a rank says first; the numbers of the groups that it has let go follow.
struct Opening {
  std::int32_t colour, key;
  std::uint32_t next;  ///< the number that the group may have
};

/// What a rank says after a step of forming the group; what it contributes, or the text of its
/// error, follows.
struct Standing {
  std::uint32_t code = 0;
  std::int32_t native = 0;
  std::uint32_t epoch = 0;
  std::uint32_t late = 0;  ///< it has tried for too long
};

template <class Head>
std::string with_head(const Head& head, std::span<const std::byte> rest) {
  std::string text(reinterpret_cast<const char*>(&head), sizeof head);
  return text.append(reinterpret_cast<const char*>(rest.data()), rest.size());
}

template <class Head>
std::pair<Head, std::vector<std::byte>> head_of(const std::string& text) {
  Head head;
  check(text.size() >= sizeof head, "a rank's word on a split is too short");
  std::memcpy(&head, text.data(), sizeof head);
  const auto* const rest = reinterpret_cast<const std::byte*>(text.data()) + sizeof head;
  return {head, {rest, rest + (text.size() - sizeof head)}};
}

bool is_by_fault_of_a_device(Errc code) {
  return code == Errc::device_lost || code == Errc::world_reformed || code == Errc::peer_lost;
}

/// What has ended the world does not go away.
Error ended(const Error& error) {
  return {is_by_fault_of_a_device(error.code) ? Errc::stopped : error.code, error.native,
          error.message};
}

/// One group while it is made.
class Forming {
 public:
  Forming(WorldCore& core, GroupEntry& entry)
      : core_(&core), entry_(&entry), hosts_(&entry.hosts(entry.ranks())) {}

  /// Until it is formed on all ranks alike, or cannot be. In a run a fault is an error.
  Result<void> run() {
    for (;;) {
      late_ = SteadyClock::time() - began_ > core_->options().phase_timeout;
      const auto outcome = once();
      if (outcome.ok() || !is_by_fault_of_a_device(outcome.code()) ||
          core_->status().run().is_under_way() || all_late_)
        return outcome;
      (void)core_->status().epochs().wait_for_end_of(oldest_, kNoFault);
    }
  }

 private:
  using Blobs = std::vector<std::vector<std::byte>>;

  Result<void> once() {
    const auto active = core_->status().epochs().wait_for_one();
    if (active.ok() && active->epoch != epoch_) {
      epoch_ = active->epoch;  // time counts from here
      began_ = SteadyClock::time();
    }
    Result<std::vector<std::byte>> share = std::vector<std::byte>();
    if (!active.ok()) {
      share = active.error();
      if (!core_->status().run().is_under_way()) share = ended(active.error());
    } else if (find_place(active->excluded)) {
      share = contribute();
    }
    auto shares = gather(share);
    if (!shares.ok()) return shares.error();
    Result<std::vector<std::byte>> connected = std::vector<std::byte>();
    if (place_ >= 0) {
      if (const auto outcome = connect(std::move(*shares)); !outcome.ok())
        connected = outcome.error();
    }
    const auto all = gather(connected);
    return all.ok() ? Result<void>() : all.error();
  }

  /// This rank's place among those of the group that are in the world. False: it is not.
  bool find_place(const std::vector<std::int32_t>& excluded) {
    const auto out = [&](int rank) {
      return std::binary_search(excluded.begin(), excluded.end(), rank);
    };
    present_.clear();
    place_ = -1;
    for (std::size_t i = 0; i < entry_->ranks().size(); ++i) {
      const int rank = entry_->ranks()[i];
      if (out(rank)) continue;
      if (rank == core_->mpi().rank()) place_ = static_cast<int>(present_.size());
      present_.push_back(i);
    }
    return place_ >= 0;
  }

  Result<std::vector<std::byte>> contribute() {
    const auto made = std::make_shared<Promise<std::vector<std::byte>>>();
    const auto future = made->future();
    core_->device().tell(device_message::ContributeGroup{entry_->number(), place_, size(), made});
    return future.wait();
  }

  Result<void> connect(Blobs shares) {
    Blobs of_present;
    for (const auto i : present_) of_present.push_back(std::move(shares[i]));
    const auto made = std::make_shared<Promise<void>>();
    const auto future = made->future();
    core_->device().tell(
        device_message::ConnectGroup{entry_->number(), place_, size(),
                                     std::make_shared<const Blobs>(std::move(of_present)), made});
    return future.wait();
  }

  /// What all ranks say; the same error on all of them if any has one, or they are in different
  /// epochs.
  Result<Blobs> gather(const Result<std::vector<std::byte>>& mine) {
    Standing standing{.epoch = epoch_, .late = late_ ? 1u : 0u};
    std::string text;
    if (mine.ok()) {
      text = with_head(standing, *mine);
    } else {
      standing.code = static_cast<std::uint32_t>(mine.code());
      standing.native = mine.error().native;
      text = with_head(standing, std::as_bytes(std::span(mine.error().message)));
    }
    Blobs all;
    std::optional<Error> fault, failure;
    all_late_ = false;
    oldest_ = epoch_;
    for (const auto& said : hosts_->gather_text(text)) {
      auto [head, rest] = head_of<Standing>(said);
      all_late_ = all_late_ || head.late != 0;
      oldest_ = std::min(oldest_, head.epoch);
      if (head.code != 0) {
        const auto code = static_cast<Errc>(head.code);
        Error error{code, head.native,
                    std::string(reinterpret_cast<const char*>(rest.data()), rest.size())};
        auto& of_its_sort = is_by_fault_of_a_device(code) ? fault : failure;
        if (!of_its_sort) of_its_sort = std::move(error);
      } else if (head.epoch != epoch_ && !fault) {
        fault = Error{Errc::world_reformed, 0, "the world is re-formed"};
      }
      all.push_back(std::move(rest));
    }
    // What fails with a fault may do so in many ways; without one it fails again.
    if (fault) return *fault;
    if (failure) return *failure;
    return all;
  }

  [[nodiscard]] std::int32_t size() const { return static_cast<std::int32_t>(present_.size()); }

  WorldCore* core_;
  GroupEntry* entry_;
  const HostGroup* hosts_;
  std::vector<std::size_t> present_;  ///< places in the whole group
  int place_ = -1;
  std::uint32_t epoch_ = 0;
  std::uint32_t oldest_ = 0;  ///< that a rank of the group was in, the last time
  TimePoint began_ = SteadyClock::time();
  bool late_ = false, all_late_ = false;
};

/// Frees what all ranks have let go whose groups are among these.
void free_dropped(WorldCore& core, const HostGroup& parent,
                  const std::vector<std::vector<std::uint32_t>>& dropped) {
  for (const auto& entry : core.groups()->dropped()) {
    const bool by_all = std::all_of(entry->ranks().begin(), entry->ranks().end(), [&](int rank) {
      const auto at = std::find(parent.ranks().begin(), parent.ranks().end(), rank);
      if (at == parent.ranks().end()) return false;
      const auto& its = dropped[static_cast<std::size_t>(at - parent.ranks().begin())];
      return std::find(its.begin(), its.end(), entry->number()) != its.end();
    });
    if (!by_all) continue;
    core.device().tell(device_message::DropGroup{entry->number()});
    core.groups()->erase(entry->number());
    core.groups_changed();
  }
}

}  // namespace

std::shared_ptr<GroupHandle> split(WorldCore& core, const HostGroup& parent,
                                   const SplitChoice& choice) {
  {
    const Whereabouts::Wait wait(core.whereabouts(),
                                 choice.name + " for what was submitted before");
    core.wait_done();
  }
  const auto& table = core.groups();
  std::vector<std::uint32_t> dropped;
  for (const auto& entry : table->dropped()) dropped.push_back(entry->number());
  const Opening mine{choice.colour, choice.key, table->next()};
  std::vector<std::vector<std::uint32_t>> all_dropped;
  std::vector<std::pair<int, int>> chosen;  // key, rank in the job
  std::uint32_t number = 0;
  const auto said = [&] {
    core.meet({choice.communicator, parent.calls() + 1, parent.ranks(), choice.name, "split"});
    parent.count_call();
    core.whereabouts().count_host_call();
    const Whereabouts::Wait wait(core.whereabouts(), choice.name, Awaits::host_call);
    return parent.gather_text(with_head(mine, std::as_bytes(std::span(dropped))));
  }();
  for (std::size_t i = 0; i < said.size(); ++i) {
    const auto [head, rest] = head_of<Opening>(said[i]);
    number = std::max(number, head.next);
    if (head.colour == choice.colour) chosen.emplace_back(head.key, parent.ranks()[i]);
    auto& its = all_dropped.emplace_back(rest.size() / sizeof(std::uint32_t));
    if (!its.empty()) std::memcpy(its.data(), rest.data(), its.size() * sizeof(std::uint32_t));
  }
  free_dropped(core, parent, all_dropped);
  std::stable_sort(chosen.begin(), chosen.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<int> ranks;
  if (choice.colour >= 0) {
    for (const auto& [key, rank] : chosen) ranks.push_back(rank);
  }
  const auto entry = table->add(number, std::move(ranks));
  if (!entry) return nullptr;
  const Whereabouts::Wait wait(core.whereabouts(), choice.name + " to be carried out");
  auto handle = std::make_shared<GroupHandle>(table, entry);  // an exception lets it go
  if (const auto formed = Forming(core, *entry).run(); !formed.ok()) {
    if (is_by_fault_of_a_device(formed.code())) throw Exception(formed.error());
    throw CollectiveException(formed.error());
  }
  table->hold(*entry);
  core.groups_changed();
  return handle;
}

}  // namespace troupe::rank_process
