#include "report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <nlohmann/json.hpp>

namespace troupe::flight {
namespace {

double to_ms(std::int64_t ns) {
  return static_cast<double>(ns) / 1e6;
}

/// What times are shown against: the break, else the last dump.
std::int64_t origin(const std::vector<Dump>& dumps, const Analysis& analysis) {
  if (analysis.collective != 0) return analysis.time_ns;
  std::int64_t last = 0;
  for (const auto& dump : dumps) last = std::max(last, dump.time_ns);
  return last;
}

/// The last operations of a rank up to the break and the one behind it.
std::vector<const Operation*> around(const Dump& dump, const Analysis& analysis, std::size_t rows) {
  auto end = dump.operations.size();
  for (std::size_t i = 0; i < dump.operations.size(); ++i) {
    const auto& operation = dump.operations[i];
    if (analysis.collective != 0 && operation.group == 0 && operation.epoch == analysis.epoch &&
        operation.collective == analysis.collective)
      end = std::min(dump.operations.size(), i + 2);
  }
  std::vector<const Operation*> shown;
  for (auto i = end - std::min(end, rows); i < end; ++i) shown.push_back(&dump.operations[i]);
  return shown;
}

std::string list(const std::vector<int>& ranks) {
  constexpr std::size_t kShown = 16;
  std::string text = ranks.size() == 1 ? "rank" : "ranks";
  for (std::size_t i = 0; i < std::min(ranks.size(), kShown); ++i)
    text += (i == 0 ? " " : ", ") + std::to_string(ranks[i]);
  return ranks.size() > kShown ? text + fmt::format(" and {} more", ranks.size() - kShown) : text;
}

/// The count of an operation, with its unit: collectives for a bundle, else elements.
std::string amount(const std::string& name, std::uint64_t count) {
  return fmt::format("{} {}", count, name == "collective.bundle" ? "collectives" : "elements");
}

std::string describe(const Operation& operation) {
  auto text = fmt::format("{} (ticket {}", operation.name, operation.ticket);
  if (operation.count != 0) text += ", " + amount(operation.name, operation.count);
  if (operation.peer >= 0) text += fmt::format(", rank {}", operation.peer);
  if (operation.group != 0) text += fmt::format(", group {}", operation.group);
  return text + (operation.completed_ns != 0 ? "), completed"
                 : operation.issued_ns != 0  ? "), issued and not completed"
                                             : "), not issued");
}

/// "2.17": collective 17 of the world in epoch 2; "2.g3.17": of group 3.
std::string place_of(const Operation& operation) {
  if (operation.epoch == 0) return "-";
  const auto group = operation.group != 0 ? fmt::format("g{}.", operation.group) : std::string();
  return fmt::format("{}.{}{}", operation.epoch, group, operation.collective);
}

std::string stamp(std::int64_t time_ns, std::int64_t origin_ns) {
  return time_ns == 0 ? "-" : fmt::format("{:.3f}", to_ms(time_ns - origin_ns));
}

const Dump& dump_of(const std::vector<Dump>& dumps, int rank) {
  return *std::find_if(dumps.begin(), dumps.end(),
                       [&](const Dump& dump) { return dump.rank == rank; });
}

std::string verdict(const std::vector<Dump>& dumps, const Analysis& analysis) {
  if (analysis.collective == 0) {
    std::string text = "No rank waits for another in a collective.\n";
    for (std::size_t i = 0; i < dumps.size(); ++i) {
      if (const auto* const open = analysis.unfinished[i])
        text += fmt::format("  rank {} is at {}\n", dumps[i].rank, describe(*open));
    }
    return text;
  }
  auto text = fmt::format("Epoch {}, collective {}: {} of {} is not completed everywhere.\n",
                          analysis.epoch, analysis.collective, analysis.operation,
                          amount(analysis.operation, analysis.count));
  if (!analysis.waiting.empty()) text += fmt::format("  in it: {}\n", list(analysis.waiting));
  for (const auto& culprit : analysis.culprits) {
    text +=
        fmt::format("  waited for: rank {}, which {}\n", culprit.rank, to_string(culprit.stand));
    if (culprit.at == nullptr) continue;
    const auto since = dump_of(dumps, culprit.rank).time_ns - culprit.at->submitted_ns;
    text += fmt::format("    it is at {}, submitted {:.3f} ms before its dump\n",
                        describe(*culprit.at), to_ms(since));
  }
  if (analysis.culprits.empty())
    text += "  every rank has issued it, none has completed it: look at what connects them\n";
  return text;
}

nlohmann::json to_json(const Health& said) {
  return {{"time_ns", said.time_ns},
          {"kind", said.kind},
          {"text", said.text},
          {"failing", said.failing}};
}

nlohmann::json to_json(const Operation& operation) {
  return {{"ticket", operation.ticket},
          {"op", operation.name},
          {"bytes", operation.bytes},
          {"count", operation.count},
          {"peer", operation.peer},
          {"epoch", operation.epoch},
          {"group", operation.group},
          {"collective", operation.collective},
          {"submitted_ns", operation.submitted_ns},
          {"issued_ns", operation.issued_ns},
          {"completed_ns", operation.completed_ns},
          {"outcome", operation.outcome},
          {"repeated", operation.repeated}};
}

}  // namespace

std::string to_text(const std::vector<Dump>& dumps, const Analysis& analysis, std::size_t rows) {
  auto text = fmt::format("job {}: dumps of {} of {} ranks\n", dumps.front().job, dumps.size(),
                          dumps.front().size);
  for (const auto& dump : dumps) {
    text += fmt::format("  rank {:>4} on {}: {}{}{}\n", dump.rank, dump.host, dump.reason,
                        dump.whereabouts.empty() ? "" : "; ", dump.whereabouts);
    for (const auto& said : dump.health) {
      text += fmt::format("    its GPU said, {:.3f} ms before the dump: {}{}\n",
                          to_ms(dump.time_ns - said.time_ns), said.text,
                          said.failing ? " (failing)" : "");
    }
  }
  if (!analysis.no_dump.empty())
    text += fmt::format("  no dump of {}: it may be what the others wait for\n",
                        list(analysis.no_dump));
  text += "\n" + verdict(dumps, analysis);
  const auto zero = origin(dumps, analysis);
  text += fmt::format(
      "\nTimes in ms, 0 being {}.\n{:>4} {:>8}  {:<26} {:>9} {:>12} {:>13} {:>11} "
      "{:>11} {:>11}  {}\n",
      analysis.collective != 0 ? "when the first rank submitted that collective" : "the last dump",
      "rank", "ticket", "operation", "epoch.no", "elements", "bytes", "submitted", "issued",
      "completed", "outcome");
  for (const auto& dump : dumps) {
    for (const auto* operation : around(dump, analysis, rows)) {
      const auto place = place_of(*operation);
      text += fmt::format("{:>4} {:>8}  {:<26} {:>9} {:>12} {:>13} {:>11} {:>11} {:>11}  {}{}\n",
                          dump.rank, operation->ticket, operation->name, place, operation->count,
                          operation->bytes, stamp(operation->submitted_ns, zero),
                          stamp(operation->issued_ns, zero), stamp(operation->completed_ns, zero),
                          operation->outcome, operation->repeated ? " (repeated)" : "");
    }
  }
  return text;
}

std::string to_json(const std::vector<Dump>& dumps, const Analysis& analysis, std::size_t rows) {
  nlohmann::json json{{"app", "troupe-flight"},     {"job", dumps.front().job},
                      {"size", dumps.front().size}, {"no_dump", analysis.no_dump},
                      {"break", nullptr},           {"ranks", nlohmann::json::array()}};
  if (analysis.collective != 0) {
    auto culprits = nlohmann::json::array();
    for (const auto& culprit : analysis.culprits) {
      culprits.push_back({{"rank", culprit.rank},
                          {"stand", to_string(culprit.stand)},
                          {"at", culprit.at != nullptr ? to_json(*culprit.at) : nullptr}});
    }
    json["break"] = {{"epoch", analysis.epoch},     {"collective", analysis.collective},
                     {"op", analysis.operation},    {"count", analysis.count},
                     {"time_ns", analysis.time_ns}, {"waiting", analysis.waiting},
                     {"waited_for", culprits}};
  }
  for (std::size_t i = 0; i < dumps.size(); ++i) {
    auto operations = nlohmann::json::array();
    for (const auto* operation : around(dumps[i], analysis, rows))
      operations.push_back(to_json(*operation));
    auto health = nlohmann::json::array();
    for (const auto& said : dumps[i].health) health.push_back(to_json(said));
    const auto* const open = analysis.unfinished[i];
    json["ranks"].push_back({{"rank", dumps[i].rank},
                             {"host", dumps[i].host},
                             {"reason", dumps[i].reason},
                             {"whereabouts", dumps[i].whereabouts},
                             {"time_ns", dumps[i].time_ns},
                             {"health", health},
                             {"unfinished", open != nullptr ? to_json(*open) : nullptr},
                             {"operations", operations}});
  }
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace troupe::flight
