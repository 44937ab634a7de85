#pragma once

#include <chrono>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include <troupe/device.hpp>
#include <troupe/lib/blas.hpp>

#include "burn_in.hpp"
#include "digest.hpp"

namespace troupe::info {

/// How much work was done in how much time, over all rounds.
struct Meter {
  double work = 0, seconds = 0;
  void add(double more_work, double more_seconds) { work += more_work, seconds += more_seconds; }
  /// Billions of units per second.
  [[nodiscard]] double rate() const { return seconds > 0 ? work / seconds / 1e9 : 0; }
};

inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// The same product of matrices, again and again. Their elements are whole numbers from -8 to 8
/// without 0, so that every sum is exact (2048 * 64 < 2^24), and its sign too. The rows of A repeat
/// with period 61 and the columns of B with period 67: the host needs few of the sums to know all
/// of the product.
template <class T>
class Product {
 public:
  /// Its functions throw Exception, with the error of the device.
  Product(const Device& device, const std::string& dtype, std::int64_t size, int repetitions)
      : device_(device), repetitions_(repetitions) {
    facts_.dtype = dtype, facts_.size = size;
    const auto upload = [&](const std::vector<T>& elements) {
      auto matrix = device.alloc<T>(std::ssize(elements));
      device.upload(std::span(elements), matrix).get();
      return matrix;
    };
    a_ = upload(made([](std::int64_t row, std::int64_t k) { return a_at(row, k); }));
    b_ = upload(made([](std::int64_t k, std::int64_t column) { return b_at(k, column); }));
    c_ = device.alloc<T>(size * size);
    digests_ = device.alloc<std::uint64_t>(repetitions);
    std::vector<std::int64_t> sums(kRows * kColumns);
    for (std::int64_t column = 0; column < kColumns; ++column) {
      for (std::int64_t row = 0; row < kRows; ++row) {
        auto& sum = sums[static_cast<std::size_t>(column * kRows + row)];
        for (std::int64_t k = 0; k < size; ++k) sum += a_at(row, k) * b_at(k, column);
      }
    }
    const auto product = made([&sums](std::int64_t row, std::int64_t column) {
      return sums[static_cast<std::size_t>(column % kColumns * kRows + row % kRows)];
    });
    facts_.expected = host_digest(std::span<const T>(product));
  }

  /// Queues the repetitions; each is followed by its digest.
  void queue() {
    const auto size = facts_.size;
    for (int i = 0; i < repetitions_; ++i) {
      (void)device_.blas().template gemm<T>(a_, b_, c_, {.m = size, .n = size, .k = size});
      (void)device_.digest(c_, digests_.slice(i, 1));
    }
  }
  /// Waits for the repetitions and counts their digests.
  void finish() {
    for (const auto digest : device_.download(digests_)) {
      if (facts_.seen.contains(digest) || facts_.seen.size() < kMostDigests)
        ++facts_.seen[digest];
      else
        ++facts_.others;
    }
  }
  void run_timed() {
    const auto begin = std::chrono::steady_clock::now();
    queue();
    finish();
    meter_.add(2 * std::pow(static_cast<double>(facts_.size), 3) * repetitions_,
               seconds_since(begin));
  }
  [[nodiscard]] const ProductFacts& facts() const { return facts_; }
  [[nodiscard]] double rate() const { return meter_.rate(); }

 private:
  static constexpr std::int64_t kRows = 61, kColumns = 67;
  static constexpr std::size_t kMostDigests = 8;

  static std::int64_t number(std::int64_t place) {
    const auto bits = memory::Digest::mix(static_cast<std::uint64_t>(place) + 1);
    const auto size = static_cast<std::int64_t>(bits & 7) + 1;
    return (bits & 8) != 0 ? -size : size;
  }
  static std::int64_t a_at(std::int64_t row, std::int64_t k) {
    return number(k * kRows + row % kRows);
  }
  static std::int64_t b_at(std::int64_t k, std::int64_t column) {
    return number((std::int64_t{1} << 32) + k * kColumns + column % kColumns);
  }
  /// A matrix, column-major.
  template <class At>
  [[nodiscard]] std::vector<T> made(At at) const {
    std::vector<T> elements;
    elements.reserve(static_cast<std::size_t>(facts_.size * facts_.size));
    for (std::int64_t column = 0; column < facts_.size; ++column) {
      for (std::int64_t row = 0; row < facts_.size; ++row)
        elements.push_back(static_cast<T>(at(row, column)));
    }
    return elements;
  }

  const Device& device_;
  int repetitions_;
  GpuRef<T> a_, b_, c_;
  GpuRef<std::uint64_t> digests_;
  ProductFacts facts_;
  Meter meter_;
};

}  // namespace troupe::info
