#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "scripted_engine.hpp"

namespace troupe::host {

namespace to_host = wire::to_host;
namespace from_host = wire::from_host;

template <Operation Op>
std::vector<std::byte> record_of(const Op& op, std::uint64_t ticket = 0, std::uint32_t epoch = 0,
                                 const std::vector<std::byte>& data = {}) {
  const detail::CommandView command(info_of<Op>, std::as_bytes(std::span(&op, 1)),
                                    Parts(std::span<const TailOperand>(), data), epoch);
  std::vector<std::byte> record(wire::record_bytes(command));
  wire::encode(command, ticket, record);
  return record;
}

/// The rank's end of a device host that is a thread.
class Reactor : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kRing = 1u << 16;
  static constexpr std::uint32_t kUnusedLane = kLaneCount - 1;

  explicit Reactor(bool lanes_open = true, wire::Completion completion = wire::Completion::event,
                   const wire::HostSettings& settings = {}) {
    script = &script_;
    script_.lanes_open = lanes_open;
    // With either all libraries are opened at the start.
    script_.blas_opens = settings.other_hosts == 0 && settings.channels == 0;
    segment_ = ipc::SharedMemory::create("port", wire::port_bytes(kRing, kRing)).take();
    auto flight = ipc::SharedMemory::create("flight", wire::flight_bytes(0, 0)).take();
    reinterpret_cast<wire::FlightHeader*>(flight.data())->version = wire::kFlightVersion;
    header().version = wire::kPortVersion;
    header().libraries = wire::library_stamps().take();
    auto& another = header().libraries[kMaxLibraries];  // that the program has, and nobody else
    std::strcpy(another.name.data(), "alchemy");
    another.lane = kUnusedLane;
    header().settings = settings;
    header().settings.completion = completion;
    header().life.init();
    header().command_capacity = header().reply_capacity = kRing;
    auto sockets = ipc::Socket::make_pair().take();
    socket_ = std::move(sockets.first);
    const auto command_bell = ipc::Doorbell::create().take(),
               reply_bell = ipc::Doorbell::create().take();
    const wire::HostOptions options{.segment_fd = ::dup(segment_.fd()),
                                    .command_bell_fd = ::dup(command_bell.fd()),
                                    .reply_bell_fd = ::dup(reply_bell.fd()),
                                    .socket_fd = sockets.second.release(),
                                    .flight_fd = ::dup(flight.fd())};
    host_ = DeviceHost::create(options).take();
    thread_ = std::thread([this] { (void)host_->run(); });
    EXPECT_TRUE(is<from_host::Ready>(receive()));
    EXPECT_TRUE(ask(to_host::Promote{}).ok());
    EXPECT_TRUE(ask(to_host::MakeSlab{1, 2u << 20}).ok());
  }
  ~Reactor() override {
    script_.change([this] { script_.lanes_open = script_.blas_opens = script_.works = true; });
    script_.reached.store(true);
    socket_.close();
    thread_.join();
    host_.reset();
  }

