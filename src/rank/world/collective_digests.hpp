#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include <troupe/device.hpp>

namespace troupe::rank_process {

/// Notes what this rank gives to collectives: a digest of each thing, in the order of the calls, in
/// device memory. Errors pass from rank to rank by collectives alone; so of two passes over the
/// same steps the first contribution that differs, over all ranks, tells where an error has come
/// from.
///
/// It stands before what takes the program's collectives. Any thread submits; begin(), end() and
/// the rest belong to the program's thread.
class CollectiveDigests final : public detail::Submitter {
 public:
  static constexpr std::uint64_t kMost = 16384;  ///< noted of a pass; later ones are not
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  /// `to`: what takes the collectives. Both outlive this.
  CollectiveDigests(Device device, detail::Submitter& to) : device_(std::move(device)), to_(&to) {}

  /// The calls that follow are those of the first or the second pass (0, 1).
  void begin(int pass);
  void end() noexcept { noting_ = false; }
  [[nodiscard]] bool notes() const noexcept { return noting_; }
  /// The number of the first contribution that the passes have made differently; kNone: there is
  /// none. Waits for the device. Throws Exception.
  [[nodiscard]] std::uint64_t first_difference();

  Future<void> submit(const detail::CommandView& command) override;
  Future<void> refuse(Error error) override { return to_->refuse(std::move(error)); }
  Future<void> refuse_collective(Error error, const detail::Scope& scope) override {
    return to_->refuse_collective(std::move(error), scope);
  }
  [[nodiscard]] std::string name_of(const Operand& range) const override {
    return to_->name_of(range);
  }
  Result<detail::ResultCell> result_cell(std::size_t bytes) override {
    return to_->result_cell(bytes);
  }
  void keep(std::shared_ptr<const void> what) override { to_->keep(std::move(what)); }

 private:
  void note(const Operand& range);

  Device device_;
  detail::Submitter* to_;
  std::atomic<bool> noting_ = false;
  std::atomic<int> pass_ = 0;
  GpuRef<std::uint64_t> digests_[2];
  std::atomic<std::uint64_t> counts_[2] = {0, 0};
};

}  // namespace troupe::rank_process
