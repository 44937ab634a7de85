#include "rank/device/health/xid.hpp"

#include <algorithm>
#include <iterator>

namespace troupe::rank_process {
namespace {

struct Row {
  std::uint64_t xid;
  HealthKind kind;
  bool failing;
  const char* text;
};

// Sorted. What is not here is HealthKind::other.
constexpr Row kRows[] = {
    {8, HealthKind::application, false, "the GPU has stopped processing"},
    {11, HealthKind::application, false, "an invalid stream of commands"},
    {13, HealthKind::application, false, "an exception of the graphics engine"},
    {31, HealthKind::application, false, "a page fault of GPU memory"},
    {32, HealthKind::application, false, "an invalid stream of commands"},
    {39, HealthKind::application, false, "an exception of a copy engine"},
    {40, HealthKind::application, false, "an exception of a copy engine"},
    {41, HealthKind::application, false, "an exception of a copy engine"},
    {43, HealthKind::application, false, "a channel was reset after an error of a program"},
    {45, HealthKind::application, false, "a process was cleaned up"},
    {46, HealthKind::driver, false, "the GPU has stopped processing"},
    // Followed by 94 or 95, or by 63 or 64: they tell how it went out.
    {48, HealthKind::memory, false, "a double-bit error of memory"},
    {61, HealthKind::driver, false, "the power management unit has met a breakpoint"},
    {62, HealthKind::driver, false, "the power management unit has halted"},
    {63, HealthKind::remapping, false, "a row of memory is to be replaced"},
    {64, HealthKind::remapping, true, "a row of memory cannot be replaced"},
    {69, HealthKind::application, false, "an error of the graphics engine's class"},
    {74, HealthKind::nvlink, false, "an error of an NVLink"},
    {79, HealthKind::bus, true, "the GPU has fallen off the bus"},
    {92, HealthKind::memory, false, "many single-bit errors of memory"},
    {94, HealthKind::memory, false, "an uncorrectable error of memory was contained"},
    {95, HealthKind::memory, true, "an uncorrectable error of memory was not contained"},
    {109, HealthKind::driver, false, "a switch of contexts has timed out"},
    {119, HealthKind::driver, false, "the GPU system processor does not answer"},
    {120, HealthKind::driver, false, "an error of the GPU system processor"},
    {140, HealthKind::memory, true, "an error of memory that is not recovered from"},
    {143, HealthKind::driver, false, "the GPU could not be initialised"},
    {144, HealthKind::nvlink, false, "an error of an NVLink"},
    {145, HealthKind::nvlink, false, "an error of an NVLink"},
    {146, HealthKind::nvlink, false, "an error of an NVLink"},
    {147, HealthKind::nvlink, false, "an error of an NVLink"},
    {148, HealthKind::nvlink, false, "an error of an NVLink"},
    {149, HealthKind::nvlink, false, "an error of an NVLink"},
    {150, HealthKind::nvlink, false, "an error of an NVLink"},
    {154, HealthKind::recovery_action, false, "the recovery action has changed"},
    {156, HealthKind::remapping, false, "a piece of memory is to be replaced"},
    {157, HealthKind::remapping, true, "a piece of memory cannot be replaced"},
    {171, HealthKind::memory, false, "an uncorrectable error of DRAM"},
    {172, HealthKind::memory, false, "an uncorrectable error of SRAM"}};

constexpr bool by_number(const Row& a, const Row& b) {
  return a.xid < b.xid;
}
static_assert(std::is_sorted(std::begin(kRows), std::end(kRows), by_number));

}  // namespace

HealthEvent event_of_xid(std::uint64_t xid) {
  const auto name = "Xid " + std::to_string(xid);
  const auto row =
      std::lower_bound(std::begin(kRows), std::end(kRows), Row{xid, {}, {}, {}}, by_number);
  if (row == std::end(kRows) || row->xid != xid) return {0, HealthKind::other, name, false, xid};
  return {0, row->kind, name + ": " + row->text, row->failing, xid};
}

}  // namespace troupe::rank_process
