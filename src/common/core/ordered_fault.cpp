#include <troupe/ordered_fault.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <iterator>

#include <troupe/recovery.hpp>

#include "common/core/settings.hpp"

namespace troupe {
namespace {

bool whole_number(std::string_view text, std::int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

std::optional<RankDeath> rank_death(std::string_view name) {
  for (const auto death : kRankDeaths) {
    if (name == to_string(death)) return death;
  }
  return std::nullopt;
}

std::optional<SilentFault> silent_fault(std::string_view name) {
  for (const auto fault : kSilentFaults) {
    if (name == to_string(fault)) return fault;
  }
  return std::nullopt;
}

Result<OrderedFault> parse_fault(const std::string& text) {
  const auto wrong = [&](const std::string& why) {
    return Error{Errc::invalid, 0,
                 fmt::format("--fault {}: {}; the form is KIND@ITERATION:RANK", text, why)};
  };
  const auto at = text.find('@'), colon = text.find(':', at == std::string::npos ? 0 : at);
  if (at == std::string::npos || colon == std::string::npos) return wrong("'@' or ':' is missing");
  OrderedFault fault;
  const auto name = text.substr(0, at);
  const auto kind = memory::fault_kind(name);
  fault.failing_gpu = name == "failing-gpu";
  fault.death = rank_death(name);
  fault.silent = silent_fault(name);
  if (!kind && !fault.failing_gpu && !fault.death && !fault.silent) {
    std::string silent;
    for (const auto one : kSilentFaults) silent += std::string(to_string(one)) + ", ";
    return wrong(
        fmt::format("unknown kind '{}' (kill, segv, hang, exit, device-failure, failing-gpu, rank, "
                    "node, stop, {}illegal-address, trap, assert, misaligned)",
                    name, silent));
  }
  if (kind) fault.kind = *kind;
  const auto when = text.substr(at + 1, colon - at - 1);
  if (std::find(std::begin(kRecoveryPhases), std::end(kRecoveryPhases), when) !=
      std::end(kRecoveryPhases)) {
    if (fault.failing_gpu || fault.silent) return wrong(name + " comes in an iteration");
    fault.phase = when;
  } else if (!whole_number(when, fault.iteration) || fault.iteration < 0) {
    return wrong(fmt::format("'{}' is neither an iteration nor a phase ({})", when,
                             fmt::join(kRecoveryPhases, ", ")));
  }
  std::int64_t rank = 0;
  if (!whole_number(std::string_view(text).substr(colon + 1), rank) || rank < 0 ||
      rank > INT32_MAX) {
    return wrong(fmt::format("'{}' is no rank", text.substr(colon + 1)));
  }
  fault.rank = static_cast<int>(rank);
  return fault;
}

}  // namespace

OptionSpec fault_option() {
  OptionSpec option{
      "fault", OptionType::list, "", "KIND@ITER:RANK",
      "let a device host fail for real; KIND: kill, segv, hang, exit, device-failure (the "
      "device is given up), and on a GPU illegal-address, trap, assert, misaligned; or "
      "failing-gpu: the GPU says that it is failing; or the rank's process: rank (it is killed), "
      "node (with all of its place), stop (it is stopped); or wrong numbers: flip (a bit of the "
      "state), flip-result (of the next result), sick-gpu (each seventh result), stray-write (into "
      "memory that --check writes guards, or a constant), wrong-product and wrong-products (of "
      "those that --check products looks at); or slow (each step takes longer from then on); ITER: "
      "an "
      "iteration, or a phase of recovery"};
  option.shapes_result = false;
  return option;
}

Result<std::vector<OrderedFault>> ordered_faults(const Config& config) {
  std::vector<OrderedFault> faults;
  for (const auto& text : config.list("fault")) {
    auto fault = parse_fault(text);
    if (!fault) return fault.error();
    faults.push_back(std::move(*fault));
  }
  if (!faults.empty() && Settings::of(config).isolation == Isolation::thread)
    return Error{Errc::invalid, 0,
                 "--isolation: with the device host as a thread a fault ends its rank"};
  return faults;
}

Result<void> check_ranks(const std::vector<OrderedFault>& faults, int ranks) {
  for (const auto& fault : faults) {
    if (fault.rank < ranks) continue;
    return Error{Errc::invalid, 0,
                 fmt::format("--fault: there is no rank {} among {}", fault.rank, ranks)};
  }
  return {};
}

}  // namespace troupe
