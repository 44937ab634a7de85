#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include <troupe/lib/operation_info.hpp>

namespace troupe {
namespace {

/// FNV-1a, as opcode_of, over whatever is added.
class Fingerprint {
 public:
  Fingerprint& add(std::string_view text) {
    for (const char c : text) add_byte(static_cast<std::uint8_t>(c));
    return add(std::uint64_t{text.size()});
  }
  Fingerprint& add(std::uint64_t number) {
    for (int shift = 0; shift < 64; shift += 8)
      add_byte(static_cast<std::uint8_t>(number >> shift));
    return *this;
  }
  [[nodiscard]] std::uint64_t value() const noexcept { return value_; }

 private:
  void add_byte(std::uint8_t byte) { value_ = (value_ ^ byte) * 1099511628211u; }
  std::uint64_t value_ = 14695981039346656037u;
};

void add_to(Fingerprint& fingerprint, const OperationInfo& info) {
  const auto& traits = info.traits;
  fingerprint.add(info.name).add(info.bytes).add(info.dtypes.bits).add(info.tail);
  fingerprint.add(info.max_data).add(info.cell != nullptr ? info.cell->name : "");
  for (const bool trait : {traits.repeatable, traits.remote, traits.collective, traits.blocking,
                           traits.capturable, traits.not_prepared})
    fingerprint.add(trait ? 1 : 0);
  for (const auto& operand : info.operands) {
    fingerprint.add(operand.name)
        .add(operand.offset)
        .add(static_cast<std::uint64_t>(operand.access));
  }
  for (const auto words : info.kind_words) fingerprint.add(words);
  for (const auto& rule : info.in_place)
    fingerprint.add(rule.one).add(rule.other).add(static_cast<std::uint64_t>(rule.how));
}

std::uint64_t fingerprint_of(const OperationInfo& info) {
  Fingerprint fingerprint;
  add_to(fingerprint, info);
  return fingerprint.value();
}

/// What is found is read without a lock while libraries are added: each addition makes another
/// table, and those before stay for whoever still reads them.
class Registry {
 public:
  struct Table {
    std::unordered_map<std::uint32_t, KnownOperation> operations;
    std::unordered_map<std::uint32_t, std::string> places;  ///< "axpy.hpp:12", by opcode
    std::vector<std::string_view> libraries;                ///< in the order of their lanes

    /// The place of a library, which may be behind the last one.
    [[nodiscard]] std::size_t find(std::string_view library) const {
      return static_cast<std::size_t>(std::find(libraries.begin(), libraries.end(), library) -
                                      libraries.begin());
    }
  };

  [[nodiscard]] const Table& table() const noexcept {
    return *newest_.load(std::memory_order_acquire);
  }
  void add(std::span<const OperationInfo* const> operations, const std::source_location& where) {
    const auto place = std::string(where.file_name()) + ":" + std::to_string(where.line());
    const std::lock_guard lock(mutex_);
    auto table = std::make_unique<Table>(this->table());
    for (const auto* info : operations) {
      const auto library = info->library();
      const auto number = table->find(library);
      if (info->lane == nullptr && number == table->libraries.size()) {
        if (number == kMaxLibraries) {
          throw Exception({Errc::invalid, 0,
                           std::string(library) + ": no more than " +
                               std::to_string(kMaxLibraries) + " libraries"});
        }
        table->libraries.push_back(library);
      }
      const auto [known, added] =
          table->operations.emplace(info->opcode, KnownOperation{info, lane_at(number)});
      if (added) {
        table->places.emplace(info->opcode, place);
        continue;
      }
      const auto& other = *known->second.info;
      if (&other == info) continue;
      if (other.name != info->name) {
        throw Exception({Errc::invalid, 0,
                         std::string(other.name) + " (" + table->places.at(info->opcode) +
                             ") and " + std::string(info->name) + " (" + place +
                             ") have the same opcode: rename one"});
      }
      if (other.type != info->type || fingerprint_of(other) != fingerprint_of(*info)) {
        throw Exception({Errc::invalid, 0,
                         std::string(info->name) +
                             " is two operations: " + std::string(other.type) + " (" +
                             table->places.at(info->opcode) + ") and " + std::string(info->type) +
                             " (" + place + "), which differ: give one library another name"});
      }
    }
    newest_.store(table.get(), std::memory_order_release);
    tables_.push_back(std::move(table));
  }

  static Lane lane_at(std::size_t place) {
    return static_cast<Lane>(static_cast<std::size_t>(Lane::first_library) + place);
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Table>> tables_;
  const Table empty_;
  std::atomic<const Table*> newest_ = &empty_;
};

/// Made by the first library, which may be before this file's own variables are, and never ended:
/// threads look things up until the process has gone.
Registry& registry() {
  static auto& the_one = *new Registry;
  return the_one;
}

}  // namespace

KnownOperation find_operation(std::uint32_t opcode) noexcept {
  const auto& operations = registry().table().operations;
  const auto found = operations.find(opcode);
  return found == operations.end() ? KnownOperation{} : found->second;
}

std::optional<Lane> known_library_lane(std::string_view library) noexcept {
  const auto& table = registry().table();
  const auto place = table.find(library);
  if (place == table.libraries.size()) return std::nullopt;
  return Registry::lane_at(place);
}

Lane library_lane(std::string_view library) noexcept {
  const auto lane = known_library_lane(library);
  check(lane.has_value(), "no operation of this library is known");
  return *lane;
}

std::size_t lanes_in_use() noexcept {
  return static_cast<std::size_t>(Lane::first_library) + registry().table().libraries.size();
}

std::string_view to_string(Lane lane) noexcept {
  constexpr std::string_view kOwn[] = {"memory", "host_to_device", "device_to_host", "collective"};
  const auto number = static_cast<std::size_t>(lane);
  if (number < std::size(kOwn)) return kOwn[number];
  const auto& libraries = registry().table().libraries;
  const auto place = number - std::size(kOwn);
  return place < libraries.size() ? libraries[place] : "unused";
}

std::vector<const OperationInfo*> all_operations() {
  std::vector<const OperationInfo*> all;
  for (const auto& [opcode, known] : registry().table().operations) all.push_back(known.info);
  std::sort(all.begin(), all.end(),
            [](const OperationInfo* a, const OperationInfo* b) { return a->name < b->name; });
  return all;
}

std::string_view operation_name(std::uint32_t opcode) noexcept {
  const auto* info = find_operation(opcode).info;
  return info != nullptr ? info->name : "unknown";
}

std::vector<LibraryFingerprint> library_fingerprints() {
  std::map<std::string_view, Fingerprint> all;
  for (const auto* info : all_operations()) add_to(all[info->library()], *info);
  std::vector<LibraryFingerprint> list;
  for (const auto& [library, fingerprint] : all) list.push_back({library, fingerprint.value()});
  return list;
}

Library::Library(std::span<const OperationInfo* const> operations,
                 const std::source_location& place) {
  registry().add(operations, place);
}

}  // namespace troupe
