// The reactor of a device host, with an engine that does what the test says.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include <troupe/lib/blas.hpp>
#include <troupe/lib/channel.hpp>
#include <troupe/lib/collective.hpp>
#include <troupe/lib/memory.hpp>
#include <troupe/lib/vector.hpp>

#include "device_host/device_host.hpp"

namespace troupe::host {
namespace {

/// What the engine does, and what was asked of it.
struct Script {
  std::mutex mutex;
  std::condition_variable changed;
  bool lanes_open = true;  ///< else opening one takes until they do
  int opened = 0;          ///< how often the collective lane was
  int aborted = 0;
  int queued = 0;                 ///< commands
  Result<void> collective;        ///< what queueing a collective says
  bool blas_opens = true;         ///< else opening it takes until it does
  int blas_opened = 0;            ///< queues of it
  int discarded = 0;              ///< libraries
  bool works = true;              ///< else gemm, which blocks, takes until it does
  bool at_work = false;           ///< gemm was begun, or a dot that waits
  bool blas_fails = false;        ///< queueing a dot says so
  bool dot_waits = false;         ///< queueing one takes until the communicators are given up
  bool given_up_in_time = false;  ///< they were
  int transfers = 0;              ///< that have begun, by channels
  std::uint64_t let_through = 0;  ///< the length of those that may end
  std::vector<std::string> ran;
  std::vector<std::string> traced;            ///< what was begun, run and ended
  std::uint64_t scratch = 0;                  ///< bytes of it that were taken last
  int given_back = 0;                         ///< pieces of it
  std::vector<std::vector<std::byte>> plans;  ///< that blas has made
  std::string adopted;                        ///< library and plan
  std::optional<Error> lost;                  ///< what every look at a mark says
  bool probe_ends = false;
  std::atomic<bool> reached{false};

  template <class Change>
  void change(Change change_it) {
    const std::lock_guard lock(mutex);
    change_it();
    changed.notify_all();
  }
  template <class Condition>
  bool await(Condition holds) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(30), holds);
  }
};
Script* script = nullptr;

/// Transfers wait for the script, or until they are given up.
class ScriptedChannelEnd final : public ChannelEnd {
 public:
  Result<std::vector<std::byte>> invite() override { return std::vector<std::byte>(8); }
  Result<void> connect(const std::vector<std::byte>&) override { return {}; }
  Result<void> transfer(std::byte*, std::uint64_t bytes) override {
    script->change([] { ++script->transfers; });
    script->await([&] { return aborted_ || script->let_through == bytes; });
    if (aborted_) return Error{Errc::world_reformed, 0, "given up"};
    return {};
  }
  void abort() override {
    script->change([this] { aborted_ = true; });
  }

 private:
  bool aborted_ = false;  ///< with the script's mutex
};

class ScriptedCollectives final : public CollectiveHalf {
 public:
  Result<std::vector<std::byte>> contribute(const Place&) override {
    return std::vector<std::byte>();
  }
  Result<void> connect(const Place&, const std::vector<std::vector<std::byte>>&) override {
    return {};
  }
  void drop(std::uint32_t) override {}
  Result<std::shared_ptr<ChannelEnd>> make_channel_end(bool) override {
    return std::shared_ptr<ChannelEnd>(std::make_shared<ScriptedChannelEnd>());
  }
  void abort() override {
    script->change([] { ++script->aborted; });
  }

 protected:
  Function find(std::uint32_t) const override { return nullptr; }
};

class ScriptedTracing final : public Tracing {
 public:
  void begin(std::uint64_t ticket, std::string_view operation) noexcept override {
    script->change(
        [&] { script->traced.push_back(std::string(operation) + " " + std::to_string(ticket)); });
  }
  void end() noexcept override {
    script->change([] { script->traced.emplace_back("end"); });
  }
};

