#pragma once

#include <memory>

#include "rank/net/session.hpp"

namespace troupe::rank_process {

/// A session that speaks MPI. Its communicators are duplicates of MPI_COMM_WORLD.
class MpiSession final : public Session {
 public:
  static std::unique_ptr<Session> open(int* argc, char*** argv);
  ~MpiSession() override;

  [[nodiscard]] Result<void> check_threads() const override;
  [[nodiscard]] std::shared_ptr<const HostGroup> make_group(std::vector<int> ranks, GroupTag tag,
                                                            int number) override;
  [[nodiscard]] std::chrono::nanoseconds clock_offset() override;
  [[nodiscard]] std::unique_ptr<Messages> messages(Channel channel) override;
  [[nodiscard]] std::unique_ptr<Bulk> bulk(Bulk::Receiver receiver) override;
  [[nodiscard]] bool all_have_ended(std::chrono::nanoseconds limit) override;

  [[nodiscard]] static bool is_initialised();
  static void abort(int status);
  [[nodiscard]] static std::string library_version();

  /// For what speaks MPI itself, in this folder alone.
  struct Communicators;

 private:
  MpiSession() = default;
  void finalise() const;

  int provided_threads_ = 0;
  bool finalise_ = false;
  std::unique_ptr<Communicators> communicators_;
};

}  // namespace troupe::rank_process