  [[nodiscard]] wire::PortHeader& header() const {
    return *reinterpret_cast<wire::PortHeader*>(segment_.data());
  }
  void send(const wire::ToHost& message, std::uint64_t request = 0) {
    EXPECT_TRUE(wire::send_control(socket_, message, request).ok());
  }
  /// Its number.
  std::uint64_t request(const wire::ToHost& message) {
    send(message, ++requests_);
    return requests_;
  }
  wire::FromDeviceHost receive() {
    pollfd readable{socket_.fd(), POLLIN, 0};
    EXPECT_EQ(::poll(&readable, 1, 30'000), 1) << "nothing comes";
    auto message = wire::receive_from_host(socket_);
    EXPECT_TRUE(message.ok() && message->has_value());
    return message.ok() && *message ? std::move(**message) : wire::FromDeviceHost();
  }
  /// The next message but for libraries that were opened.
  wire::FromDeviceHost receive_other() {
    auto message = receive();
    while (is<from_host::LibraryOpened>(message)) message = receive();
    return message;
  }
  template <class Kind>
  static bool is(const wire::FromDeviceHost& message) {
    return std::holds_alternative<Kind>(message.message);
  }
  /// The answer, which must be the next message but for libraries that were opened and kinds that
  /// recur.
  template <class Request>
  Result<typename Request::Answer> ask(Request message) {
    const auto number = request(wire::ToHost(std::move(message)));
    auto answer = receive_other();
    while (is<from_host::KindRecurs>(answer)) answer = receive_other();
    EXPECT_EQ(answer.request, number);
    if (auto* const failed = std::get_if<from_host::Failed>(&answer.message)) return failed->error;
    auto* const expected = std::get_if<typename Request::Answer>(&answer.message);
    if (expected != nullptr) return std::move(*expected);
    return Error{Errc::internal, 0, "another answer"};
  }
  void submit_all_reduce() {
    const Operand x{.region = 1, .buffer = 1, .bytes = 64};
    submit(collective::AllReduce{DType::f32, ReduceOp::sum, 0, 16, x, x}, 1);
  }
  /// Its ticket.
  template <Operation Op>
  std::uint64_t submit(const Op& op, std::uint32_t epoch = 0,
                       const std::vector<std::byte>& data = {}) {
    return submit_record(record_of(op, ++tickets_, epoch, data));
  }
  std::uint64_t submit_record(const std::vector<std::byte>& record) {
    ipc::RingProducer ring(&header().command, segment_.data() + wire::kPortDataOffset, kRing);
    const auto room = ring.reserve(record.size());
    check(room.ok() && !room->empty(), "the ring is full");
    std::memcpy(room->data(), record.data(), record.size());
    (void)ring.commit();  // the reactor looks often enough without its bell
    return tickets_;
  }
  /// Whether the operation of this name is queued within the test's patience.
  bool runs(const std::string& name, std::size_t times = 1) {
    return script_.await([&] {
      return static_cast<std::size_t>(std::count(script_.ran.begin(), script_.ran.end(), name)) >=
             times;
    });
  }
  [[nodiscard]] bool has_run(const std::string& name) {
    const std::lock_guard lock(script_.mutex);
    return std::count(script_.ran.begin(), script_.ran.end(), name) != 0;
  }
  /// Waits for the answer of one command; answers of others are dropped.
  wire::ReplyHeader await_answer(std::uint64_t ticket) {
    ipc::RingConsumer ring(&header().reply, segment_.data() + wire::kPortDataOffset + kRing, kRing);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (std::chrono::steady_clock::now() < until) {
      const auto record = ring.front();
      if (!record.ok() || record->empty()) {
        std::this_thread::yield();
        continue;
      }
      wire::ReplyHeader reply;
      std::memcpy(&reply, record->data(), sizeof reply);
      ring.pop();
      if (ticket >= reply.first_ticket && ticket < reply.first_ticket + reply.count) return reply;
    }
    ADD_FAILURE() << "ticket " << ticket << " is not answered";
    return {};
  }
  static Operand part(std::uint64_t i) {
    return {.region = 1, .buffer = 1, .offset = 4096 * i, .bytes = 4096};
  }
  static blas::Dot dot(std::uint64_t x, std::uint64_t result) {
    return {DType::f64, 8, 1, 1, part(x), part(x), part(result)};
  }
  static vectors::Multiply multiply(std::uint64_t x, std::uint64_t z) {
    return {DType::f64, 8, part(x), part(x), part(z)};
  }
  static blas::Gemm gemm(std::uint64_t a, std::uint64_t c) {
    constexpr auto kNo = blas::Transpose::no;
    return {DType::f64,      kNo,     kNo,     2,      2, 2, 2, 2, 2, Scalar::of(1.0),
            Scalar::of(0.0), part(a), part(a), part(c)};
  }
  [[nodiscard]] bool answered() const {
    return !ipc::RingConsumer(&header().reply, segment_.data() + wire::kPortDataOffset + kRing,
                              kRing)
                .empty();
  }

  Script script_;
  ipc::SharedMemory segment_;
  ipc::Socket socket_;
  std::unique_ptr<DeviceHost> host_;
  std::thread thread_;
  std::uint64_t requests_ = 0, tickets_ = 0;
};

}  // namespace troupe::host
