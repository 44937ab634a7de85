#include <fmt/format.h>

#include <algorithm>

#include "judged.hpp"

namespace troupe::info {
namespace {

constexpr double kFailsBelow = 0.5;  ///< a share of the median rate

/// A rate that is compared.
struct RateKind {
  const char* name;
  const char* check;
  const char* words;
  const char* unit;
  double warns_below;  ///< a share of the median; a link has more reasons to be slow
};
constexpr RateKind kRates[] = {
    {rate::kCopy, "copy rate", "copies within the device", "GB/s", 0.8},
    {rate::kProductF32, "product rate", "f32", "GFLOP/s", 0.8},
    {rate::kProductF64, "product rate", "f64", "GFLOP/s", 0.8},
    {rate::kToDevice, "host copies", "to the device", "GB/s", 0.7},
    {rate::kFromDevice, "host copies", "from the device", "GB/s", 0.7},
    {rate::kPeer, "peer rate", "fetches from the next rank of the node", "GB/s", 0.7},
    {rate::kAllReduce, "collectives", "all_reduce", "GB/s", 0.7},
    {rate::kRing, "collectives", "messages to the next rank", "GB/s", 0.7}};

/// The median of the rates, the faster one of the two in the middle.
double median(std::vector<double> rates) {
  std::sort(rates.begin(), rates.end());
  return rates[rates.size() / 2];
}

/// One rank's rate beside the median of its kind of device.
struct Compared {
  const BurnIn* rank;
  const RateKind* kind;
  double rate, median;
  [[nodiscard]] double share() const { return rate / median; }
};

std::vector<Compared> compare(const std::vector<BurnIn>& ranks, const RateKind& kind) {
  std::map<std::string, std::vector<double>> rates;  // by the kind of device
  for (const auto& rank : ranks) {
    if (const auto found = rank.rates.find(kind.name); found != rank.rates.end())
      rates[rank.device_name].push_back(found->second);
  }
  std::vector<Compared> all;
  for (const auto& rank : ranks) {
    if (const auto found = rank.rates.find(kind.name); found != rank.rates.end())
      all.push_back({&rank, &kind, found->second, median(rates[rank.device_name])});
  }
  return all;
}

std::string in_words(double rate, const RateKind& kind) {
  return fmt::format("{:.{}f} {}", rate, rate < 10 ? 2 : rate < 100 ? 1 : 0, kind.unit);
}

bool less(const Compared& a, const Compared& b) {
  return a.share() < b.share();
}

/// "copies within the device 2100 GB/s, rank 3 0.97 of it"
std::string told(const std::vector<Compared>& all) {
  const auto& last = *std::min_element(all.begin(), all.end(), less);
  auto text = fmt::format("{} {}", last.kind->words, in_words(last.median, *last.kind));
  if (all.size() > 1) text += fmt::format(", rank {} {:.2f} of it", last.rank->rank, last.share());
  return text;
}

/// The slowest one is told; only ranks that are as bad are counted.
Judged judge_slow(const std::string& check, std::vector<Compared> slow) {
  std::sort(slow.begin(), slow.end(), less);
  const auto& last = slow[0];
  const bool fails = last.share() < kFailsBelow;
  std::vector<const BurnIn*> culprits;
  for (const auto& one : slow) {
    if (fails && one.share() >= kFailsBelow) break;
    if (std::find(culprits.begin(), culprits.end(), one.rank) == culprits.end())
      culprits.push_back(one.rank);
  }
  const auto text =
      fmt::format("{}: {}, {:.2f} of the median {}", last.kind->words,
                  in_words(last.rate, *last.kind), last.share(), in_words(last.median, *last.kind));
  const std::string remedy =
      "nvidia-smi -q -d CLOCK,PERFORMANCE tells of clocks, nvidia-smi topo -m and lspci of links";
  return fails ? failed(check, culprits, text, remedy) : warned(check, culprits, text, remedy);
}

}  // namespace

Judged judge_rates(const std::vector<BurnIn>& ranks, const std::string& check) {
  std::vector<Compared> slow;
  std::string found;
  for (const auto& kind : kRates) {
    if (kind.check != check) continue;
    const auto all = compare(ranks, kind);
    if (all.empty()) continue;
    found += (found.empty() ? "" : "; ") + told(all);
    for (const auto& one : all) {
      if (one.rank->engine != "cpu" && one.share() < kind.warns_below) slow.push_back(one);
    }
  }
  if (!slow.empty()) return judge_slow(check, std::move(slow));
  const auto without = ranks_where(ranks, [&](const BurnIn& rank) {
    return check == "peer rate" && !rank.transfers.peer_error.empty();
  });
  if (!without.empty())
    return warned(check, without, "not measured: " + without[0]->transfers.peer_error,
                  "see the check of peer access");
  const auto gave_up = ranks_where(ranks, [](const BurnIn& rank) { return rank.rounds == 0; });
  if (!gave_up.empty()) return not_tried(check, gave_up);
  if (found.empty()) return fine(check, "no rank has another one to exchange data with");
  if (ranks[0].engine == "cpu") found += "; not judged: ranks of the cpu engine share cores";
  return fine(check, found);
}

}  // namespace troupe::info
