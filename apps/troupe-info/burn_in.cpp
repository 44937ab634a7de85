#include "burn_in.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "health_watch.hpp"
#include "memory_patterns.hpp"
#include "products.hpp"
#include "report_file.hpp"
#include "steps.hpp"
#include "transfers.hpp"

namespace troupe::info {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

/// How much one part of a round does.
struct Sizes {
  std::uint64_t buffer_bytes;  ///< each buffer of the memory test
  std::int64_t product;        ///< rows and columns
  int repetitions;             ///< each product, between two looks at the clock
  std::int64_t message_words;  ///< each transfer
};
/// On a GPU a product keeps all multiprocessors busy, and a copy of four messages does not fit into
/// the cache.
constexpr Sizes kOfGpus{256 * kMiB, 2048, 32, 32 * kMiB / 8};
constexpr Sizes kOfCpus{8 * kMiB, 128, 8, 2 * kMiB / 8};
/// The CPU engine's memory is the host's, and its ranks share it with everybody else.
constexpr std::uint64_t kMostOfCpus = 64 * kMiB;

/// How much device memory the memory test takes: half of what is free.
std::uint64_t memory_to_test(Runtime& runtime) {
  auto& device = runtime.device();
  std::uint64_t free = 0;
  for (const auto& use : device.memory_use().take()) {
    if (use.cause == "free") free = use.bytes;
  }
  if (const auto limit = runtime.config().bytes("memory-limit"); limit != 0)
    free = std::min(free, limit - std::min(limit, device.bytes_held()));
  return device.info().engine == "cuda" ? free / 2 : std::min(free / 2, kMostOfCpus);
}

/// The load of one rank, part by part.
class Load {
 public:
  explicit Load(Runtime& runtime)
      : sizes_(runtime.device().info().engine == "cuda" ? kOfGpus : kOfCpus),
        health_(runtime.device()),
        f32_(runtime.device(), "f32", sizes_.product, sizes_.repetitions),
        f64_(runtime.device(), "f64", sizes_.product, sizes_.repetitions),
        transfers_(runtime, sizes_.message_words),
        memory_(runtime.device(), sizes_.buffer_bytes, memory_to_test(runtime)) {}

  void run_memory(std::uint64_t round) {
    const auto begin = Clock::now();
    memory_.run(round);
    memory_time_ = Clock::now() - begin;
  }
  /// Products for as long as the memory test took, at least one of each kind: half of the time goes
  /// to each.
  void run_products() {
    for (const auto begin = Clock::now();;) {
      f32_.run_timed();
      f64_.run_timed();
      if (Clock::now() - begin >= memory_time_) break;
    }
    for (int i = 0; i < kQueued; ++i) {
      f32_.queue();
      f64_.queue();
    }
    health_.sample();
    f32_.finish();
    f64_.finish();
  }
  void end() { health_.end(); }

  [[nodiscard]] Transfers& transfers() { return transfers_; }
  void tell(BurnIn& facts) const {
    facts.memory = memory_.facts();
    facts.products = {f32_.facts(), f64_.facts()};
    facts.transfers = transfers_.facts();
    facts.health = health_.facts();
    facts.rates = transfers_.rates();
    if (f32_.rate() > 0) facts.rates[rate::kProductF32] = f32_.rate();
    if (f64_.rate() > 0) facts.rates[rate::kProductF64] = f64_.rate();
  }

 private:
  /// Repetitions that are under way while the GPU is asked for its health.
  static constexpr int kQueued = 4;

  Sizes sizes_;
  HealthWatch health_;
  Product<float> f32_;
  Product<double> f64_;
  Transfers transfers_;
  MemoryPatterns memory_;
  Clock::duration memory_time_{};
};

}  // namespace

std::vector<BurnIn> burn_in(Runtime& runtime, const LaunchedJob& job, const RankFacts& facts,
                            std::chrono::nanoseconds time,
                            const std::vector<OrderedFault>& faults) {
  const auto begin = Clock::now();
  BurnIn own;
  own.rank = facts.rank, own.host = facts.host, own.engine = facts.engine;
  own.device_name = facts.device_name, own.uuid = facts.uuid;
  FaultsOfRank waiting(runtime, faults);
  std::unique_ptr<Load> load;
  Steps steps(runtime.device(), job, own);
  std::int64_t part = 0;
  const auto run_part = [&](const std::function<void()>& work) {
    return steps.run([&] {
      waiting.strike(part++);
      work();
    });
  };
  bool going = steps.run([&] { load = std::make_unique<Load>(runtime); });
  if (going) load->transfers().meet(job);
  while (going) {
    going = run_part([&] { load->run_memory(own.rounds); }) &&
            run_part([&] { load->run_products(); }) &&
            run_part([&] { load->transfers().run_alone(); }) &&
            load->transfers().run_together(steps);
    if (!going) break;
    ++own.rounds;
    if (!steps.first_says(Clock::now() - begin < time)) break;
  }
  steps.look_for_losses(runtime.world());
  if (load) {
    load->end();
    load->tell(own);
  }
  own.seconds = seconds_since(begin);
  std::vector<BurnIn> all;
  for (const auto& text : job.gather_text(app::json_text(nlohmann::json(own))))
    all.push_back(nlohmann::json::parse(text).get<BurnIn>());
  return all;
}

Result<std::vector<OrderedFault>> faults_of_burn_in(const Config& config, int ranks) {
  auto faults = ordered_faults(config);
  if (!faults) return faults;
  const auto wrong = [](const std::string& why) {
    return Error{Errc::invalid, 0, "--fault: " + why};
  };
  if (!faults->empty() && config.duration("burn-in").count() == 0)
    return wrong("faults strike in a burn-in only (--burn-in)");
  for (const auto& fault : *faults) {
    const bool other = fault.failing_gpu || fault.death || fault.silent == SilentFault::flip;
    if (other || !fault.phase.empty())
      return wrong(
          "a burn-in has flip-result, sick-gpu and faults of device hosts, each with the number of "
          "a part (0: memory, 1: products, 2: transfers, 3: memory again, …)");
  }
  if (const auto known = check_ranks(*faults, ranks); !known) return known.error();
  return faults;
}

}  // namespace troupe::info
