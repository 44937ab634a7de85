// The CUDA engine's lanes, communicator and end.

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <thread>

#include "cuda_engine_rig.hpp"

namespace troupe::host {
namespace {

using namespace std::chrono_literals;

TEST_F(CudaEngine, MarksOrderLanes) {
  constexpr std::int64_t kLength = 8 << 20;
  const auto x = space(kLength * sizeof(double)), y = space(kLength * sizeof(double));
  const std::vector<double> one{1};
  memory::Fill fill{DType::f64, kLength, {}, x};
  std::memcpy(fill.pattern, one.data(), sizeof(double));
  run(fill);
  run(memory::Fill{DType::f64, kLength, {}, y});
  constexpr int kRounds = 300;
  for (int i = 0; i < kRounds; ++i) {
    queue(vectors::Axpby{DType::f64, kLength, Scalar::of(1.0), Scalar::of(1.0), x, y}).take();
  }
  const auto computed = engine_->mark(library_lane("vector")).take();
  engine_->wait(Lane::device_to_host, computed).take();
  const Operand host{kPinned, 0, 0, 0, 0, sizeof(double)};
  auto last = y;
  last.offset += (kLength - 1) * sizeof(double);
  last.bytes = sizeof(double);
  queue(memory::Copy{DType::f64, last, host}).take();
  const auto copied = engine_->mark(Lane::device_to_host).take();
  EXPECT_FALSE(engine_->reached(computed).take());  // 300 passes over 128 MiB take a while
  engine_->release(computed);                       // while the other lane waits for it
  for (int i = 0; i < 1000; ++i) {                  // and its event is used again meanwhile
    engine_->release(engine_->mark(Lane::memory).take());
  }
  wait_until(copied);
  engine_->release(copied);
  double value = 0;
  std::memcpy(&value, pinned_, sizeof(value));
  EXPECT_EQ(value, kRounds);

  std::atomic<int> called{0};
  engine_
      ->call_when_reached(
          library_lane("vector"),
          [](void* argument) { ++*static_cast<std::atomic<int>*>(argument); }, &called)
      .take();
  engine_->synchronize(library_lane("vector")).take();
  EXPECT_EQ(called, 1);
  EXPECT_EQ(engine_->suffer(memory::FaultKind::kill, Lane::memory).code(), Errc::unsupported);
}

/// Streams share connections to the GPU, and what waits at the head of one holds up those behind
/// it: never the detours.
TEST_F(CudaEngine, DetoursGoOnWhileAllLanesWait) {
  constexpr int kEach = 20;
  const auto x = space(512), zeros = space(512);
  run(memory::Fill{DType::u8, 512, {}, zeros});
  // An operation of the lane's library that has been launched before, when the lane was opened.
  const auto queue_one = [&](Queue queue) -> Result<void> {
    const Call call(queue, addresses_, {});
    const auto library = to_string(queue.lane);
    if (library == "vector") return engine_->run(vectors::Multiply{DType::f64, 64, x, x, x}, call);
    if (library == "blas") return engine_->run(blas::Scal{DType::f64, 64, 1, {}, x}, call);
    if (library == "sparse")
      return engine_->run(sparse::Gather{DType::f64, DType::i64, 64, 64, zeros, zeros, x}, call);
    if (library == "rng") return engine_->run(rng::Uniform{DType::f64, 64, 0, 0, 0, x}, call);
    return engine_->run(memory::Fill{DType::u8, 512, {1}, x}, call);
  };
  const Lane lanes[] = {Lane::memory,           Lane::host_to_device, Lane::device_to_host,
                        library_lane("vector"), library_lane("blas"), library_lane("sparse"),
                        library_lane("rng")};
  const auto queue_work = [&](Queue queue) {
    for (int i = 0; i < kEach; ++i) queue_one(queue).take();
  };
  for (const auto lane : lanes)  // now: to make a library may wait for all that runs
    engine_->open_queue({lane, true}).take();
  std::atomic<bool> released{false};
  const auto release = [&released] {
    released = true;
    released.notify_all();
  };
  const std::shared_ptr<void> at_the_end(nullptr, [release](void*) { release(); });
  engine_
      ->call_when_reached(
          Lane::collective, [](void* flag) { static_cast<std::atomic<bool>*>(flag)->wait(false); },
          &released)
      .take();
  const auto behind = engine_->mark(Lane::collective).take();
  for (const auto lane : lanes) {
    engine_->wait(lane, behind).take();
    queue_work(lane);
  }
  for (const auto lane : lanes) {
    const Queue detour{lane, true};
    queue_work(detour);
    const auto done = engine_->mark(detour).take();
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    bool reached = false;
    while (!reached && std::chrono::steady_clock::now() < deadline)
      reached = engine_->reached(done).take();
    EXPECT_TRUE(reached) << to_string(lane);
    engine_->release(done);
  }
  EXPECT_FALSE(engine_->reached(behind).take());
  release();
  wait_until(behind);
  for (const auto lane : lanes) engine_->synchronize(lane).take();
  engine_->synchronize(Lane::collective).take();
  engine_->release(behind);
}

TEST_F(CudaEngine, CommunicatorOfOne) {
  const auto values = random_values<float>(1000, 18);
  const auto source = put(values), destination = space(source.bytes);
  const collective::AllReduce all_reduce{DType::f32, ReduceOp::sum, 0, 1000, source, destination};
  EXPECT_EQ(queue(all_reduce).code(), Errc::world_reformed);

  for (int round = 0; round < 2; ++round) {
    const std::vector<std::vector<std::byte>> own{engine_->collectives().contribute({0, 1}).take()};
    engine_->collectives().connect({0, 1}, own).take();
    EXPECT_EQ(engine_->collectives().connect({0, 1}, own).code(), Errc::invalid);
    const auto expect_copy = [&] {
      EXPECT_EQ(get<float>(destination), values);
      run(memory::Fill{DType::u8, destination.bytes, {}, destination});
    };
    run(all_reduce);
    expect_copy();
    run(collective::Reduce{DType::f32, ReduceOp::avg, 0, 1000, source, destination});
    expect_copy();
    run(collective::AllGather{DType::c64, 500, source, destination});
    expect_copy();
    run(collective::ReduceScatter{DType::f32, ReduceOp::max, 0, 1000, source, destination});
    expect_copy();
    run(collective::AllToAll{DType::f32, 1000, source, destination});
    expect_copy();
    const TailOperand self[] = {collective::sent(source, 0), collective::received(destination, 0)};
    run(collective::Exchange{DType::f32}, self);
    expect_copy();
    run(collective::Broadcast{DType::f32, 0, 0, 1000, source});
    EXPECT_EQ(get<float>(source), values);
    EXPECT_EQ(
        queue(collective::AllReduce{DType::c64, ReduceOp::sum, 0, 1, source, destination}).code(),
        Errc::unsupported);

    const auto refused = [&](const auto& op) {
      ASSERT_TRUE(op.check().ok());
      EXPECT_EQ(queue(op).code(), Errc::invalid) << op.kName;
    };
    refused(collective::Reduce{DType::f32, ReduceOp::sum, 0, 1000, source, {}});
    refused(collective::Reduce{DType::f32, ReduceOp::sum, 1, 1000, source, destination});
    refused(collective::Broadcast{DType::f32, 1, 0, 1000, source});
    const TailOperand stranger[] = {collective::sent(source, 1)};
    EXPECT_EQ(queue(collective::Exchange{DType::f32}, stranger).code(), Errc::invalid);
    const TailOperand unmatched[] = {collective::sent(source, 0)};
    EXPECT_EQ(queue(collective::Exchange{DType::f32}, unmatched).code(), Errc::invalid);

    const auto mark = engine_->mark(Lane::collective).take();
    engine_->collectives().abort();
    engine_->collectives().abort();
    EXPECT_EQ(queue(all_reduce).code(), Errc::world_reformed);
    wait_until(mark);
    engine_->release(mark);
  }
}

/// Makes the engine suffer; ends the process with 0 if the error is of the expected class.
[[noreturn]] void end_by(Engine& engine, memory::FaultKind kind) {
  engine.suffer(kind, library_lane("vector")).take();
  const auto mark = engine.mark(library_lane("vector"));
  auto error = mark.ok() ? Result<bool>(false) : Result<bool>(mark.error());
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  while (error.ok() && !*error && std::chrono::steady_clock::now() < deadline) {
    error = engine.reached(*mark);
  }
  const bool lost = error.code() == Errc::device_lost && error.error().native != 0;
  // From now on every call says so.
  const bool sticky = engine.synchronize(Lane::memory).code() == Errc::device_lost;
  if (!error.ok()) std::fprintf(stderr, "%s\n", error.error().to_string().c_str());
  std::_Exit(lost && sticky ? 0 : 1);
}

using CudaEngineDeathTest = CudaEngine;

TEST_F(CudaEngineDeathTest, FaultsLoseTheDevice) {
  // A fresh process each: a fork of this one could not use CUDA.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const auto kind : {memory::FaultKind::illegal_address, memory::FaultKind::trap,
                          memory::FaultKind::assertion, memory::FaultKind::misaligned}) {
    SCOPED_TRACE(to_string(kind));
    EXPECT_EXIT(end_by(*engine_, kind), testing::ExitedWithCode(0), "device_lost");
  }
}

/// A peer that never comes: NCCL would wait for it for ever. In a process of its own, which the
/// stuck thread ends with.
TEST_F(CudaEngineDeathTest, FormingCanBeGivenUp) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto give_up = [] {
    auto forming = std::async(std::launch::async, [] {
      return engine_->collectives()
          .connect({0, 2}, {engine_->collectives().contribute({0, 2}).take(), {}})
          .code();
    });
    std::this_thread::sleep_for(500ms);
    const auto start = std::chrono::steady_clock::now();
    engine_->collectives().abort();
    const bool given_up = forming.get() == Errc::peer_lost;
    const bool at_once = std::chrono::steady_clock::now() - start < 30s;
    // The next one is not hindered.
    const bool next = engine_->collectives()
                          .connect({0, 1}, {engine_->collectives().contribute({0, 1}).take()})
                          .ok();
    std::_Exit(given_up && at_once && next ? 0 : 1);
  };
  EXPECT_EXIT(give_up(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace troupe::host
