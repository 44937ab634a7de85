#include <troupe/lib/operation_table.hpp>
#include <troupe/lib/sequence.hpp>

#include <array>
#include <cstdio>

#include "common/wire/checker.hpp"

namespace troupe::sequence {

Result<void> Run::check() const {
  return wire::checker(*this)
      .require(number != 0, "it has no number")
      .require(commands > 0 && commands <= kMaxCommands,
               "a sequence has 1 to " + std::to_string(kMaxCommands) + " commands")
      // The length of each record at least.
      .holds("list", list, static_cast<std::int64_t>(commands), sizeof(std::uint64_t))
      .result();
}

Result<void> Run::check_parts(const Parts& parts) const {
  auto checks = wire::checker(*this);
  checks.require(parts.data.size() % sizeof(Patch) == 0, "its patches are not as long as said");
  for (std::size_t at = 0; checks.ok() && at < parts.data.size(); at += sizeof(Patch)) {
    Patch patch;
    std::memcpy(&patch, parts.data.data() + at, sizeof patch);
    checks.require(patch.command < commands && patch.bytes > 0 && patch.bytes <= patch.value.size(),
                   "a patch lies outside of its command");
  }
  return checks.result();
}

Result<void> Branch::check() const {
  auto checks = wire::checker(*this);
  if (flag.present()) checks.holds("flag", flag, 1, sizeof(std::int32_t));
  return checks.require(by != 0, "a command would come next to itself").result();
}

std::string CollectiveRun::describe(const Agreement& agreed) {
  std::array<char, 17> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx",
                static_cast<unsigned long long>(agreed.count));
  return std::string("recorded collectives with the hash ") + digits.data();
}

std::span<const OperationInfo* const> operations() noexcept {
  return tables_of(Operations{});
}

}  // namespace troupe::sequence
