#pragma once

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include <troupe/clock.hpp>

#include "keeper/council_message.hpp"

namespace troupe::keeper {

/// A keeper's knowledge of each place of the job, its own among them; see Council.
class Colleagues {
 public:
  struct Options {
    int place = 0;    ///< the own one
    int places = 1;   ///< of the job
    int refuges = 0;  ///< so many of the last places
    std::chrono::nanoseconds silence{};
    std::chrono::nanoseconds wait{};
  };
  struct Peer {
    TimePoint heard{};
    std::optional<TimePoint> closed{};    ///< since when there is no connection
    std::optional<TimePoint> reported{};  ///< its newest Report to this keeper
    RankState state = RankState::none;
    int status = 0;
    std::uint32_t deaths = 0;
    bool promised = false;           ///< in the term that this keeper prepares
    std::uint64_t acknowledged = 0;  ///< the newest roster of the term that it has accepted
    bool releases = false;           ///< it has asked to be rid of its rank
  };

  explicit Colleagues(const Options& options)
      : options_(options), peers_(static_cast<std::size_t>(options.places)) {}

  [[nodiscard]] int place() const noexcept { return options_.place; }
  [[nodiscard]] int places() const noexcept { return options_.places; }
  [[nodiscard]] bool is_refuge(int place) const noexcept {
    return place >= options_.places - options_.refuges;
  }
  [[nodiscard]] Peer& at(int place) { return peers_[static_cast<std::size_t>(place)]; }
  [[nodiscard]] const Peer& at(int place) const { return peers_[static_cast<std::size_t>(place)]; }
  [[nodiscard]] Peer& own() { return at(options_.place); }
  [[nodiscard]] const Peer& own() const { return at(options_.place); }
  [[nodiscard]] std::vector<Peer>& all() noexcept { return peers_; }

  void hear(int place, TimePoint now) {
    at(place).heard = now;
    at(place).closed.reset();
  }
  void hear(int place, const council::Report& said, TimePoint now) {
    auto& its = at(place);
    its.reported = now;
    its.state = said.state;
    its.status = said.status;
    its.deaths = said.deaths;
  }
  void close(int place, TimePoint now) {
    auto& its = at(place);
    if (!its.closed) its.closed = now;
    its.reported.reset();
  }
  /// It is this process that did not run: the others are heard once more before they are judged.
  void was_away(TimePoint now) {
    for (auto& one : peers_) {
      one.heard = now;
      if (one.closed) one.closed = now;
    }
  }
  [[nodiscard]] council::Report report(std::uint64_t term) const {
    return {term, own().state, own().status, own().deaths};
  }

  /// It is taken for lost.
  [[nodiscard]] bool is_dead(const Peer& peer, TimePoint now) const {
    return now - peer.heard >= options_.silence ||
           (peer.closed && now - *peer.closed >= options_.wait);
  }
  /// This place, and those for which the condition holds and which the roster does not call lost,
  /// are more than half of all; or half of them, with place 0.
  template <class Condition>
  [[nodiscard]] bool are_quorum(const Roster& roster, const Condition& counts) const {
    int count = 0;
    bool with_first = false;
    for (int place = 0; place < options_.places; ++place) {
      if (place != options_.place && (!counts(at(place)) || roster.is_lost(place))) continue;
      ++count;
      with_first = with_first || place == 0;
    }
    return 2 * count > options_.places || (2 * count == options_.places && with_first);
  }

 private:
  Options options_;
  std::vector<Peer> peers_;  ///< by place
};

}  // namespace troupe::keeper
