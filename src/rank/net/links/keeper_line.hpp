#pragma once

#include <functional>
#include <mutex>
#include <thread>

#include "common/ipc/doorbell.hpp"
#include "common/keeper/job.hpp"
#include "common/links/link_hub.hpp"
#include "rank/net/estate.hpp"

namespace troupe::rank_process {

/// The line to the keeper that has started this process. It is the process's, and outlives every
/// session; while a KeeperLine lives it answers the keeper, on a thread of its own.
class KeeperLine {
 public:
  /// A keeper has started this process.
  [[nodiscard]] static bool is_there();
  /// This process's knowledge at its start; the rank may be Job::kSpare.
  [[nodiscard]] static const keeper::Job& place();
  /// Its knowledge as a rank. A process that waits for a rank is one when this returns, or it ends
  /// here.
  [[nodiscard]] static const keeper::Job& job();
  /// Duplicates of the keeper's gifts.
  [[nodiscard]] static UniqueFd listener();
  [[nodiscard]] static UniqueFd start_log();
  static void tell(const keeper::FromRank& what, int fd = -1);
  /// The legacy of the processes before this one. The file is the process's.
  [[nodiscard]] static std::vector<KeptSlab> take_slabs();
  [[nodiscard]] static int estate();

  /// Tells the hub which ranks have gone to other places.
  explicit KeeperLine(net::LinkHub& hub);
  ~KeeperLine();
  KeeperLine(const KeeperLine&) = delete;
  KeeperLine& operator=(const KeeperLine&) = delete;

  /// Asks for another place. `kept`: there is none; called on the thread of the line. Any thread.
  void release(std::function<void()> kept);

 private:
  void run();

  net::LinkHub* hub_;
  ipc::Doorbell stop_;
  std::mutex mutex_;
  std::function<void()> kept_;
  std::thread thread_;
};

}  // namespace troupe::rank_process
