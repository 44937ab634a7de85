#pragma once

#include <mpi.h>

#include "rank/net/exchange.hpp"

namespace troupe::rank_process {

/// Exchanges over MPI. Whoever waits sleeps, so that others have the cores.
class MpiExchange final : public Exchange {
 public:
  /// Takes the communicator, and frees it at its end if nobody is forsaken then: MPI is still
  /// there.
  explicit MpiExchange(MPI_Comm communicator);
  ~MpiExchange() override;
  MpiExchange(const MpiExchange&) = delete;
  MpiExchange& operator=(const MpiExchange&) = delete;

  void barrier() override;
  void all_gather(std::span<const std::byte> value, std::span<std::byte> all) override;
  std::vector<std::string> gather_text(const std::string& text) override;
  std::vector<std::vector<std::byte>> all_to_all(
      const std::vector<std::vector<std::byte>>& outgoing) override;
  std::vector<std::byte> shift(std::span<const std::byte> outgoing, int to, int from,
                               std::vector<std::byte> incoming) override;

 private:
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  MPI_Comm communicator_;
  std::size_t size_ = 0;
};

}  // namespace troupe::rank_process
