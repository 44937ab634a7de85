#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <stdexcept>
#include <string>
#include <vector>

#include <troupe/device.hpp>
#include <troupe/lib/matrix.hpp>

#include "comparison.hpp"
#include "raw_cuda.hpp"
#include "sides.hpp"

/// The same calls by plain CUDA and by troupe, in turn.
namespace troupe::bench {

struct Bench {
  Device* device;
  std::int64_t repetitions;
  std::vector<Comparison>* lines;

  /// `raw` and `ours` queue one call each; `wait` for the raw ones. `calls` make a measurement.
  template <class RawCall, class OurCall>
  void measure(std::string name, Raw& raw, int calls, const RawCall& raw_call,
               const OurCall& our_call) const {
    const auto theirs = [&](int count) {
      for (int i = 0; i < count; ++i) raw_call();
      raw.wait();
    };
    const auto ours = [&](int count) {
      for (int i = 1; i < count; ++i) (void)our_call();
      our_call().get();
    };
    auto* const tiny = static_cast<float*>(raw.device(sizeof(float)));
    const auto our_tiny = device->alloc<float>(1);
    const auto wake_raw = [&] {
      must(cudaMemsetAsync(tiny, 0, sizeof(float), raw.stream()));
      raw.wait();
    };
    lines->push_back(compare(std::move(name), "ms", repetitions, {[&] { theirs(calls); }, wake_raw},
                             {[&] { ours(calls); }, [&] { device->fill(our_tiny, 0.0f).get(); }},
                             [calls](double seconds) { return seconds / calls * 1e3; }));
  }
};

/// The first elements of both sides' results must agree, relative to the largest of them.
template <class T>
void check_equal(Raw& raw, const T* theirs, Device& device, const GpuRef<T>& ours,
                 const std::string& what, double tolerance) {
  const auto count = std::min<std::int64_t>(ours.length(), 4096);
  std::vector<T> values(static_cast<std::size_t>(count));
  raw.copy(values.data(), theirs, values.size() * sizeof(T));
  raw.wait();
  const auto mine = device.download(ours.slice(0, count));
  const auto number = [](const T& value) {
    if constexpr (ComplexElement<T>)
      return std::complex<double>(value);
    else if constexpr (std::is_same_v<T, BFloat16>)
      return static_cast<double>(std::bit_cast<float>(std::uint32_t{value.bits} << 16));
    else
      return static_cast<double>(value);
  };
  double apart = 0, largest = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto difference = std::abs(number(values[i]) - number(mine[i]));
    apart = std::isnan(difference) ? INFINITY : std::max(apart, difference);
    largest = std::max(largest, std::abs(number(values[i])));
  }
  if (apart > tolerance * largest || largest == 0)
    throw std::runtime_error(fmt::format("{}: troupe's result differs by {}", what, apart));
}

/// The same contents on both sides.
template <class T>
struct Both {
  T* raw;
  GpuRef<T> ours;

  Both(Raw& side, Device& device, std::int64_t count)
      : raw(static_cast<T*>(side.device(static_cast<std::size_t>(count) * sizeof(T)))),
        ours(device.alloc<T>(count)) {}
  Both(Raw& side, Device& device, const std::vector<T>& values)
      : Both(side, device, static_cast<std::int64_t>(values.size())) {
    side.copy(raw, values.data(), values.size() * sizeof(T));
    side.wait();
    device.upload(std::span<const T>(values), ours).get();
  }
};

}  // namespace troupe::bench
