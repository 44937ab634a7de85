#pragma once

#include <poll.h>

#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <troupe/lib/memory.hpp>
#include <troupe/lib/submit.hpp>

#include "rank/device/commands/command_port.hpp"

namespace troupe::rank_process {

/// The device host's end of a link, by the book: takes commands, says how far it has issued,
/// answers.
class HostEnd {
 public:
  explicit HostEnd(std::shared_ptr<HostLink> link)
      : link_(std::move(link)),
        commands_(&header().command, data(), header().command_capacity),
        replies_(&header().reply, data() + header().command_capacity, header().reply_capacity) {}

  /// Issues the next command; false if there is none. Cancelled ones are passed over.
  bool take() {
    for (;;) {
      const auto record = commands_.front();
      EXPECT_TRUE(record.ok());
      if (!record.ok() || record->empty()) return false;
      taken_record.assign(record->begin(), record->end());
      const auto decoded = command.decode(*record);
      EXPECT_TRUE(decoded.ok()) << decoded.error().to_string();
      const bool cancelled = (command.header().flags & wire::kCancelled) != 0;
      if (!cancelled)
        header().issued_ticket.store(command.header().ticket, std::memory_order_release);
      commands_.pop();
      if (cancelled) continue;
      taken.push_back(command.header().ticket);
      return true;
    }
  }
  void take(int count) {
    for (int i = 0; i < count; ++i) ASSERT_TRUE(take());
  }
  /// Takes no further command, but gives the front one to the GPU already: killed between the two.
  void issue_without_taking() {
    ASSERT_TRUE(command.decode(*commands_.front()).ok());
    header().issued_ticket.store(command.header().ticket, std::memory_order_release);
  }
  bool answer(std::uint64_t first, std::uint32_t count) {
    static const Result<void> kSuccess;
    return answer(first, count, kSuccess);
  }
  bool answer(std::uint64_t first, std::uint32_t count, const Result<void>& outcome,
              std::uint16_t flags = 0) {
    const std::string_view text =
        outcome.ok() ? std::string_view{} : std::string_view(outcome.error().message);
    auto room = replies_.reserve(sizeof(wire::ReplyHeader) + text.size());
    EXPECT_TRUE(room.ok());
    if (!room.ok() || room->empty()) return false;
    const wire::ReplyHeader reply{first,
                                  count,
                                  static_cast<std::uint32_t>(outcome.code()),
                                  outcome.ok() ? 0 : outcome.error().native,
                                  static_cast<std::uint16_t>(text.size()),
                                  flags};
    std::memcpy(room->data(), &reply, sizeof reply);
    if (!text.empty()) std::memcpy(room->data() + sizeof reply, text.data(), text.size());
    if (replies_.commit()) link_->reply_bell().ring();
    return true;
  }
  /// Sleeps until a command comes or `timeout_ms` is over.
  void wait(int timeout_ms) {
    commands_.announce_sleep();
    if (commands_.empty()) {
      pollfd bell{link_->command_bell().fd(), POLLIN, 0};
      ::poll(&bell, 1, timeout_ms);
      link_->command_bell().clear();
    }
    commands_.cancel_sleep();
  }
  /// The command ring's bytes, to be spoilt.
  [[nodiscard]] std::byte* data() const {
    return reinterpret_cast<std::byte*>(&link_->header()) + wire::kPortDataOffset;
  }
  [[nodiscard]] wire::PortHeader& header() const { return link_->header(); }

  wire::Command command;                ///< the one taken last
  std::vector<std::byte> taken_record;  ///< the command's
  std::vector<std::uint64_t> taken;     ///< tickets, in order

 private:
  std::shared_ptr<HostLink> link_;
  ipc::RingConsumer commands_;
  ipc::RingProducer replies_;
};

inline std::shared_ptr<HostLink> make_link(std::uint64_t id, std::uint64_t ring_bytes = 1u << 16) {
  HostLaunch launch;
  launch.ring_bytes = ring_bytes;
  auto link = HostLink::create(launch, id);
  check(link.ok(), "HostLink::create");
  return *link;
}

/// A port with buffers of 64 bytes, one after the other in region 1.
class PortRig {
 public:
  explicit PortRig(std::uint64_t ring_bytes = 1u << 16, std::chrono::nanoseconds spin = {},
                   bool replay = false)
      : port({.spin = spin, .replay = replay}), link(make_link(1, ring_bytes)) {
    port.hosts().attach(link);
  }

  std::uint32_t add_buffer() {
    const auto buffer = port.buffers().add(1, added_++ * 64, 64);
    check(buffer.ok(), "add_buffer");
    return *buffer;
  }
  /// The buffer as a reference sees it that was made now.
  Operand operand(std::uint32_t buffer) {
    return {1, buffer, port.buffers().generation(buffer), 0, std::uint64_t{buffer} * 64, 64};
  }

  Future<void> nop() { return detail::submit(port, memory::Nop{DType::f64}); }
  Future<void> fill(const Operand& destination) {
    return detail::submit(port, memory::Fill{DType::f64, 8, {}, destination});
  }
  Future<void> copy(const Operand& source, const Operand& destination) {
    return detail::submit(port, memory::Copy{DType::f64, source, destination});
  }

  CommandPort port;
  std::shared_ptr<HostLink> link;

 private:
  std::uint64_t added_ = 0;
};

/// Submits an operation without waiting for room.
template <class Op>
Future<void> try_submit(CommandPort& port, const Op& op) {
  struct Trying final : detail::Submitter {
    explicit Trying(CommandPort& p) : target(&p) {}
    Future<void> submit(const detail::CommandView& command) override {
      return target->try_submit(command);
    }
    Future<void> refuse(Error error) override { return target->refuse(std::move(error)); }
    CommandPort* target;
  } trying(port);
  return detail::submit(trying, op);
}

}  // namespace troupe::rank_process
