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

/// What is found is read without a lock while libraries are added: each addition makes another
/// table, and those before stay for whoever still reads them.
class Registry {
 public:
  using Table = std::unordered_map<std::uint32_t, const OperationInfo*>;

  [[nodiscard]] const Table& table() const noexcept {
    return *newest_.load(std::memory_order_acquire);
  }
  void add(std::initializer_list<const OperationInfo*> operations) {
    const std::lock_guard lock(mutex_);
    auto table = std::make_unique<Table>(this->table());
    for (const auto* info : operations) {
      const auto [known, added] = table->emplace(info->opcode, info);
      if (!added && known->second->name != info->name) {
        throw Exception({Errc::invalid, 0,
                         std::string(known->second->name) + " and " + std::string(info->name) +
                             " have the same opcode: rename one"});
      }
    }
    newest_.store(table.get(), std::memory_order_release);
    tables_.push_back(std::move(table));
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
  for (const bool trait : {traits.repeatable, traits.remote, traits.collective})
    fingerprint.add(trait ? 1 : 0);
  for (const auto& operand : info.operands) {
    fingerprint.add(operand.name)
        .add(operand.offset)
        .add(static_cast<std::uint64_t>(operand.access));
  }
  for (const auto& rule : info.in_place)
    fingerprint.add(rule.one).add(rule.other).add(static_cast<std::uint64_t>(rule.how));
}

}  // namespace

const OperationInfo* find_operation(std::uint32_t opcode) noexcept {
  const auto& table = registry().table();
  const auto found = table.find(opcode);
  return found == table.end() ? nullptr : found->second;
}

std::vector<const OperationInfo*> all_operations() {
  std::vector<const OperationInfo*> all;
  for (const auto& [opcode, info] : registry().table()) all.push_back(info);
  std::sort(all.begin(), all.end(),
            [](const OperationInfo* a, const OperationInfo* b) { return a->name < b->name; });
  return all;
}

std::string_view operation_name(std::uint32_t opcode) noexcept {
  const auto* info = find_operation(opcode);
  return info != nullptr ? info->name : "unknown";
}

std::vector<LibraryFingerprint> library_fingerprints() {
  std::map<std::string_view, Fingerprint> all;
  for (const auto* info : all_operations()) add_to(all[info->library()], *info);
  std::vector<LibraryFingerprint> list;
  for (const auto& [library, fingerprint] : all) list.push_back({library, fingerprint.value()});
  return list;
}

Library::Library(std::initializer_list<const OperationInfo*> operations) {
  registry().add(operations);
}

}  // namespace troupe