class ScriptedEngine final : public Engine {
 public:
  Result<void> run(const OperationInfo& info, const std::byte*, const Call& call) override {
    if (info.name == "blas.gemm") {
      script->change([] { script->at_work = true; });
      script->await([] { return script->works; });
    }
    if (info.name == "blas.dot" && script->dot_waits) {
      script->change([] { script->at_work = true; });
      const bool in_time = script->await([] { return script->aborted > 0; });
      script->change([&] { script->given_up_in_time = in_time; });
    }
    script->change([&] {
      ++script->queued;
      script->ran.emplace_back(info.name);
      script->traced.emplace_back("run");
    });
    if (info.name == "blas.dot" && script->blas_fails)
      return Error{Errc::library, 14, "an internal operation failed"};
    return call.queue().lane == Lane::collective ? script->collective : Result<void>();
  }
  const DeviceInfo& description() const override { return description_; }
  std::uint64_t free_memory() override { return 1; }
  std::vector<std::pair<std::string, std::uint64_t>> memory_use() override {
    return {{"slabs", 2u << 20}, {"blas", 64u << 20}, {"nothing", 5}};
  }
  Result<Slab> make_slab(std::uint64_t bytes) override {
    if (bytes > 1u << 30) return Error{Errc::out_of_memory, 2, "no room"};
    Slab slab;
    slab.fd.reset(::memfd_create("slab", MFD_CLOEXEC));
    memory_.emplace_back(bytes);
    slab.base = memory_.back().data();
    return slab;
  }
  Result<std::byte*> map_slab(int, std::uint64_t) override { return unsupported(); }
  void unmap_slab(std::byte*, std::uint64_t) override {}
  Result<std::byte*> map_foreign(int, std::uint64_t) override { return unsupported(); }
  void unmap_foreign(std::byte*, std::uint64_t) override {}
  Result<std::byte*> map_pinned(int, std::uint64_t) override { return unsupported(); }
  void unmap_pinned(std::byte*, std::uint64_t) override {}

  Result<void> open_queue(Queue queue) override {
    if (queue.lane == library_lane("blas")) {
      script->change([] { ++script->blas_opened; });
      script->await([] { return script->blas_opens; });
    }
    if (queue.lane != Lane::collective) return {};
    script->change([] { ++script->opened; });
    script->await([] { return script->lanes_open; });
    return {};
  }
  Result<std::shared_ptr<std::byte>> scratch_memory(Queue, std::uint64_t bytes) override {
    script->change([&] { script->scratch = bytes; });
    return std::shared_ptr<std::byte>(new std::byte[bytes](), [](std::byte* memory) {
      script->change([] { ++script->given_back; });
      delete[] memory;
    });
  }
  std::byte* scratch_cells() override { return cells_.data(); }
  std::vector<std::vector<std::byte>> take_new_plans(Lane lane) override {
    std::vector<std::vector<std::byte>> made;
    script->change([&] {
      if (lane == library_lane("blas")) std::swap(made, script->plans);
    });
    return made;
  }
  void adopt_plan(Lane lane, std::span<const std::byte> plan) override {
    script->change([&] {
      script->adopted = std::string(to_string(lane)) + " " +
                        std::string(reinterpret_cast<const char*>(plan.data()), plan.size());
    });
  }
  void discard_library(Lane) override {
    script->change([] { ++script->discarded; });
  }
  bool blocks(const OperationInfo& info, const std::byte*, const Call&) override {
    return info.name == "blas.gemm";
  }
  Result<Mark> mark(Queue) override { return Mark{1}; }
  Result<void> wait(Queue, Mark) override { return {}; }
  Result<bool> reached(Mark) override {
    const std::lock_guard lock(script->mutex);
    if (script->lost) return *script->lost;
    return script->reached.load();
  }
  void release(Mark) override {}
  /// Never runs one: as in a context with an error.
  Result<void> call_when_reached(Queue, void (*)(void*), void*) override { return {}; }
  Result<void> synchronize(Queue) override { return {}; }
  int completion_fd() const override { return -1; }
  void arm() override {}

  Result<bool> probe_ended() override {
    const std::lock_guard lock(script->mutex);
    if (script->lost) return *script->lost;
    return script->probe_ends;
  }

  CollectiveHalf& collectives() override { return collectives_; }
  Result<void> suffer(memory::FaultKind, Queue) override { return unsupported(); }

