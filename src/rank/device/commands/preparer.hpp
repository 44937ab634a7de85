#pragma once

#include <troupe/lib/submit.hpp>

namespace troupe::rank_process {

/// Where calls go that only prepare: each command becomes a memory::Prepare. Any thread.
class Preparer final : public detail::Submitter {
 public:
  /// `port` outlives it.
  explicit Preparer(detail::Submitter& port) : port_(port) {}

  Future<void> submit(const detail::CommandView& command) override;
  Future<void> refuse(Error error) override { return port_.refuse(std::move(error)); }
  Result<detail::ResultCell> result_cell(std::size_t bytes) override {
    return port_.result_cell(bytes);
  }

 private:
  detail::Submitter& port_;
};

}  // namespace troupe::rank_process
