#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <troupe/lib/operations.hpp>

#include "device_host/engine/collective_half.hpp"
#include "device_host/engine/engine.hpp"

/// What the tests of the cpu engine share.
namespace troupe::host {

inline constexpr std::uint64_t kSlabBytes = std::uint64_t{16} << 20;

/// An engine with one slab (region 1) that is handed out from the front.
class Rig {
 public:
  explicit Rig(std::uint64_t slab_bytes = kSlabBytes) : engine(make_engine({}).take()) {
    for (std::size_t lane = 0; lane < lanes_in_use(); ++lane) {
      const auto opened = engine->open_queue(static_cast<Lane>(lane));
      check(opened.ok() || opened.code() == Errc::unsupported, "a lane cannot be opened");
    }
    slab = engine->memory().make_slab(slab_bytes).take();
    addresses.set(1, slab.base, slab_bytes);
    bytes_ = slab_bytes;
  }
  ~Rig() { engine->memory().unmap_slab(slab.base, bytes_); }

  template <class T>
  Operand put(const std::vector<T>& values) {
    Operand operand{.region = 1, .offset = used_, .bytes = values.size() * sizeof(T)};
    check(used_ + operand.bytes <= bytes_, "the test's slab is full");
    if (!values.empty()) std::memcpy(slab.base + used_, values.data(), operand.bytes);
    used_ += (operand.bytes + 255) / 256 * 256;
    return operand;
  }
  template <class T>
  std::vector<T> get(const Operand& operand) const {
    std::vector<T> values(operand.bytes / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), slab.base + operand.offset, operand.bytes);
    return values;
  }
  template <class Op>
  Result<void> queue(const Op& op, std::span<const TailOperand> tail = {}) {
    return engine->run(op, Call(lane_of(op), addresses, tail));
  }
  template <class Op>
  Result<void> execute(const Op& op, std::span<const TailOperand> tail = {}) {
    if (auto queued = queue(op, tail); !queued) return queued;
    return engine->synchronize(lane_of(op));
  }
  void reset() { used_ = 0; }

  std::unique_ptr<Engine> engine;
  Slab slab;
  AddressMap addresses;

 private:
  std::uint64_t bytes_ = 0;
  std::uint64_t used_ = 0;
};

template <class T>
std::vector<T> random_values(std::size_t n, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<T> distribution(T(-1), T(1));
  std::vector<T> values(n);
  for (T& value : values) value = distribution(generator);
  return values;
}

/// A factor of an operation on f32 or f64.
template <RealElement T>
Scalar by_value(T value) {
  return Scalar::of(value);
}

template <class T>
void expect_near(const std::vector<T>& actual, const std::vector<T>& expected, double ulps) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double scale = std::max(1.0, std::abs(static_cast<double>(expected[i])));
    ASSERT_NEAR(actual[i], expected[i], ulps * std::numeric_limits<T>::epsilon() * scale)
        << "at " << i;
  }
}

/// A world of one, whose collectives are local.
inline void connect_alone(Engine& engine) {
  auto contribution = engine.collectives().contribute({0, 1}).take();
  engine.collectives().connect({0, 1}, {contribution}).take();
}

using Contributions = std::vector<std::vector<std::byte>>;

/// Several engines as the ranks of one world, each driven by a thread of its own.
class World {
 public:
  explicit World(int size, std::uint64_t slab_bytes = kSlabBytes) {
    for (int i = 0; i < size; ++i) ranks_.push_back(std::make_unique<Rig>(slab_bytes));
  }
  void connect() {
    Contributions contributions;
    for (int i = 0; i < size(); ++i)
      contributions.push_back((*this)[i].engine->collectives().contribute({i, size()}).take());
    on_all([&](int rank, Rig& rig) {
      const auto connected = rig.engine->collectives().connect({rank, size()}, contributions);
      EXPECT_TRUE(connected.ok()) << connected.error().to_string();
    });
  }
  void on_all(const std::function<void(int, Rig&)>& body) {
    std::vector<std::jthread> threads;
    for (int i = 0; i < size(); ++i) threads.emplace_back([&, i] { body(i, (*this)[i]); });
  }
  [[nodiscard]] int size() const { return static_cast<int>(ranks_.size()); }
  Rig& operator[](int rank) { return *ranks_[static_cast<std::size_t>(rank)]; }

 private:
  std::vector<std::unique_ptr<Rig>> ranks_;
};

}  // namespace troupe::host
