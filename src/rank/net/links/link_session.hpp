#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "rank/net/links/keeper_line.hpp"
#include "rank/net/links/link_exchange.hpp"
#include "rank/net/links/parting.hpp"
#include "rank/net/session.hpp"

namespace troupe::rank_process {

/// The estate that the keeper has.
class KeptEstate final : public Estate {
 public:
  [[nodiscard]] int file() const override { return KeeperLine::estate(); }
  void keep(std::uint32_t region, std::uint64_t bytes, int memory) override {
    KeeperLine::tell({.kind = keeper::FromRank::Kind::slab, .region = region, .bytes = bytes},
                     memory);
  }
  void drop(std::uint32_t region) override {
    KeeperLine::tell({.kind = keeper::FromRank::Kind::drop, .region = region});
  }
  [[nodiscard]] std::vector<KeptSlab> take() override { return KeeperLine::take_slabs(); }
  void have_taken() override { KeeperLine::tell({.kind = keeper::FromRank::Kind::taken}); }
};

/// The respawns of ranks that keepers have started.
class LinkRespawns final : public Respawns {
 public:
  /// The parts of the session that it works on. `everyone`: all ranks.
  struct Parts {
    LinkHub& hub;
    Eras& eras;
    StartLog& start;
    KeeperLine& line;
    const HostGroup& everyone;
  };
  explicit LinkRespawns(const Parts& parts) : parts_(parts) {}

  [[nodiscard]] std::uint32_t incarnation() const override { return parts_.hub.job().incarnation; }
  [[nodiscard]] std::uint32_t own_deaths() const override { return parts_.hub.job().deaths; }
  void expect(int cores) override;
  void expect_no_more() override;
  [[nodiscard]] bool expected() const override { return expected_; }
  void begin_run() override;
  bool learn(int rank, std::uint32_t incarnation) override;
  [[nodiscard]] std::uint32_t incarnation_of(int rank) const override {
    return parts_.hub.peers().incarnation(rank);
  }
  [[nodiscard]] std::uint32_t deaths() const override { return parts_.hub.peers().deaths(); }
  [[nodiscard]] std::optional<std::string> host_of(int rank) const override {
    return parts_.hub.card_of(rank).host.data();
  }
  [[nodiscard]] std::optional<int> node_of(int rank) const override {
    return parts_.hub.card_of(rank).node;
  }
  [[nodiscard]] bool in_refuge() const override { return parts_.hub.job().own.refuge != 0; }
  void release(std::function<void()> kept) override { parts_.line.release(std::move(kept)); }
  void begin_era(std::uint32_t epoch, std::uint32_t deaths) override;
  void set_interruption(std::function<Error()> interruption) override {
    parts_.eras.set_interruption(std::move(interruption));
  }
  [[nodiscard]] std::optional<std::array<std::uint64_t, 4>> secret() const override;
  [[nodiscard]] const std::shared_ptr<Estate>& estate() const override { return estate_; }

 private:
  Parts parts_;
  std::shared_ptr<Estate> estate_ = std::make_shared<KeptEstate>();
  std::atomic<bool> expected_{false};
};

/// A session that speaks TCP: of a rank that a keeper has started. MPI is the keeper's.
class LinkSession final : public Session {
 public:
  static std::unique_ptr<Session> open();
  ~LinkSession() override;

  [[nodiscard]] Result<void> check_threads() const override;
  [[nodiscard]] std::shared_ptr<const HostGroup> make_group(std::vector<int> ranks, GroupTag tag,
                                                            int number) override;
  [[nodiscard]] std::chrono::nanoseconds clock_offset() override;
  [[nodiscard]] std::unique_ptr<Messages> messages(Session::Channel channel) override;
  [[nodiscard]] std::unique_ptr<Bulk> bulk(Bulk::Receiver receiver) override;
  [[nodiscard]] bool all_have_ended(std::chrono::nanoseconds limit) override;

  /// Asks the keeper for the end of all ranks, and waits for it.
  static void abort(int status);

 private:
  explicit LinkSession(keeper::Job job);
  [[nodiscard]] std::unique_ptr<Exchange> exchange(const std::shared_ptr<LinkPost>& post,
                                                   const std::vector<int>& ranks, int own,
                                                   std::uint32_t kind, std::uint32_t number,
                                                   LinkExchange::Renewal renewal,
                                                   LinkExchange::Start start = {}) const;

  LinkHub hub_;
  Eras eras_;
  KeeperLine line_;
  StartLog start_;
  std::shared_ptr<LinkPost> hosts_, background_;
  Links end_;
  Parting ending_;
};

}  // namespace troupe::rank_process
