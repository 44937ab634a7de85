#include <troupe/lib/primitives/histograms.hpp>

#include "common/wire/checker.hpp"
#include "lib/primitives/common/visit.hpp"
#include "lib/primitives/histograms/bins.hpp"

namespace troupe::primitives {

using wire::checker;

namespace {

/// What both histograms have in common.
template <class Op>
wire::Checker check_counts(const Op& op) {
  constexpr std::int64_t kMostBins = std::numeric_limits<std::int32_t>::max() - 1;
  auto checks = checker(op);
  checks
      .require(op.count_dtype == DType::u32 || op.count_dtype == DType::u64,
               "counts are neither u32 nor u64")
      .require(op.channels.all >= 1 && op.channels.all <= 4, "there are 1 to 4 channels")
      .require(op.channels.counted >= 1 && op.channels.counted <= op.channels.all,
               "there are not so many channels to count")
      .require(op.bins >= 1 && op.bins <= kMostBins, "no bins, or too many")
      .require(op.n >= 0 && op.n < wire::Checker::kMaxCount, "the number of samples is wrong");
  if (!checks.ok()) return checks;
  checks.holds("x", op.x, op.n * op.channels.all)
      .holds("counts", op.counts, op.bins * op.channels.counted, size_of(op.count_dtype));
  return checks;
}

}  // namespace

Result<void> HistogramEven::check() const {
  auto checks = check_counts(*this);
  if (!checks.ok()) return checks.result();
  bool usable = false;
  const auto told = host::with_countable(level_dtype(dtype), [&]<class L>(L) -> Result<void> {
    usable = host::EvenBins<L>(host::level<L>(lower), host::level<L>(upper), bins).usable();
    return {};
  });
  if (!told.ok()) return told;
  return checks.require(usable, "the levels do not ascend, or are too far apart or too close")
      .result();
}

Result<void> HistogramRange::check() const {
  auto checks = check_counts(*this);
  if (!checks.ok()) return checks.result();
  return checks.holds("levels", levels, bins + 1, size_of(level_dtype(dtype))).result();
}

}  // namespace troupe::primitives
