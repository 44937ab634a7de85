#include <cstdio>
#include <thread>

#include <troupe/actor.hpp>
#include <troupe/troupe.hpp>

// A loader on rank 0 fills batches of numbers on its GPU; workers on the other ranks fetch them
// from GPU to GPU, by the tokens in its messages, and add up their squares on theirs. What a fault
// of a GPU has spoilt is done again.

using namespace troupe;
using namespace std::chrono_literals;

constexpr std::int64_t kLength = 100'000;
struct Batch {
  std::int64_t number = -1;  // -1: none is left, or not now
  GpuToken data{};
};
struct Next {
  using Reply = Batch;
  int worker;
};
struct Done {
  std::int64_t number;
  bool good;
  double sum;
};
struct Progress {
  std::int64_t left;
  double sum;
};
struct Ask {
  using Reply = Progress;
};
struct Go {};

class Loader : public Actor<Loader, Next, Done, Ask> {
 public:
  Loader(Device* device, int workers, std::int64_t batches) : device_(device), left_(batches) {
    for (int i = 0; i < workers; ++i) buffers_.push_back(device->alloc<double>(kLength));
    for (std::int64_t i = batches; i > 0; --i) waiting_.push_back(i);
  }
  Batch on(Next next) {
    if (waiting_.empty()) return {};
    const auto number = waiting_.back();
    waiting_.pop_back();
    auto& data = buffers_[static_cast<std::size_t>(next.worker)];
    if (!data.valid()) data.renew();  // it was lost with the device host
    device_->fill(data, static_cast<double>(number));
    return {number, data.token()};
  }
  void on(Done done) {
    if (!done.good) return waiting_.push_back(done.number);
    --left_;
    sum_ += done.sum;
  }
  Progress on(Ask) { return {left_, sum_}; }

 private:
  Device* device_;
  std::vector<GpuRef<double>> buffers_;  // one for each worker
  std::vector<std::int64_t> waiting_;
  std::int64_t left_;
  double sum_ = 0;
};

class Worker : public Actor<Worker, Go, Batch, Done> {
 public:
  explicit Worker(Runtime* runtime)
      : device_(&runtime->device()),
        world_(&runtime->world()),
        rank_(world_->rank()),
        loader_(world_->actor<Loader>("loader", Rank(0))),
        data_(device_->alloc<double>(kLength)),
        sum_(device_->alloc<double>(1)),
        result_(device_->pinned<double>(1)) {}
  void on_start() override { context().schedule(0s, Go{}); }
  void on(Go) {
    context().pipe(loader_.ask(Next{rank_}, 60s),
                   [](const Result<Batch>& batch) { return batch.ok() ? *batch : Batch{}; });
  }
  void on(const Batch& batch) {
    if (batch.number < 0) return (void)context().schedule(10ms, Go{});
    for (auto* ref : {&data_, &sum_})
      if (!ref->valid()) ref->renew();
    const auto fetched = world_->fetch(batch.data, data_);
    const auto summed = device_->blas().dot(data_, data_, sum_);
    const auto copied = device_->copy(sum_, result_);
    context().pipe(when_all({fetched, summed, copied}), [number = batch.number](const auto& all) {
      return Done{number, all.ok(), 0};
    });
  }
  void on(Done done) {
    loader_.tell(Done{done.number, done.good, result_.data()[0]}).take();
    context().schedule(done.good ? 0ms : 10ms, Go{});
  }

 private:
  Device* device_;
  World* world_;
  int rank_;
  RemoteActor<Loader> loader_;
  GpuRef<double> data_, sum_;
  PinnedBuffer<double> result_;
};

int pipeline(Runtime& runtime) {
  auto& world = runtime.world();
  const auto batches = runtime.config().integer("batches"),
             victim = runtime.config().integer("kill");
  bool kill = world.rank() == victim;
  if (world.rank() == 0) {
    world
        .publish("loader", runtime.actors().spawn<Loader>({.name = "loader"}, &runtime.device(),
                                                          world.size(), batches))
        .take();
  }
  world.barrier();  // the loader is there
  if (world.rank() > 0 || world.size() == 1)
    runtime.actors().spawn<Worker>({.name = "worker"}, &runtime);
  const auto loader = world.actor<Loader>("loader", Rank(0));
  Progress progress{};
  do {
    std::this_thread::sleep_for(1ms);
    world.wait_active()
        .take();  // after a fault: what is asked from now on belongs to the new epoch
    progress = loader.ask(Ask{}, 60s).get();
    if (kill && progress.left <= batches / 2) {
      runtime.device().inject(memory::FaultKind::kill);
      kill = false;
    }
  } while (progress.left > 0);
  world.wait_active().take();
  const auto n = static_cast<double>(batches);
  const double expected = n * (n + 1) * (2 * n + 1) / 6 * kLength;
  if (world.rank() == 0)
    std::printf("%d batches, %zu recoveries: the sum is %.0f, expected %.0f\n",
                static_cast<int>(batches), world.recoveries().size(), progress.sum, expected);
  return progress.sum == expected ? kExitSuccess : kExitFailure;
}

int main(int argc, char** argv) {
  return run_program(argc, argv,
                     {"actor-pipeline",
                      "Batches from a loader on one rank to workers on the others, by actors.",
                      {{"batches", OptionType::integer, "200", "N", "how many", {}, "1"},
                       {"kill",
                        OptionType::integer,
                        "-1",
                        "RANK",
                        "kill this rank's device host when half of them are done",
                        {},
                        "-1"}}},
                     pipeline);
}
