#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <troupe/error.hpp>

#include "common/ipc/unique_fd.hpp"
#include "common/wire/flight_layout.hpp"

namespace troupe::running {

/// The shared segment of a rank's flight recorder, mapped to be read.
class FlightView {
 public:
  FlightView() = default;
  FlightView(FlightView&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  FlightView& operator=(FlightView&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  ~FlightView();

  /// Errors: invalid, it is none that this version can read, or it might become shorter; the
  /// system's.
  static Result<FlightView> map(const UniqueFd& fd);

  [[nodiscard]] const wire::FlightBoard& board() const noexcept {
    return *reinterpret_cast<const wire::FlightBoard*>(data_ + wire::kFlightBoardOffset);
  }
  [[nodiscard]] std::uint64_t capacity() const noexcept { return capacity_; }

  /// A command that a device host has issued; times are ticks.
  struct Command {
    std::uint64_t ticket = 0, issued = 0, completed = 0;  ///< completed: 0, it is under way
    std::uint32_t opcode = 0, queue = 0;                  ///< queue: 0, it was on none
  };
  /// Those that are in the record, by ticket, without those whose slots are just being taken.
  [[nodiscard]] std::vector<Command> commands() const;

 private:
  [[nodiscard]] const wire::FlightHeader& header() const noexcept {
    return *reinterpret_cast<const wire::FlightHeader*>(data_);
  }

  const std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::uint64_t capacity_ = 0;  ///< as it was when it was checked
};

/// Text in an array that ends with it or with a 0.
template <std::size_t kSize>
std::string text_in(const char (&array)[kSize]) {
  std::size_t length = 0;
  while (length < kSize && array[length] != '\0') ++length;
  return {array, length};
}

/// For each queue that had a command under way in [since, now), the share of that time, by its
/// index. Commands are by ticket, times in ticks; what is under way still counts until now.
std::vector<std::pair<std::uint32_t, double>> busy_shares(
    const std::vector<FlightView::Command>& commands, std::uint64_t since, std::uint64_t now);

}  // namespace troupe::running
