#include <cstdio>
#include <map>
#include <numeric>
#include <thread>

#include <troupe/actor.hpp>
#include <troupe/troupe.hpp>

using namespace troupe;
using namespace std::chrono_literals;

constexpr std::int64_t kLength = 100'000;
struct Batch {
  std::int64_t number;  // 0: all are done; -1: all are under way
  GpuToken data{};
};
struct Next {  // a worker's question; `done`: the batch that it has done; 0: none, or it failed
  using Reply = Batch;
  int worker;
  std::int64_t done;
};

class Loader : public Actor<Loader, Next> {  // on rank 0: fills batches in its GPU's memory
 public:
  Loader(Device* device, std::int64_t batches)
      : device_(device), waiting_(batches), left_(batches) {}
  Batch on(Next next) {
    auto& [number, data] = given_[next.worker];
    if (next.done != 0) --left_, number = 0;
    if (number == 0 && waiting_ > 0) number = waiting_--;
    if (number == 0) return {left_ == 0 ? 0 : -1};
    if (!data.valid()) data = device_->alloc<double>(kLength);  // a fault takes what was written
    device_->fill(data, static_cast<double>(number));
    return {number, data.token()};
  }

 private:
  Device* device_;
  std::int64_t waiting_, left_;
  std::map<int, std::pair<std::int64_t, GpuRef<double>>> given_;  // what each worker has
};

int pipeline(Runtime& runtime) {
  auto& device = runtime.device();
  auto& world = runtime.world();
  const auto batches = runtime.config().integer("batches");
  bool kill = world.rank() == runtime.config().integer("kill");
  if (world.rank() == 0) {
    const auto own = runtime.actors().spawn<Loader>({.name = "loader"}, &device, batches);
    world.publish("loader", own).take();
  }
  world.barrier();  // the loader is there
  const auto loader = world.actor<Loader>("loader", Rank(0));
  auto data = device.alloc<double>(kLength), sum = device.alloc<double>(1);
  const auto result = device.pinned<double>(1);
  double total = 0;
  for (Next next{world.rank(), 0};;) {
    world.wait_active().take();  // after a fault: what comes now belongs to the new epoch
    const Batch batch = loader.ask(next, 60s).get();
    next.done = 0;
    if (batch.number == 0) break;
    if (batch.number < 0) {
      std::this_thread::sleep_for(1ms);
      continue;
    }
    for (auto* ref : {&data, &sum})
      if (!ref->valid()) ref->renew();
    const auto done = when_all({world.fetch(batch.data, data),  // from GPU to GPU
                                device.blas().dot(data, data, sum), device.copy(sum, result)});
    if (kill && batch.number <= batches / 2) {
      device.inject(memory::FaultKind::kill);
      kill = false;
    }
    if (!done.wait().ok()) continue;  // a fault has spoilt it: once more
    total += result.data()[0], next.done = batch.number;
  }
  const auto totals = world.gather_values(total);
  const auto all = std::accumulate(totals.begin(), totals.end(), 0.0);
  const auto n = static_cast<double>(batches);
  const double expected = n * (n + 1) * (2 * n + 1) / 6 * kLength;
  if (world.rank() == 0)
    std::printf("%d batches, %zu recoveries: the sum is %.0f, expected %.0f\n",
                static_cast<int>(batches), world.recoveries().size(), all, expected);
  return all == expected ? kExitSuccess : kExitFailure;
}

int main(int argc, char** argv) {
  return run_program(argc, argv,
                     {"actor-pipeline",
                      "Batches from a loader on one rank to workers on all, by an actor.",
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
