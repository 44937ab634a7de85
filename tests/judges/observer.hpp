#pragma once

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <troupe/device.hpp>

namespace troupe::judge {

/// Numbers that operands do not have by themselves, NaN for one: each the bytes of an element.
using Unusual = std::vector<std::vector<std::uint8_t>>;

/// Passes commands on to a device one by one, and notes of each what it was given and what came of
/// it. One thread.
class Observer final : public detail::Submitter {
 public:
  explicit Observer(const Device& device) : device_(device) {}

  /// Puts one of these numbers, which are of the command's dtype, somewhere into each operand that
  /// the next commands read. `seed`: which and where.
  void disturb(Unusual numbers, std::uint64_t seed) {
    unusual_ = std::move(numbers);
    seed_ = seed;
  }
  /// The commands since the last call:
  ///
  ///     {"operation": "blas.gemv", "fields": {"m": 3, …}, "outcome": "ok",
  ///      "operands": {"a": {"at": 0, "bytes": 96, "access": "read", "region": 1, "offset": 512}},
  ///      "tail": [{"tag": 0, "at": …}], "data": {"at": …, "bytes": …}}
  ///
  /// `at`: where its bytes stand in contents(), before the command, and behind them those after it.
  /// `region` and `offset`: where it is in memory. The outcome may be an error's text.
  [[nodiscard]] nlohmann::json take() { return std::exchange(commands_, nlohmann::json::array()); }
  [[nodiscard]] const std::vector<std::byte>& contents() const { return contents_; }

  Future<void> submit(const detail::CommandView& command) override;
  Future<void> refuse(Error error) override { return device_.submitter().refuse(std::move(error)); }
  [[nodiscard]] std::string name_of(const Operand& range) const override {
    return device_.submitter().name_of(range);
  }
  Result<detail::ResultCell> result_cell(std::size_t bytes) override;
  void keep(std::shared_ptr<const void> what) override {
    device_.submitter().keep(std::move(what));
  }

 private:
  /// An operand as it was, until its contents after the command are known.
  struct Seen {
    Operand range;
    std::size_t at;  ///< in contents_
  };

  nlohmann::json look(const Operand& range, Access access);
  void read(const Operand& range, std::byte* to);
  void write(const Operand& range, const std::byte* from);
  void disturb(const detail::CommandView& command);
  PinnedBuffer<std::uint8_t>& staging(std::size_t bytes);

  Device device_;
  Unusual unusual_;
  std::uint64_t seed_ = 0;
  nlohmann::json commands_ = nlohmann::json::array();
  std::vector<std::byte> contents_;
  std::vector<Seen> seen_;  ///< of the command that is under way
  std::vector<detail::ResultCell> cells_;
  std::vector<PinnedBuffer<std::uint8_t>> staging_;  ///< the last one is in use
};

}  // namespace troupe::judge
