#include "observer.hpp"

#include <algorithm>
#include <cstring>

#include "catalogue/random.hpp"
#include "operation_fields.hpp"

namespace troupe::judge {
namespace {

const char* to_word(Access access) {
  if (access == Access::update) return "update";
  return access == Access::write ? "write" : "read";
}

DType dtype_of_operation(const detail::CommandView& command) {
  return reinterpret_cast<const OpDType*>(command.op.data())->value;  // by convention its first
}

}  // namespace

Future<void> Observer::submit(const detail::CommandView& command) {
  if (!unusual_.empty()) disturb(command);
  nlohmann::json noted{{"operation", command.info->name},
                       {"fields", fields_of(*command.info, command.op.data())},
                       {"operands", nlohmann::json::object()},
                       {"tail", nlohmann::json::array()}};
  seen_.clear();
  for (const auto& use : command.uses())
    noted["operands"][std::string(use.name)] = look(*use.range, use.access);
  for (const auto& part : command.tail) {
    noted["tail"].push_back(look(part.range, part.access));
    noted["tail"].back()["tag"] = part.tag;
  }
  noted["data"] = {{"at", contents_.size()}, {"bytes", command.data.size()}};
  contents_.insert(contents_.end(), command.data.begin(), command.data.end());

  auto future = device_.submitter().submit(command);
  const auto outcome = future.wait();
  noted["outcome"] = outcome.ok() ? "ok" : outcome.error().to_string();
  for (const auto& [range, at] : seen_) {
    if (outcome.ok()) read(range, contents_.data() + at + range.bytes);  // else it may be stale
  }
  commands_.push_back(std::move(noted));
  return future;
}

Result<detail::ResultCell> Observer::result_cell(std::size_t bytes) {
  auto cell = device_.submitter().result_cell(bytes);
  if (cell.ok()) cells_.push_back(*cell);
  return cell;
}

nlohmann::json Observer::look(const Operand& range, Access access) {
  const auto at = contents_.size();
  contents_.resize(at + 2 * range.bytes);
  read(range, contents_.data() + at);
  seen_.push_back({range, at});
  return {{"at", at},
          {"bytes", range.bytes},
          {"access", to_word(access)},
          {"region", range.region},
          {"offset", range.offset}};
}

void Observer::read(const Operand& range, std::byte* to) {
  if (range.bytes == 0) return;
  for (const auto& cell : cells_) {
    if (cell.where.region == range.region && cell.where.offset == range.offset) {
      std::memcpy(to, cell.data, range.bytes);
      return;
    }
  }
  auto& memory = staging(range.bytes);
  detail::submit(device_.submitter(),
                 memory::Copy{DType::u8, range, memory.operand(0, range.bytes)})
      .get();
  std::memcpy(to, memory.data(), range.bytes);
}

void Observer::write(const Operand& range, const std::byte* from) {
  auto& memory = staging(range.bytes);
  std::memcpy(memory.data(), from, range.bytes);
  detail::submit(device_.submitter(),
                 memory::Copy{DType::u8, memory.operand(0, range.bytes), range})
      .get();
}

void Observer::disturb(const detail::CommandView& command) {
  const auto dtype = dtype_of_operation(command);
  catalogue::Random random(seed_++);
  std::vector<std::byte> bytes;
  const auto disturb_one = [&](const Operand& range, Access access) {
    const auto elements = range.bytes / size_of(dtype);
    // One element is a factor, or a result.
    if (access == Access::write || elements < 2 || random.one_in(2)) return;
    bytes.resize(range.bytes);
    read(range, bytes.data());
    const auto& number = unusual_[static_cast<std::size_t>(random.below(std::ssize(unusual_)))];
    const auto place = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(elements)));
    std::memcpy(bytes.data() + place * size_of(dtype), number.data(), size_of(dtype));
    write(range, bytes.data());
  };
  for (const auto& use : command.uses()) disturb_one(*use.range, use.access);
  for (const auto& part : command.tail) disturb_one(part.range, part.access);
}

PinnedBuffer<std::uint8_t>& Observer::staging(std::size_t bytes) {
  if (staging_.empty() || staging_.back().size() < bytes)
    staging_.push_back(device_.pinned<std::uint8_t>(std::max(bytes, std::size_t{1} << 16)));
  return staging_.back();
}

}  // namespace troupe::judge
