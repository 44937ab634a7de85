#include "lib/primitives/cuda.hpp"
#include "lib/primitives/histograms/kernels.cuh"

namespace troupe::host::cuda {
namespace {

template <class T, class Op>
kernels::Samples<T> samples_of(const Op& op, const Call& call) {
  return {call.at<const T>(op.x), op.n, op.channels.all, op.channels.counted, call.at(op.counts),
          size_of(op.count_dtype)};
}

}  // namespace

Result<void> run(const primitives::HistogramEven& op, const Call& call, Primitives& library) {
  return with_sample(op.dtype, [&]<class T>(T) -> Result<void> {
    using L = primitives::LevelOf<T>;
    const EvenBins<L> bins(level<L>(op.lower), level<L>(op.upper), op.bins);
    TROUPE_CUDA_TRY(
        kernels::histogram(library.services.launch(call.queue()), samples_of<T>(op, call), bins));
    return {};
  });
}

Result<void> run(const primitives::HistogramRange& op, const Call& call, Primitives& library) {
  return with_sample(op.dtype, [&]<class T>(T) -> Result<void> {
    using L = primitives::LevelOf<T>;
    const RangeBins<L> bins(call.at<const L>(op.levels), op.bins);
    TROUPE_CUDA_TRY(
        kernels::histogram(library.services.launch(call.queue()), samples_of<T>(op, call), bins));
    return {};
  });
}

Result<void> warm_up_histograms(DType dtype, std::int64_t n, const std::array<Operand, 4>& ranges,
                                const Call& call, Primitives& library) {
  const auto& [a, b, c, d] = ranges;
  std::array<std::byte, 8> one{};
  TROUPE_CUDA_PROPAGATE(
      with_countable(primitives::level_dtype(dtype), [&]<class L>(L) -> Result<void> {
        const L upper(1);
        std::memcpy(one.data(), &upper, sizeof upper);
        return {};
      }));
  TROUPE_CUDA_PROPAGATE(library.carry_out(
      primitives::HistogramEven{dtype, DType::u32, {}, 1, n, {}, one, a, c}, call));
  return library.carry_out(primitives::HistogramRange{dtype, DType::u32, {}, 1, n, a, b, c}, call);
}

TROUPE_HANDLERS(Primitives)

}  // namespace troupe::host::cuda