 private:
  static Error unsupported() { return {Errc::unsupported, 0, "no part of the test"}; }
  DeviceInfo description_{"scripted", "nothing", "", "", 0, -1, {}};
  std::vector<std::vector<std::byte>> memory_;
  alignas(256) std::array<std::byte, kScratchCellBytes> cells_{};
  ScriptedCollectives collectives_;
};

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
                   bool other_hosts = false) {
    script = &script_;
    script_.lanes_open = lanes_open;
    script_.blas_opens = !other_hosts;  // where they are all libraries are opened at the start
    segment_ = ipc::SharedMemory::create("port", wire::port_bytes(kRing, kRing)).take();
    auto flight = ipc::SharedMemory::create("flight", wire::flight_bytes(0, 0)).take();
    reinterpret_cast<wire::FlightHeader*>(flight.data())->version = wire::kFlightVersion;
    header().version = wire::kPortVersion;
    header().libraries = wire::library_stamps().take();
    auto& another = header().libraries[kMaxLibraries];  // that the program has, and nobody else
    std::strcpy(another.name.data(), "alchemy");
    another.lane = kUnusedLane;
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
                                    .flight_fd = ::dup(flight.fd()),
                                    .in_process = 1,
                                    .completion = static_cast<std::uint32_t>(completion),
                                    .other_hosts = other_hosts ? 1 : 0};
    host_ = DeviceHost::create(options).take();
    thread_ = std::thread([this] { (void)host_->run(); });
    EXPECT_EQ(receive().head.kind, wire::ControlKind::ready);
    EXPECT_EQ(ask({.kind = wire::ControlKind::promote}).head.kind, wire::ControlKind::done);
    EXPECT_EQ(ask({.kind = wire::ControlKind::make_slab, .region = 1, .bytes = 2u << 20}).head.kind,
              wire::ControlKind::slab_made);
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
  void send(const wire::Control& message, int fd = -1) {
    EXPECT_TRUE(wire::send_control(socket_, message, {}, fd).ok());
  }
  wire::ControlMessage receive() {
    pollfd readable{socket_.fd(), POLLIN, 0};
    EXPECT_EQ(::poll(&readable, 1, 30'000), 1) << "nothing comes";
    auto message = wire::receive_control(socket_);
    EXPECT_TRUE(message.ok() && message->has_value());
    return message.ok() && *message ? std::move(**message) : wire::ControlMessage();
  }
  /// The answer, which must be the next message but for libraries that were opened.
  wire::ControlMessage ask(wire::Control message) {
    message.request = ++requests_;
    send(message);
    auto answer = receive();
    while (answer.head.kind == wire::ControlKind::library_opened ||
           answer.head.kind == wire::ControlKind::kind_recurs)
      answer = receive();
    EXPECT_EQ(answer.head.request, message.request);
    return answer;
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

// Part of it may run on, and use its memory: it is answered by nobody, and waited for.
TEST_F(Reactor, ACollectiveThatBreaksTheCommunicatorIsInFlightUntilDrained) {
  script_.collective = Error{Errc::peer_lost, 2, "ncclAllReduce: unhandled system error"};
  submit_all_reduce();
  const auto said = receive();
  EXPECT_EQ(said.head.kind, wire::ControlKind::communicator_broken);
  EXPECT_NE(said.text.find("unhandled system error"), std::string::npos) << said.text;
  send({.kind = wire::ControlKind::quiesce, .request = ++requests_});
  ASSERT_TRUE(script_.await([this] { return script_.aborted > 0; }));
  EXPECT_EQ(ask({.kind = wire::ControlKind::memory_use}).head.kind, wire::ControlKind::done)
      << "quiesced before the lane was drained";
  script_.reached.store(true);
  const auto quiesced = receive();
  EXPECT_EQ(quiesced.head.kind, wire::ControlKind::done);
  EXPECT_EQ(quiesced.head.request, requests_ - 1);
  EXPECT_FALSE(answered());
}

TEST_F(Reactor, RefusesMemoryThatComesWithoutItsDescriptor) {
  for (const auto kind : {wire::ControlKind::map_slab, wire::ControlKind::map_pinned,
                          wire::ControlKind::map_foreign, wire::ControlKind::connect}) {
    const auto answer = ask({.kind = kind, .region = 2, .bytes = 2u << 20});
    EXPECT_EQ(answer.head.kind, wire::ControlKind::failed);
    EXPECT_EQ(answer.error().message, "a control message came without its descriptor");
  }
}

// Nothing is answered by then, and whoever waits for a heart to stop waits for seconds.
TEST_F(Reactor, ALossIsToldOfWhileTheWorldIsHalted) {
  submit_all_reduce();
  ASSERT_TRUE(script_.await([this] { return script_.queued > 0; }));
  header().halts.fetch_add(1);
  script_.change([this] { script_.lost = Error{Errc::device_lost, 700, "an illegal address"}; });
  const auto said = receive();
  EXPECT_EQ(said.head.kind, wire::ControlKind::fatal);
  EXPECT_NE(said.text.find("an illegal address"), std::string::npos) << said.text;
  EXPECT_FALSE(answered());
}

// A peer may have given the communicator up by then, and its dying kernels seem to end.
TEST_F(Reactor, NothingThatEndsAfterAHaltIsAnswered) {
  submit_all_reduce();
  ASSERT_TRUE(script_.await([this] { return script_.queued > 0; }));
  header().halts.fetch_add(1);
  script_.reached.store(true);
  EXPECT_EQ(ask({.kind = wire::ControlKind::memory_use}).head.kind, wire::ControlKind::done);
  EXPECT_EQ(ask({.kind = wire::ControlKind::quiesce}).head.kind, wire::ControlKind::done);
  EXPECT_FALSE(answered());
  const auto behind = submit(dot(0, 1));
  send({.kind = wire::ControlKind::resume, .value = header().halts.load()});
  EXPECT_EQ(await_answer(behind).code, 0u);
}

// CUDA keeps it waiting while a collective of a dead peer runs.
TEST_F(Reactor, CommunicatorsAreGivenUpAlthoughItWaitsInALaunch) {
  script_.reached.store(true);
  await_answer(submit(dot(0, 1)));  // the library is open now
  script_.change([this] { script_.dot_waits = true; });
  submit(dot(0, 1));
  ASSERT_TRUE(script_.await([this] { return script_.at_work; }));
  header().halts.fetch_add(1);
  header().surrenders.advance();
  EXPECT_EQ(ask({.kind = wire::ControlKind::quiesce}).head.kind, wire::ControlKind::done);
  EXPECT_TRUE(script_.await([this] { return script_.given_up_in_time; }));
  EXPECT_FALSE(answered());
}

TEST_F(Reactor, AFaultThatWasOrderedShowsAlthoughNothingElseRuns) {
  send({.kind = wire::ControlKind::suffer,
        .value = static_cast<std::uint32_t>(memory::FaultKind::trap)});
  EXPECT_EQ(ask({.kind = wire::ControlKind::memory_use}).head.kind, wire::ControlKind::done);
  script_.change([this] { script_.lost = Error{Errc::device_lost, 719, "a launch has failed"}; });
  EXPECT_EQ(receive().head.kind, wire::ControlKind::fatal);
}

TEST_F(Reactor, AProbeIsAnsweredOnceItHasEnded) {
  const auto request = ++requests_;
  send({.kind = wire::ControlKind::probe, .request = request});
  EXPECT_EQ(ask({.kind = wire::ControlKind::memory_use}).head.kind, wire::ControlKind::done);
  script_.change([this] { script_.probe_ends = true; });
  const auto answer = receive();
  EXPECT_EQ(answer.head.kind, wire::ControlKind::done);
  EXPECT_EQ(answer.head.request, request);
}

TEST_F(Reactor, AProbeThatFindsTheErrorTellsOfTheLoss) {
  script_.change([this] { script_.lost = Error{Errc::device_lost, 719, "a launch has failed"}; });
  send({.kind = wire::ControlKind::probe, .request = ++requests_});
  EXPECT_EQ(receive().head.kind, wire::ControlKind::fatal);
}

// When a communicator is given up, each collective that was launched takes its time to see it.
TEST_F(Reactor, FewCollectivesAreLaunchedAhead) {
  constexpr std::size_t kMany = 3 * DeviceHost::kCollectivesAhead;
  for (std::size_t i = 0; i < kMany; ++i) submit_all_reduce();
  submit(multiply(4, 5));  // passes those that wait
  ASSERT_TRUE(runs("vector.multiply"));
  const auto launched = [this] {
    return static_cast<std::size_t>(
        std::count(script_.ran.begin(), script_.ran.end(), "collective.all_reduce"));
  };
  script_.change([&] { EXPECT_EQ(launched(), DeviceHost::kCollectivesAhead); });
  script_.reached.store(true);
  EXPECT_TRUE(runs("collective.all_reduce", kMany));
}

class ReactorWithHostFunctions : public Reactor {
 protected:
  ReactorWithHostFunctions() : Reactor(true, wire::Completion::host_fn) {}
};

// No host function runs behind an error, and nothing else is submitted that could meet it.
TEST_F(ReactorWithHostFunctions, TellsOfALossAlthoughNoneRuns) {
  submit_all_reduce();
  ASSERT_TRUE(script_.await([this] { return script_.queued > 0; }));
  script_.change([this] { script_.lost = Error{Errc::device_lost, 716, "a misaligned address"}; });
  EXPECT_EQ(receive().head.kind, wire::ControlKind::fatal);
  EXPECT_FALSE(answered());
}

TEST_F(Reactor, HasEachTransferOfAChannelWaitForItselfAlone) {
  const std::vector<std::byte> invitation(8);
  for (const std::uint64_t number : {1, 2})
    EXPECT_EQ(await_answer(submit(channel::Join{DType::u8, number}, 0, invitation)).code, 0u);
  auto shorter = part(2);
  shorter.bytes = 64;
  (void)submit(channel::Receive{DType::u8, 1, part(1)});
  const auto other = submit(channel::Receive{DType::u8, 2, shorter});
  EXPECT_TRUE(script_.await([&] { return script_.transfers == 2; })) << "one waits for the other";
  // What is queued, also on the range of a transfer, waits for neither.
  EXPECT_EQ(await_answer(submit(memory::Nop{DType::f64})).code, 0u);
  script_.change([&] { script_.let_through = 64; });
  EXPECT_EQ(await_answer(other).code, 0u);
  // The first one ends when the communicators are given up, and is waited for.
  script_.reached.store(true);
  EXPECT_EQ(ask({.kind = wire::ControlKind::quiesce}).head.kind, wire::ControlKind::done);
  const std::lock_guard lock(script_.mutex);
  EXPECT_EQ(script_.aborted, 1);
}

TEST_F(ReactorWithHostFunctions, TellsOfALossWhileItQuiesces) {
  submit_all_reduce();
  ASSERT_TRUE(script_.await([this] { return script_.queued > 0; }));
  send({.kind = wire::ControlKind::quiesce, .request = ++requests_});
  ASSERT_TRUE(script_.await([this] { return script_.aborted > 0; }));
  script_.change([this] { script_.lost = Error{Errc::device_lost, 716, "a misaligned address"}; });
  EXPECT_EQ(receive().head.kind, wire::ControlKind::fatal);
}

TEST_F(Reactor, ALibraryIsOpenedWhenACommandNeedsItAndHoldsUpNobody) {
  script_.reached.store(true);
  await_answer(submit(multiply(0, 1)));
  EXPECT_EQ(script_.blas_opened, 0) << "nothing needs it";
  script_.change([this] { script_.blas_opens = false; });
  const auto first = submit(dot(1, 2));
  const auto depends = submit(multiply(2, 3)), other = submit(multiply(4, 5));
  await_answer(other);
  EXPECT_FALSE(has_run("blas.dot"));
  EXPECT_TRUE(header().set_aside.contains(first) && header().set_aside.contains(depends));
  submit_all_reduce();
  EXPECT_TRUE(runs("collective.all_reduce")) << "a collective waits for a library";
  script_.change([this] { script_.blas_opens = true; });
  await_answer(depends);
  EXPECT_FALSE(header().set_aside.contains(first) || header().set_aside.contains(depends));
  EXPECT_EQ(script_.ran,
            (std::vector<std::string>{"vector.multiply", "vector.multiply", "collective.all_reduce",
                                      "blas.dot", "vector.multiply"}));
  EXPECT_EQ(script_.blas_opened, 2) << "its lane and its detour";
}

class ReactorOfSeveralHosts : public Reactor {
 protected:
  ReactorOfSeveralHosts() : Reactor(true, wire::Completion::event, true) {}
};

// What is queued behind a library that loads its kernels waits for the running ones, and a
// collective may run until another host comes.
TEST_F(ReactorOfSeveralHosts, NoCollectiveBeginsWhileALibraryIsOpened) {
  script_.reached.store(true);
  submit_all_reduce();
  await_answer(submit(multiply(4, 5)));
  EXPECT_FALSE(has_run("collective.all_reduce"));
  script_.change([this] { script_.blas_opens = true; });
  EXPECT_TRUE(runs("collective.all_reduce"));
}

TEST_F(ReactorOfSeveralHosts, NoChannelBeginsWhileALibraryIsOpened) {
  script_.reached.store(true);
  const auto joins = submit(channel::Join{DType::u8, 1}, 0, std::vector<std::byte>(8));
  for (const std::uint32_t region : {2, 3}) {  // it has looked at its commands in between
    const wire::Control slab{
        .kind = wire::ControlKind::make_slab, .region = region, .bytes = 2u << 20};
    EXPECT_EQ(ask(slab).head.kind, wire::ControlKind::slab_made);
  }
  EXPECT_FALSE(answered());
  script_.change([this] { script_.blas_opens = true; });
  EXPECT_EQ(await_answer(joins).code, 0u);
}

TEST_F(Reactor, WhatBlocksHoldsUpItsOwnLibraryAlone) {
  script_.reached.store(true);
  await_answer(submit(dot(0, 1)));
  script_.change([this] { script_.works = false; });
  const auto work = submit(gemm(1, 2));
  ASSERT_TRUE(script_.await([this] { return script_.at_work; }));
  const auto same_library = submit(dot(3, 4)), depends = submit(multiply(2, 5));
  await_answer(submit(multiply(6, 7)));
  submit_all_reduce();
  EXPECT_TRUE(runs("collective.all_reduce"));
  EXPECT_TRUE(header().set_aside.contains(same_library) && header().set_aside.contains(depends));
  EXPECT_FALSE(header().set_aside.contains(work)) << "it may have begun";
  script_.change([this] { script_.works = true; });
  await_answer(depends);
  EXPECT_TRUE(runs("blas.dot", 2));
}

/// On the reactor's thread and on that of a library that blocks.
TEST_F(Reactor, WhatIsGivenToTheEngineIsTracedByItsTicket) {
  script_.reached.store(true);
  const auto first = submit(dot(0, 1));
  await_answer(first);
  const auto second = submit(gemm(1, 2));
  await_answer(second);
  const std::lock_guard lock(script_.mutex);
  EXPECT_EQ(script_.traced,
            (std::vector<std::string>{"blas.dot " + std::to_string(first), "run", "end",
                                      "blas.gemm " + std::to_string(second), "run", "end"}));
}

TEST_F(Reactor, WaitsForWorkBeforeItIsQuiet) {
  script_.reached.store(true);
  script_.change([this] { script_.works = false; });
  submit(gemm(1, 2));
  await_answer(submit(multiply(6, 7)));
  ASSERT_TRUE(script_.await([this] { return script_.at_work; }));
  send({.kind = wire::ControlKind::quiesce, .request = ++requests_});
  ASSERT_TRUE(script_.await([this] { return script_.aborted > 0; }));
  EXPECT_EQ(ask({.kind = wire::ControlKind::memory_use}).head.kind, wire::ControlKind::done)
      << "quiesced while a library was at work";
  script_.change([this] { script_.works = true; });
  EXPECT_EQ(receive().head.request, requests_ - 1);
}

TEST_F(Reactor, ALibraryThatFailsIsOpenedAnewUntilItIsGivenUp) {
  script_.reached.store(true);
  script_.change([this] { script_.blas_fails = true; });
  for (int failure = 1; failure <= LaneActor::kRestarts + 1; ++failure) {
    const auto reply = await_answer(submit(dot(0, 1)));
    EXPECT_EQ(static_cast<Errc>(reply.code), Errc::library);
    EXPECT_EQ(reply.native, 14);
    EXPECT_EQ(await_answer(submit(multiply(2, 3))).code, 0u) << "a neighbour failed";
  }
  EXPECT_EQ(script_.discarded, LaneActor::kRestarts);
  script_.change([this] { script_.blas_fails = false; });
  const auto given_up = await_answer(submit(dot(0, 1)));
  EXPECT_EQ(static_cast<Errc>(given_up.code), Errc::library) << "it was to be given up";
  EXPECT_EQ(await_answer(submit(multiply(2, 3))).code, 0u);
}

TEST_F(Reactor, SaysWhichLibrariesItDoesNotHaveAndAnswersTheirCommands) {
  EXPECT_EQ(header().unknown.lanes(), 1u << kUnusedLane);
  EXPECT_EQ(header().unknown.why("alchemy").find("there is no troupe-alchemy-scripted.so in "), 0u)
      << header().unknown.text();
  // As of a rank that has submitted it before it could read that.
  auto record = record_of(memory::Nop{}, ++tickets_);
  wire::CommandHeader head;
  std::memcpy(&head, record.data(), sizeof head);
  head.opcode = 1;  // nobody's
  std::memcpy(record.data(), &head, sizeof head);
  EXPECT_EQ(static_cast<Errc>(await_answer(submit_record(record)).code), Errc::unsupported);
  EXPECT_EQ(await_answer(submit(memory::Nop{})).code, 0u) << "it does not go on";
}

TEST_F(Reactor, AnOrderedFailureHitsTheNextCallOfItsLibrary) {
  script_.reached.store(true);
  EXPECT_EQ(await_answer(submit(memory::LibraryFault{{}, "blas"})).code, 0u);
  EXPECT_EQ(await_answer(submit(multiply(0, 1))).code, 0u);
  EXPECT_EQ(static_cast<Errc>(await_answer(submit(dot(0, 1))).code), Errc::library);
  EXPECT_EQ(await_answer(submit(dot(0, 1))).code, 0u);
  EXPECT_EQ(script_.discarded, 1);
  EXPECT_EQ(static_cast<Errc>(await_answer(submit(memory::LibraryFault{{}, "alchemy"})).code),
            Errc::invalid);
}

TEST_F(Reactor, ALibraryThatIsHeldUpSaysSo) {
  script_.reached.store(true);
  script_.change([this] { script_.blas_opens = false; });
  const auto held = submit(dot(0, 1));
  await_answer(submit(multiply(2, 3)));
  EXPECT_EQ(header().held_up.load(), 1u << static_cast<unsigned>(library_lane("blas")));
  script_.change([this] { script_.blas_opens = true; });
  await_answer(held);
  EXPECT_EQ(header().held_up.load(), 0u);
  script_.change([this] { script_.works = false; });
  submit(gemm(1, 2));
  ASSERT_TRUE(script_.await([this] { return script_.at_work; }));
  const auto behind = submit(dot(3, 4));
  await_answer(submit(multiply(6, 7)));
  EXPECT_NE(header().held_up.load(), 0u);
  script_.change([this] { script_.works = true; });
  await_answer(behind);
  EXPECT_EQ(header().held_up.load(), 0u);
}

TEST_F(Reactor, WhatFindsNoMemoryTellsWhoHasIt) {
  const auto refused =
      ask({.kind = wire::ControlKind::make_slab, .region = 2, .bytes = 2ull << 30});
  EXPECT_EQ(refused.head.kind, wire::ControlKind::failed);
  EXPECT_EQ(refused.text, "no room (taken by this device host: slabs 2 MiB, blas 64 MiB)");
  EXPECT_EQ(ask({.kind = wire::ControlKind::memory_use}).text,
            "slabs 2097152\nblas 67108864\nnothing 5\n");
}

/// A memfd of byte strings, as the rank sends them.
UniqueFd packed(const std::vector<std::string>& texts) {
  std::vector<std::vector<std::byte>> blobs;
  for (const auto& text : texts) {
    const auto bytes = std::as_bytes(std::span(text));
    blobs.emplace_back(bytes.begin(), bytes.end());
  }
  return wire::pack_blobs(blobs).take();
}

TEST_F(Reactor, AKindThatRecursIsToldOnceAndPreparedWhereTheRankSaysSo) {
  script_.reached.store(true);
  for (int i = 0; i < 3; ++i) await_answer(submit(dot(0, 1)));
  auto told = receive();
  while (told.head.kind == wire::ControlKind::library_opened) told = receive();
  ASSERT_EQ(told.head.kind, wire::ControlKind::kind_recurs);
  const auto record = packed({told.text});
  script_.change([this] { script_.ran.clear(); });
  wire::Control request{.kind = wire::ControlKind::prepare, .request = ++requests_};
  send(request, record.get());
  EXPECT_EQ(receive().head.request, request.request) << "the kind was told of once more, or more";
  EXPECT_TRUE(has_run("blas.dot"));
  EXPECT_GE(script_.scratch, 3u * 64);
  EXPECT_EQ(script_.given_back, 1);
}

TEST_F(Reactor, WhatIsNoRecordIsNotPreparedButAnswered) {
  const auto nonsense = packed({"nonsense", ""});
  wire::Control request{.kind = wire::ControlKind::prepare, .request = ++requests_};
  send(request, nonsense.get());
  EXPECT_EQ(receive().head.request, request.request);
}

TEST_F(Reactor, PreparingKeepsItsLibraryAndNoOther) {
  script_.reached.store(true);
  script_.change([this] { script_.works = false; });
  const auto record = record_of(gemm(6, 7));
  const auto prepared = submit(memory::Prepare{}, 0, record);
  ASSERT_TRUE(script_.await([this] { return script_.at_work; }));
  const auto behind = submit(dot(0, 1));
  EXPECT_EQ(await_answer(submit(multiply(2, 3))).code, 0u) << "another library waited";
  EXPECT_FALSE(has_run("blas.dot"));
  script_.change([this] { script_.works = true; });
  EXPECT_EQ(await_answer(prepared).code, 0u);
  EXPECT_EQ(await_answer(behind).code, 0u);
}

TEST_F(Reactor, PreparingSaysWhatIsWrong) {
  script_.reached.store(true);
  script_.change([this] { script_.blas_fails = true; });
  EXPECT_EQ(
      static_cast<Errc>(await_answer(submit(memory::Prepare{}, 0, record_of(dot(0, 1)))).code),
      Errc::library);
  EXPECT_EQ(
      static_cast<Errc>(await_answer(submit(memory::Prepare{}, 0, record_of(memory::Nop{}))).code),
      Errc::unsupported);
  EXPECT_EQ(static_cast<Errc>(
                await_answer(submit(memory::Prepare{}, 0, std::vector<std::byte>(16))).code),
            Errc::invalid);
}

TEST_F(Reactor, PlansThatAreMadeAreToldAndThoseOfOthersAdopted) {
  script_.reached.store(true);
  const std::string text = "a plan";
  const auto bytes = std::as_bytes(std::span(text));
  script_.change([&] { script_.plans.emplace_back(bytes.begin(), bytes.end()); });
  await_answer(submit(gemm(6, 7)));
  auto told = receive();
  while (told.head.kind == wire::ControlKind::library_opened) told = receive();
  ASSERT_EQ(told.head.kind, wire::ControlKind::plans_made);
  const auto blobs = wire::unpack_blobs(told.fd.get()).take();
  ASSERT_EQ(blobs.size(), 2u);
  EXPECT_TRUE(std::equal(blobs[1].begin(), blobs[1].end(), bytes.begin(), bytes.end()));
  const auto plan = packed({"blas", "another"});
  send({.kind = wire::ControlKind::adopt_plans}, plan.get());
  EXPECT_TRUE(script_.await([this] { return script_.adopted == "blas another"; }));
}

class SlowReactor : public Reactor {
 protected:
  SlowReactor() : Reactor(false) {}
};

// Both the start of the device host and connect want it.
TEST_F(SlowReactor, OpensTheCollectiveLaneOnce) {
  ASSERT_TRUE(script_.await([this] { return script_.opened == 1; }));
  const auto contribution = ask({.kind = wire::ControlKind::contribute, .rank = 0, .size = 1});
  ASSERT_EQ(contribution.head.kind, wire::ControlKind::contribution);
  const auto contributions =
      wire::pack_blobs(wire::unpack_blobs(contribution.fd.get()).take()).take();
  const auto request = ++requests_;
  send({.kind = wire::ControlKind::connect, .request = request, .rank = 0, .size = 1},
       contributions.get());
  EXPECT_EQ(ask({.kind = wire::ControlKind::memory_use}).head.kind, wire::ControlKind::done);
  script_.change([this] { script_.lanes_open = true; });
  const auto connected = receive();
  EXPECT_EQ(connected.head.kind, wire::ControlKind::done);
  EXPECT_EQ(connected.head.request, request);
  EXPECT_EQ(script_.opened, 1);
  script_.reached.store(true);
}

}  // namespace

Result<std::unique_ptr<Engine>> make_engine(const EngineOptions&) {
  return std::unique_ptr<Engine>(std::make_unique<ScriptedEngine>());
}

std::unique_ptr<Tracing> make_tracing(ActivitySink) {
  return std::make_unique<ScriptedTracing>();
}

}  // namespace troupe::host
