#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "cpu_engine_rig.hpp"
#include "samples.hpp"

// An operation never writes memory that it reads, not even for a moment: others may read it
// meanwhile.

namespace troupe::host {
namespace {

constexpr std::uint64_t kRegionBytes = std::uint64_t{16} << 10;

/// Pages full of zeros, one region of memory.
class Region {
 public:
  Region()
      : base_(static_cast<std::byte*>(::mmap(nullptr, kRegionBytes, PROT_READ | PROT_WRITE,
                                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  ~Region() { ::munmap(base_, kRegionBytes); }
  [[nodiscard]] std::byte* base() const { return base_; }
  void protect() { check(::mprotect(base_, kRegionBytes, PROT_READ) == 0, "mprotect"); }

 private:
  std::byte* base_;
};

/// Carries out the sample of an operation, what it only reads in memory that nobody can write.
/// Errors: those of the operation.
Result<void> carry_out_protected(Rig& rig, const troupe::test::Sample& sample) {
  const auto& info = *sample.info;
  const auto* const op = sample.op.data();
  const Queue lane(info.lane != nullptr ? info.lane(op) : find_operation(info.opcode).lane(op));
  if (auto open = rig.engine->open_queue(lane); !open.ok()) return open;  // it is not built
  std::map<std::uint32_t, bool> writes;                                   // by region
  for (const auto& operand : info.operands) {
    const auto access = info.access != nullptr ? info.access(op, operand) : operand.access;
    const auto& range = info.operand(op, operand);
    if (range.present()) writes[range.region] |= access != Access::read;
  }
  for (const auto& part : sample.tail) writes[part.range.region] |= part.access != Access::read;
  std::map<std::uint32_t, Region> regions;
  for (const auto& [region, written] : writes) {
    rig.addresses.set(region, regions[region].base(), kRegionBytes);
    if (!written) regions[region].protect();
  }
  const Call call(lane, rig.addresses, {sample.tail, sample.data});
  auto outcome = rig.engine->run(info, op, call);
  if (outcome.ok()) outcome = rig.engine->synchronize(lane);
  for (const auto& [region, written] : writes) rig.addresses.erase(region);
  return outcome;
}

TEST(CpuEngineReads, WhatAnOperationReadsItDoesNotWrite) {
  static std::string current;  // for the handler
  ::signal(SIGSEGV, [](int) {
    const std::string text = current + " writes what it only reads\n";
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
    ::_exit(1);
  });
  Rig rig;  // with the libraries that are there
  int carried_out = 0;
  for (const auto& sample : troupe::test::samples()) {
    const auto& info = *sample.info;
    // Left out: operations of other processes, of the program's own code, and deliberate faults.
    const auto library = info.library();
    if (info.traits.collective || library == "channel" || library == "function" ||
        library == "kernel" || library == "file" || library == "sequence" ||
        info.name == "memory.stray_write" || info.name == "memory.fault")
      continue;
    current = info.name;
    carried_out += carry_out_protected(rig, sample).ok() ? 1 : 0;
  }
  ::signal(SIGSEGV, SIG_DFL);
  EXPECT_GE(carried_out, 20);
}

}  // namespace
}  // namespace troupe::host
