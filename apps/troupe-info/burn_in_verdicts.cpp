#include "burn_in_verdicts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>

#include "judged.hpp"

namespace troupe::info {
namespace {

const std::string kReplace = "drain the node, and have the GPU reset or replaced";

/// A bit that differs whenever a pattern wants the other value there.
std::string stuck_bit(const std::vector<MemoryFault>& faults) {
  for (const auto& fault : faults) {
    const auto mask = fault.wanted ^ fault.got;
    if (!fault.located || mask == 0 || (mask & (mask - 1)) != 0) continue;
    const auto same = std::count_if(faults.begin(), faults.end(), [&](const MemoryFault& other) {
      return other.located && other.buffer == fault.buffer &&
             other.first_byte == fault.first_byte && (other.wanted ^ other.got) == mask &&
             (other.got & mask) == (fault.got & mask);
    });
    if (same < 2) continue;
    int bit = 0;
    while ((mask >> bit & 1) == 0) ++bit;
    return fmt::format("; bit {} of it is stuck at {}", bit, (fault.got & mask) != 0 ? 1 : 0);
  }
  return {};
}

std::string in_words(const MemoryFault& fault) {
  const auto where = fmt::format("buffer {}, pattern {}", fault.buffer, fault.pattern);
  if (!fault.still) return where + ": right when it was read again";
  if (!fault.located) return where + ": the place was not found";
  return fmt::format("{}: bytes {} to {}, the first word is {:#018x}, not {:#018x}", where,
                     fault.first_byte, fault.last_byte, fault.got, fault.wanted);
}

/// The products of one dtype on a rank; nullptr: there are none.
const ProductFacts* products_of(const BurnIn& rank, const std::string& dtype) {
  const auto found = std::find_if(rank.products.begin(), rank.products.end(),
                                  [&](const auto& product) { return product.dtype == dtype; });
  return found == rank.products.end() || found->seen.empty() ? nullptr : &*found;
}

/// The digest that more than half of these have; nothing if there is none.
std::optional<std::uint64_t> majority(const std::vector<std::uint64_t>& digests) {
  std::map<std::uint64_t, std::size_t> counts;
  for (const auto digest : digests) ++counts[digest];
  for (const auto& [digest, count] : counts) {
    if (2 * count > digests.size()) return digest;
  }
  return std::nullopt;
}

std::uint64_t most_seen(const ProductFacts& product) {
  return std::max_element(product.seen.begin(), product.seen.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}
std::uint64_t done(const ProductFacts& product) {
  auto all = product.others;
  for (const auto& [digest, count] : product.seen) all += count;
  return all;
}

}  // namespace

Judged judge_end(const std::vector<BurnIn>& ranks) {
  const auto with_error =
      ranks_where(ranks, [](const BurnIn& rank) { return !rank.error.empty(); });
  auto culprits = ranks_where(
      ranks, [](const BurnIn& rank) { return !rank.error.empty() && !rank.by_another; });
  if (culprits.empty()) culprits = with_error;
  if (!culprits.empty())
    return failed("burn-in", culprits,
                  fmt::format("{} (in round {})", culprits[0]->error, culprits[0]->rounds + 1),
                  "the rank's log says more; the devices did less than they were to");
  return fine("burn-in",
              fmt::format("{} round{} of memory, products and transfers in {:.1f} s",
                          ranks[0].rounds, ranks[0].rounds == 1 ? "" : "s", ranks[0].seconds));
}

Judged judge_memory(const std::vector<BurnIn>& ranks) {
  const std::string check = "memory test";
  const auto wrong = ranks_where(ranks, [](const BurnIn& rank) { return rank.memory.wrong > 0; });
  if (!wrong.empty()) {
    const auto& memory = wrong[0]->memory;
    auto found = fmt::format("{} of {} buffers were not as written", memory.wrong, memory.verified);
    if (!memory.faults.empty())
      found += "; " + in_words(memory.faults[0]) + stuck_bit(memory.faults);
    return failed(check, wrong, found, kReplace);
  }
  const auto untried =
      ranks_where(ranks, [](const BurnIn& rank) { return rank.memory.verified == 0; });
  if (!untried.empty()) return not_tried(check, untried);
  const auto& least = *std::min_element(
      ranks.begin(), ranks.end(),
      [](const BurnIn& a, const BurnIn& b) { return a.memory.bytes < b.memory.bytes; });
  return fine(check, fmt::format("{} or more of each device, in {} buffers; {} fills read back as "
                                 "written",
                                 in_words(least.memory.bytes), least.memory.buffers,
                                 least.memory.verified));
}

Judged judge_products(const std::vector<BurnIn>& ranks) {
  const std::string check = "products";
  std::string found;
  for (const std::string dtype : {"f32", "f64"}) {
    const auto untried =
        ranks_where(ranks, [&](const BurnIn& rank) { return products_of(rank, dtype) == nullptr; });
    if (!untried.empty()) return not_tried(check, untried);
    std::vector<std::uint64_t> of_ranks, of_hosts;
    for (const auto& rank : ranks) {
      of_ranks.push_back(most_seen(*products_of(rank, dtype)));
      of_hosts.push_back(products_of(rank, dtype)->expected);
    }
    const auto host = majority(of_hosts), device = majority(of_ranks);
    const auto right = device ? device : host;
    const auto odd_ones = [&](const ProductFacts& product) {
      const auto as_right = right ? product.seen.find(*right) : product.seen.end();
      return done(product) - (as_right == product.seen.end() ? 0 : as_right->second);
    };
    const auto odd = ranks_where(
        ranks, [&](const BurnIn& rank) { return odd_ones(*products_of(rank, dtype)) > 0; });
    const auto size = products_of(ranks[0], dtype)->size;
    if (!odd.empty())
      return failed(
          check, odd,
          fmt::format("{} of {} products of {} ({} x {}) differ from {}",
                      odd_ones(*products_of(*odd[0], dtype)), done(*products_of(*odd[0], dtype)),
                      dtype, size, size, device ? "that of most ranks" : "the host's"),
          kReplace);
    const auto apart = ranks_where(
        ranks, [&](const BurnIn& rank) { return products_of(rank, dtype)->expected != right; });
    if (!apart.empty())
      return failed(
          check, apart,
          fmt::format("all devices have the same product of {}, but the host has another", dtype),
          "have the host's memory and processor tested, too");
    found += fmt::format("{}{} of {}", found.empty() ? "" : ", ",
                         done(*products_of(ranks[0], dtype)), dtype);
  }
  return fine(check, fmt::format("each rank has the host's product each time (rank 0: {})", found));
}

Judged judge_transfers(const std::vector<BurnIn>& ranks) {
  const std::string check = "transfers";
  const auto wrong =
      ranks_where(ranks, [](const BurnIn& rank) { return rank.transfers.wrong > 0; });
  if (!wrong.empty()) {
    const auto& transfers = wrong[0]->transfers;
    return failed(
        check, wrong,
        fmt::format("{} of {} arrived otherwise than they were sent, the first time in {}",
                    transfers.wrong, transfers.done, transfers.first_wrong),
        "drain the node; memory, PCIe, NVLink or the network may be at fault");
  }
  const auto untried =
      ranks_where(ranks, [](const BurnIn& rank) { return rank.transfers.done == 0; });
  if (!untried.empty()) return not_tried(check, untried);
  return fine(check, fmt::format("all that was moved arrived as it was sent ({} on rank 0)",
                                 ranks[0].transfers.done));
}

Judged judge_health(const std::vector<BurnIn>& ranks) {
  const std::string check = "under load";
  const auto new_errors = ranks_where(ranks, [](const BurnIn& rank) {
    const auto& health = rank.health;
    return health.uncorrected_after > health.uncorrected_before ||
           (health.action_after != health.action_before && health.action_after != "none");
  });
  if (!new_errors.empty()) {
    const auto& health = new_errors[0]->health;
    const auto count = health.uncorrected_after - health.uncorrected_before;
    return failed(check, new_errors,
                  count > 0 ? fmt::format("{} new uncorrected error{} of memory", count,
                                          count == 1 ? "" : "s")
                            : "the driver wants: " + health.action_after,
                  kReplace);
  }
  const auto against = [](const BurnIn& rank) {
    const auto& health = rank.health;
    std::vector<std::string> all;
    const auto add = [&all](std::uint64_t before, std::uint64_t after, const char* words) {
      if (after > before) all.push_back(fmt::format("{} new {}", after - before, words));
    };
    add(health.corrected_before, health.corrected_after, "corrected errors of memory");
    add(health.remapped_before, health.remapped_after, "remapped rows of memory");
    add(health.nvlink_errors_before, health.nvlink_errors_after, "errors of NVLinks");
    for (const auto& [reason, count] : health.slowed_by) {
      // A GPU under full load reaches the power that it may draw.
      if (reason != "power cap")
        all.push_back(
            fmt::format("slowed by {} in {} of {} samples", reason, count, health.samples));
    }
    return fmt::format("{}", fmt::join(all, ", "));
  };
  const auto uneasy =
      ranks_where(ranks, [&](const BurnIn& rank) { return !against(rank).empty(); });
  if (!uneasy.empty())
    return warned(check, uneasy, against(*uneasy[0]), "watch this GPU; see to the node's cooling");
  const auto known = ranks_where(ranks, [](const BurnIn& rank) { return rank.health.known; });
  if (known.empty()) return fine(check, "no device tells of its health");
  const auto& hottest =
      **std::max_element(known.begin(), known.end(), [](const BurnIn* a, const BurnIn* b) {
        return a->health.hottest_celsius < b->health.hottest_celsius;
      });
  return fine(check,
              fmt::format("no new errors on {} of {} ranks; the hottest GPU, of rank {}, came "
                          "to {} C and {:.0f} W",
                          known.size(), ranks.size(), hottest.rank, hottest.health.hottest_celsius,
                          hottest.health.most_watts));
}

std::vector<Judged> judge_burn_in(const std::vector<BurnIn>& ranks) {
  std::vector<Judged> all = {judge_end(ranks), judge_memory(ranks), judge_products(ranks),
                             judge_transfers(ranks)};
  for (const auto* check : kRateChecks) all.push_back(judge_rates(ranks, check));
  all.push_back(judge_health(ranks));
  return all;
}

std::vector<std::string> bad_hosts(const std::vector<Judged>& verdicts,
                                   const std::vector<BurnIn>& ranks) {
  std::set<std::string> hosts;
  for (const auto& judged : verdicts) {
    for (const int failed : judged.failed) {
      for (const auto& rank : ranks) {
        if (rank.rank == failed) hosts.insert(rank.host);
      }
    }
  }
  return {hosts.begin(), hosts.end()};
}

std::string line_of_hosts(const std::vector<std::string>& bad) {
  return bad.empty() ? "burn-in: no bad host"
                     : fmt::format("burn-in: bad hosts: {}", fmt::join(bad, ","));
}

}  // namespace troupe::info
