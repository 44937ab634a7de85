#pragma once

#include <cstddef>
#include <span>

#include <troupe/lib/submit.hpp>

#include "rank/device/device_core.hpp"

/// Commands and ranges that name buffers of this rank as tokens do.
namespace troupe::rank_process {

/// Submits to this rank's own program order, without ever waiting, and not behind the end of the
/// epoch. A failure is the affair of the rank that asked.
class Guest final : public detail::Submitter {
 public:
  Guest(CommandPort& port, std::uint32_t epoch) : port_(&port), epoch_(epoch) {}
  Future<void> submit(const detail::CommandView& command) override;
  Future<void> refuse(Error error) override { return Future<void>(std::move(error)); }
  Result<detail::ResultCell> result_cell(std::size_t bytes) override {
    return port_->result_cell(bytes);
  }

 private:
  CommandPort* port_;
  std::uint32_t epoch_;
};

/// The operand of this rank that a token names.
Result<Operand> named_here(const Operand& named, int rank, const CommandPort& port);

/// Submits a command whose operands are named as tokens name them to this rank's device, in the
/// place of whoever asks. An error: it names what is not there, or cannot be asked for.
Result<Future<void>> submit_named(std::span<const std::byte> record, int rank, DeviceCore& device,
                                  detail::Submitter& submitter);

}  // namespace troupe::rank_process
