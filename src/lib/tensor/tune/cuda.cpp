#include "lib/tensor/tune/cuda.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "common/wire/tuning_mark.hpp"
#include "device_host/engine/cuda/stream_memory.hpp"

namespace troupe::host::cuda {
namespace {

using tensor::Algorithm;
using tensor::Method;

constexpr std::uint64_t kChoice = 0x656e'7574'2d74'6e;  // "nt-tune"

/// What a device host that cannot go on says, whatever was asked of it.
bool ends_all(Errc code) {
  return code == Errc::device_lost || code == Errc::device_failed;
}

/// A kernel that runs.
struct Candidate {
  Algorithm algorithm;
  Plan plan;
  double seconds = std::numeric_limits<double>::infinity();
};

}  // namespace

struct Tuner::Choice {
  std::array<char, 16> mark = wire::kTuningMark;
  PlanHeader header;
  PlanKey key;
  tensor::ContractTuning outcome;
};

void Tuner::know(const PlanKey& key, const tensor::ContractTuning& outcome) {
  std::erase_if(known_, [&](const Known& one) { return one.key == key; });
  if (known_.size() == kMostKnown) known_.erase(known_.begin());
  known_.push_back({key, outcome});
}

bool Tuner::adopt(std::span<const std::byte> bytes) {
  if (!wire::is_tuning(bytes)) return false;
  Choice choice;
  if (bytes.size() != sizeof choice) return true;
  std::memcpy(static_cast<void*>(&choice), bytes.data(), sizeof choice);
  if (choice.header == PlanHeader::here(kChoice, services_.multiprocessors()))
    know(choice.key, choice.outcome);
  return true;
}

Result<tensor::ContractTuning> Tuner::measure(cutensorHandle_t handle,
                                              const tensor::TuneContract& how, PlanKey key,
                                              PlanOperands operands, std::size_t result_bytes,
                                              Queue queue) {
  const auto found =
      std::find_if(known_.begin(), known_.end(), [&](const Known& one) { return one.key == key; });
  if (found != known_.end() && how.again == 0) return found->outcome;
  const auto asked = key;
  const auto stream = services_.stream(queue);
  StreamMemory result, workspace;
  const auto place = result.reserve(result_bytes, stream);
  if (!place) return place.error();
  operands.result = *place;
  const auto run = [&](const Plan& plan) {
    return plan.execute(handle, PlanKind::contract, operands, workspace.get(), stream);
  };

  // The first kernels of all methods, then the second ones. The first run of each loads it.
  std::vector<Candidate> candidates;
  std::optional<Error> refused;
  const auto consider = [&](const Algorithm& algorithm) -> Result<bool> {
    if (candidates.size() == how.candidates) return true;
    key.algorithm = algorithm;
    auto plan = Plan::make(handle, key);
    Result<void> ran = plan.ok() ? Result<void>() : Result<void>(plan.error());
    if (ran.ok()) {
      const auto memory = workspace.reserve(plan->workspace_bytes(), stream);
      ran = memory.ok() ? run(*plan) : Result<void>(memory.error());
    }
    if (ran.ok()) {
      candidates.push_back({algorithm, std::move(*plan)});
      return true;
    }
    if (ends_all(ran.code())) return ran.error();
    if (!refused) refused = ran.error();
    return false;
  };
  constexpr std::array kMethods{Method::gett, Method::tgett, Method::ttgt};
  std::vector<Algorithm> firsts{{}, {.method = Method::patient}};
  if (asked.algorithm != Algorithm{}) firsts.push_back(asked.algorithm);
  for (const auto& algorithm : firsts) {
    if (const auto taken = consider(algorithm); !taken) return taken.error();
  }
  std::array<bool, kMethods.size()> goes_on;
  goes_on.fill(true);
  for (std::uint16_t rank = 0; rank < tensor::kMostRanks; ++rank) {
    for (std::size_t i = 0; i < kMethods.size(); ++i) {
      if (!goes_on[i]) continue;
      const auto taken = consider({.method = kMethods[i], .rank = rank});
      if (!taken) return taken.error();
      goes_on[i] = *taken;
    }
  }
  if (candidates.empty())
    return refused.value_or(Error{Errc::unsupported, 0, "no kernel of cuTENSOR runs here"});

  Event begin, end;
  TROUPE_CUDA_TRY(cudaEventCreate(begin.out()));
  TROUPE_CUDA_TRY(cudaEventCreate(end.out()));
  constexpr int kRounds = 3;  // one behind another, so that clocks favour none
  for (int round = 0; round < kRounds; ++round) {
    for (auto& candidate : candidates) {
      TROUPE_CUDA_TRY(cudaEventRecord(begin.get(), stream));
      for (std::uint32_t repeat = 0; repeat < how.repeats; ++repeat)
        TROUPE_CUDA_PROPAGATE(run(candidate.plan));
      TROUPE_CUDA_TRY(cudaEventRecord(end.get(), stream));
      TROUPE_CUDA_TRY(cudaEventSynchronize(end.get()));
      float milliseconds = 0;
      TROUPE_CUDA_TRY(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()));
      candidate.seconds = std::min(candidate.seconds, double{milliseconds} / 1e3 / how.repeats);
    }
  }
  const auto& fastest = *std::min_element(
      candidates.begin(), candidates.end(),
      [](const Candidate& x, const Candidate& y) { return x.seconds < y.seconds; });
  const tensor::ContractTuning outcome{.algorithm = fastest.algorithm,
                                       .candidates = static_cast<std::int64_t>(candidates.size()),
                                       .seconds = fastest.seconds,
                                       .seconds_before = candidates.front().seconds,
                                       .workspace = fastest.plan.workspace_bytes()};
  know(asked, outcome);
  const Choice choice{.header = PlanHeader::here(kChoice, services_.multiprocessors()),
                      .key = asked,
                      .outcome = outcome};
  const auto bytes = std::as_bytes(std::span(&choice, 1));
  new_.emplace_back(bytes.begin(), bytes.end());
  return outcome;
}

}  // namespace troupe::host::cuda
