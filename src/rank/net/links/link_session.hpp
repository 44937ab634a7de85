#pragma once

#include <memory>

#include "rank/net/links/link_exchange.hpp"
#include "rank/net/links/parting.hpp"
#include "rank/net/session.hpp"

namespace troupe::rank_process {

/// A session that speaks TCP: of a rank that a keeper has started. MPI is the keeper's.
class LinkSession final : public Session {
 public:
  /// Whether a keeper has started this process.
  [[nodiscard]] static bool has_keeper();
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
                                                   std::uint32_t kind, std::uint32_t number) const;

  LinkHub hub_;
  std::shared_ptr<LinkPost> hosts_, background_;
  Links end_;
  Parting ending_;
};

}  // namespace troupe::rank_process
