#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include <troupe/lib/blas.hpp>
#include <troupe/lib/channel.hpp>
#include <troupe/lib/collective.hpp>
#include <troupe/lib/memory.hpp>
#include <troupe/lib/vector.hpp>

#include "device_host/device_host.hpp"

/// An engine that does what a test says.
namespace troupe::host {

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
inline Script* script = nullptr;

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

class ScriptedMemory final : public EngineMemory {
 public:
  std::uint64_t free() override { return 1; }
  std::vector<std::pair<std::string, std::uint64_t>> use() override {
    return {{"slabs", 2u << 20}, {"blas", 64u << 20}, {"nothing", 5}};
  }
  Result<Slab> make_slab(std::uint64_t bytes) override {
    if (bytes > 1u << 30) return Error{Errc::out_of_memory, 2, "no room"};
    Slab slab;
    slab.fd.reset(::memfd_create("slab", MFD_CLOEXEC));
    made_.emplace_back(bytes);
    slab.base = made_.back().data();
    return slab;
  }
  Result<std::byte*> map_slab(int, std::uint64_t) override { return unsupported(); }
  void unmap_slab(std::byte*, std::uint64_t) override {}
  Result<std::byte*> map_foreign(int, std::uint64_t) override { return unsupported(); }
  void unmap_foreign(std::byte*, std::uint64_t) override {}
  Result<std::byte*> map_pinned(int, std::uint64_t) override { return unsupported(); }
  void unmap_pinned(std::byte*, std::uint64_t) override {}

 private:
  static Error unsupported() { return {Errc::unsupported, 0, "no part of the test"}; }
  std::vector<std::vector<std::byte>> made_;
};

class ScriptedLibraries final : public EngineLibraries {
 public:
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
  void discard(Lane) override {
    script->change([] { ++script->discarded; });
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
  EngineMemory& memory() override { return memory_; }
  EngineLibraries& libraries() override { return libraries_; }
  EngineGraphs& graphs() override { return graphs_; }

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
  ScriptedMemory memory_;
  ScriptedLibraries libraries_;
  EngineGraphs graphs_;
  alignas(256) std::array<std::byte, kScratchCellBytes> cells_{};
  ScriptedCollectives collectives_;
};

}  // namespace troupe::host
