#include <algorithm>

#include "lib/primitives/cpu.hpp"
#include "lib/primitives/histograms/bins.hpp"

namespace troupe::host::cpu {
namespace {

using primitives::Channels;

template <class T, class Bins>
std::function<void()> counting(const T* x, std::int64_t n, Channels channels, Bins bins,
                               DType count_dtype, std::byte* counts) {
  const auto count_in = [=]<class C>(C* counters) {
    std::fill_n(counters, bins.bins() * channels.counted, C{0});
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::uint32_t channel = 0; channel < channels.counted; ++channel) {
        const std::int64_t bin = bins(x[i * channels.all + channel]);
        if (bin >= 0) ++counters[channel * bins.bins() + bin];
      }
    }
  };
  return [=] {
    if (count_dtype == DType::u32) {
      count_in(reinterpret_cast<std::uint32_t*>(counts));
    } else {
      count_in(reinterpret_cast<std::uint64_t*>(counts));
    }
  };
}

}  // namespace

Result<void> run(const primitives::HistogramEven& op, const Call& call, Primitives& library) {
  return with_sample(op.dtype, [&]<class T>(T) {
    using L = primitives::LevelOf<T>;
    return library.services.submit(
        call, counting(call.at<const T>(op.x), op.n, op.channels,
                       EvenBins<L>(level<L>(op.lower), level<L>(op.upper), op.bins), op.count_dtype,
                       call.at<std::byte>(op.counts)));
  });
}

Result<void> run(const primitives::HistogramRange& op, const Call& call, Primitives& library) {
  return with_sample(op.dtype, [&]<class T>(T) {
    using L = primitives::LevelOf<T>;
    return library.services.submit(
        call, counting(call.at<const T>(op.x), op.n, op.channels,
                       RangeBins<L>(call.at<const L>(op.levels), op.bins), op.count_dtype,
                       call.at<std::byte>(op.counts)));
  });
}

TROUPE_HANDLERS(Primitives)

}  // namespace troupe::host::cpu
