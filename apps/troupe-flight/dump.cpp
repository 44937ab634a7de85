#include "dump.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

namespace troupe::flight {
namespace {

Operation read_operation(const nlohmann::json& json, std::int64_t offset_ns) {
  const auto time = [&](const char* key) {
    return json.contains(key) ? json.at(key).get<std::int64_t>() + offset_ns : 0;
  };
  Operation operation;
  operation.ticket = json.at("ticket");
  operation.name = json.at("op");
  operation.bytes = json.at("bytes");
  operation.count = json.value("count", std::uint64_t{0});
  operation.peer = json.value("peer", -1);
  operation.epoch = json.value("epoch", std::uint32_t{0});
  operation.group = json.value("group", std::uint32_t{0});
  operation.collective = json.value("collective", std::uint32_t{0});
  operation.submitted_ns = time("submitted_ns");
  operation.issued_ns = time("issued_ns");
  operation.completed_ns = time("completed_ns");
  operation.outcome = json.value("outcome", std::string());
  operation.repeated = json.value("repeated", false);
  return operation;
}

Dump read_json(const nlohmann::json& json) {
  Dump dump;
  const auto offset_ns = json.at("clock_offset_ns").get<std::int64_t>();
  dump.job = json.at("job");
  dump.host = json.at("host");
  dump.reason = json.at("reason");
  dump.whereabouts = json.value("whereabouts", std::string());
  dump.rank = json.at("rank");
  dump.size = json.at("size");
  dump.time_ns = json.at("time_ns").get<std::int64_t>() + offset_ns;
  dump.epoch = json.at("epoch");
  dump.collectives = json.at("collectives");
  for (const auto& said : json.value("health", nlohmann::json::array())) {
    dump.health.push_back({said.at("time_ns").get<std::int64_t>() + offset_ns, said.at("kind"),
                           said.at("text"), said.at("failing")});
  }
  for (const auto& record : json.at("records"))
    dump.operations.push_back(read_operation(record, offset_ns));
  std::sort(dump.operations.begin(), dump.operations.end(),
            [](const Operation& a, const Operation& b) { return a.ticket < b.ticket; });
  return dump;
}

}  // namespace

Result<Dump> read_dump(const std::string& file) {
  std::ifstream stream(file);
  std::stringstream text;
  if (!stream) return Error{Errc::io, 0, file + ": cannot be read"};
  text << stream.rdbuf();
  const Error malformed{Errc::invalid, 0, file + ": not a dump of the flight recorder"};
  const auto json = nlohmann::json::parse(text.str(), nullptr, false);
  if (!json.is_object() || json.value("troupe_flight", nlohmann::json()) != 1) return malformed;
  try {
    auto dump = read_json(json);
    if (dump.rank < 0 || dump.rank >= dump.size) return malformed;
    dump.file = file;
    return dump;
  } catch (const nlohmann::json::exception&) {
    return malformed;
  }
}

Result<std::vector<Dump>> read_dumps(const std::vector<std::string>& files) {
  std::vector<Dump> dumps;
  for (const auto& file : files) {
    auto dump = read_dump(file);
    if (!dump) return dump.error();
    dumps.push_back(std::move(*dump));
  }
  std::sort(dumps.begin(), dumps.end(),
            [](const Dump& a, const Dump& b) { return a.rank < b.rank; });
  for (std::size_t i = 1; i < dumps.size(); ++i) {
    const auto &one = dumps[i - 1], &other = dumps[i];
    const auto both = one.file + " and " + other.file;
    if (one.job != other.job || one.size != other.size)
      return Error{Errc::invalid, 0, both + " are of different jobs"};
    if (one.rank == other.rank)
      return Error{Errc::invalid, 0, both + " are both of rank " + std::to_string(one.rank)};
  }
  return dumps;
}

}  // namespace troupe::flight
