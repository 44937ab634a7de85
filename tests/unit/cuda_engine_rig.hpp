#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <future>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <troupe/lib/operations.hpp>

#include "device_host/engine/collective_half.hpp"
#include "device_host/engine/engine.hpp"

/// What the tests of the CUDA engine share. They are skipped where there is no GPU.
namespace troupe::host {

inline constexpr std::uint64_t kSlabBytes = std::uint64_t{256} << 20;
inline constexpr std::uint64_t kPinnedBytes = std::uint64_t{64} << 20;
inline constexpr std::uint32_t kSlab = 1, kPinned = kPinnedRegion | 1;

/// The rounding that a result of many terms may show.
template <class T>
double tolerance() {
  return 64 * static_cast<double>(std::numeric_limits<T>::epsilon());
}

template <class T>
void expect_near(const std::vector<T>& got, const std::vector<T>& wanted, double scale = 1) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const auto bound = tolerance<T>() * scale * std::max(1.0, std::abs(double(wanted[i])));
    ASSERT_NEAR(got[i], wanted[i], bound) << "at " << i;
  }
}

template <class T>
std::vector<T> random_values(std::size_t n, std::uint32_t seed, double low = -1, double high = 1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> value(low, high);
  std::vector<T> values(n);
  for (auto& v : values) v = static_cast<T>(value(random));
  return values;
}

/// One engine with all lanes open, one slab, one pinned segment.
class CudaEngine : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    EngineOptions options;
    options.other_hosts = true;  // tests let commands wait for what does not come
    auto made = make_engine(options);
    if (!made) {
      reason_ = made.error().to_string();
      return;
    }
    engine_ = std::move(*made);
    // Opening lanes at the same time is part of the contract.
    std::vector<std::future<Result<void>>> opened;
    for (std::size_t i = 0; i < lanes_in_use(); ++i) {
      opened.push_back(std::async(std::launch::async,
                                  [i] { return engine_->open_queue(static_cast<Lane>(i)); }));
    }
    for (auto& lane : opened) {  // unsupported: a library that is not installed
      if (auto outcome = lane.get(); outcome.code() != Errc::unsupported) std::move(outcome).take();
    }
    slab_ = new Slab(engine_->memory().make_slab(kSlabBytes).take());
    const int fd = ::memfd_create("troupe-test", MFD_CLOEXEC);
    check(fd >= 0 && ::ftruncate(fd, kPinnedBytes) == 0, "memfd");
    pinned_ = engine_->memory().map_pinned(fd, kPinnedBytes).take();
    ::close(fd);
    addresses_.set(kSlab, slab_->base, kSlabBytes);
    addresses_.set(kPinned, pinned_, kPinnedBytes);
  }
  static void TearDownTestSuite() {
    if (engine_ == nullptr) return;
    engine_->memory().unmap_pinned(pinned_, kPinnedBytes);
    engine_->memory().unmap_slab(slab_->base, kSlabBytes);
    delete slab_;
    engine_.reset();
  }
  void SetUp() override {
    if (engine_ == nullptr) GTEST_SKIP() << "no CUDA engine here: " << reason_;
    used_ = 0;
  }

  template <class Op>
  static Result<void> queue(const Op& op, std::span<const TailOperand> tail = {}) {
    return queue_on(lane_of(op), op, tail);
  }
  template <class Op>
  static Result<void> queue_on(Lane lane, const Op& op, std::span<const TailOperand> tail = {}) {
    return engine_->run(op, Call(lane, addresses_, tail));
  }
  /// Runs the operation to its end.
  template <class Op>
  static void run(const Op& op, std::span<const TailOperand> tail = {}) {
    queue(op, tail).take();
    engine_->synchronize(lane_of(op)).take();
  }

  /// Device memory of this test; `skew` bytes off a 256-byte boundary.
  Operand space(std::uint64_t bytes, std::uint64_t skew = 0) {
    const auto offset = (used_ + 255) / 256 * 256 + skew;
    used_ = offset + bytes;
    check(used_ <= kSlabBytes, "the test's slab is too small");
    return {kSlab, 0, 0, 0, offset, bytes};
  }
  template <class T>
  Operand put(const std::vector<T>& values, std::uint64_t skew = 0) {
    const auto where = space(values.size() * sizeof(T), skew);
    write(where, values);
    return where;
  }
  template <class T>
  void write(const Operand& where, const std::vector<T>& values) {
    if (values.empty()) return;
    std::memcpy(pinned_, values.data(), where.bytes);
    run(memory::Copy{DType::u8, {kPinned, 0, 0, 0, 0, where.bytes}, where});
  }
  template <class T>
  static std::vector<T> get(const Operand& where) {
    std::vector<T> values(where.bytes / sizeof(T));
    if (values.empty()) return values;
    run(memory::Copy{DType::u8, where, {kPinned, 0, 0, 0, 0, where.bytes}});
    std::memcpy(values.data(), pinned_, where.bytes);
    return values;
  }
  /// The factor as a value, or as an element in device memory.
  template <class T>
  Scalar scalar(double value, bool on_device) {
    if (!on_device) return Scalar::of(static_cast<T>(value));
    return {put(std::vector<T>{static_cast<T>(value)}), {}};
  }
  static void wait_until(Mark mark) {
    for (;;) {
      const auto reached = engine_->reached(mark);
      if (reached.ok() ? *reached : true) {
        EXPECT_TRUE(reached.ok());
        return;
      }
      std::this_thread::yield();
    }
  }

  static inline std::unique_ptr<Engine> engine_;
  static inline std::string reason_;
  static inline Slab* slab_ = nullptr;
  static inline std::byte* pinned_ = nullptr;
  static inline AddressMap addresses_;
  std::uint64_t used_ = 0;
};

}  // namespace troupe::host
