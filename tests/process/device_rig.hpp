#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <troupe/actor/production_scheduler.hpp>
#include <troupe/config.hpp>
#include <troupe/device.hpp>
#include <troupe/lib/blas.hpp>
#include <troupe/lib/vector.hpp>

#include "host_processes.hpp"
#include "rank/launch.hpp"

/// A device without MPI, and known contents to find again after a fault.
namespace troupe::test {

inline std::string engine() {
  const char* named = std::getenv("TROUPE_TEST_BACKEND");
  return named != nullptr && *named != '\0' ? named : "cpu";
}
inline bool on_cuda() {
  return engine() == "cuda";
}

/// True if all futures are resolved in time.
inline bool all_resolved(const std::vector<Future<void>>& futures,
                         std::chrono::nanoseconds limit = kDeadline) {
  const auto end = std::chrono::steady_clock::now() + limit;
  return std::all_of(futures.begin(), futures.end(), [&](const auto& future) {
    return future.wait_for(
        std::max<std::chrono::nanoseconds>(end - std::chrono::steady_clock::now(), 0ns));
  });
}

class DeviceRig {
 public:
  /// `options` as on a command line.
  explicit DeviceRig(std::vector<std::string> options = {}) {
    std::vector<const char*> arguments{"test", "--log-level", "error"};
    if (std::find(options.begin(), options.end(), "--device-host") == options.end())
      arguments.insert(arguments.end(), {"--device-host", TROUPE_TEST_DEVICE_HOST});
    for (const auto& option : options) arguments.push_back(option.c_str());
    // Tests that lose device hosts on purpose need no dumps of it.
    if (std::find(options.begin(), options.end(), "--flight-dir") == options.end())
      arguments.insert(arguments.end(), {"--flight-dir", "none"});
    if (std::find(options.begin(), options.end(), "--kernel-cache") == options.end())
      arguments.insert(arguments.end(), {"--kernel-cache", "none"});
    if (std::find(options.begin(), options.end(), "--tuning-cache") == options.end())
      arguments.insert(arguments.end(), {"--tuning-cache", "none"});
    const auto config = Config::parse(static_cast<int>(arguments.size()), arguments.data()).take();
    system_ = std::make_unique<ActorSystem>(ProductionScheduler::start({.workers = 2}).take());
    core_ =
        rank_process::DeviceCore::open(
            *system_,
            rank_process::device_options(Settings::of(config), engine(), 0,
                                         rank_process::core_share({rank_process::core_mask()}, 0))
                .take(),
            0)
            .take();
    device_ = std::make_unique<Device>(core_);
  }
  ~DeviceRig() {
    core_->shut_down();
    device_.reset();
    core_.reset();
    system_.reset();
  }
  DeviceRig(const DeviceRig&) = delete;
  DeviceRig& operator=(const DeviceRig&) = delete;

  [[nodiscard]] Device& device() { return *device_; }
  [[nodiscard]] rank_process::DeviceCore& core() { return *core_; }

 private:
  std::unique_ptr<ActorSystem> system_;
  std::shared_ptr<rank_process::DeviceCore> core_;
  std::unique_ptr<Device> device_;
};

inline std::vector<std::uint8_t> random_bytes(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint8_t> bytes(count);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

/// Buffers of many sizes with known contents that nobody writes: they must come through every
/// fault.
class Bystanders {
 public:
  Bystanders(Device& device, std::uint64_t seed) : device_(&device) {
    for (const std::size_t length : {1u, 3u, 4096u, 100'003u, 3u << 20}) {
      contents_.push_back(random_bytes(length, seed + length));
      buffers_.push_back(device.alloc<std::uint8_t>(static_cast<std::int64_t>(length)));
      device.upload<std::uint8_t>(contents_.back(), buffers_.back()).get();
    }
  }
  /// Empty if every byte is there, else what is wrong.
  [[nodiscard]] std::string damage() const {
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      const auto name = "buffer of " + std::to_string(contents_[i].size()) + " bytes";
      if (!buffers_[i].valid()) return name + " is stale";
      try {
        if (device_->download(buffers_[i]) != contents_[i]) return name + " has changed";
      } catch (const Exception& e) {
        return name + ": " + e.what();
      }
    }
    return {};
  }

 private:
  Device* device_;
  std::vector<std::vector<std::uint8_t>> contents_;
  std::vector<GpuRef<std::uint8_t>> buffers_;
};

/// Counters in device memory that operations add one to: an operation that runs twice, or not at
/// all, shows.
class Counters {
 public:
  Counters(Device& device, int count) : device_(&device), one_(device.alloc<double>(1)) {
    device.fill(one_, 1.0).get();
    for (int i = 0; i < count; ++i) {
      cells_.push_back(device.alloc<double>(1));
      device.fill(cells_.back(), 0.0).get();
    }
    outcomes_.resize(cells_.size());
  }
  void add(std::size_t cell) {
    outcomes_[cell].push_back(device_->blas().axpy(1.0, one_, cells_[cell]));
  }
  [[nodiscard]] std::vector<Future<void>> futures() const {
    std::vector<Future<void>> all;
    for (const auto& list : outcomes_) all.insert(all.end(), list.begin(), list.end());
    return all;
  }
  /// How many operations on a cell failed. All futures must be resolved.
  [[nodiscard]] std::size_t failed(std::size_t cell) const {
    return static_cast<std::size_t>(
        std::count_if(outcomes_[cell].begin(), outcomes_[cell].end(),
                      [](const auto& future) { return !future.wait().ok(); }));
  }
  [[nodiscard]] bool stale(std::size_t cell) const { return !cells_[cell].valid(); }
  /// Empty if the cells are as the outcomes say: a cell of which every operation succeeded is valid
  /// and has counted each of them once; one of which an operation failed is stale and refuses use.
  [[nodiscard]] std::string disagreement() const {
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      const auto name = "counter " + std::to_string(i);
      for (const auto& future : outcomes_[i]) {
        const auto code = future.wait().code();
        if (code != Errc::ok && code != Errc::device_lost && code != Errc::stale) {
          return name + ": " + future.wait().error().to_string();
        }
      }
      if (failed(i) != 0) {
        if (cells_[i].valid()) return name + " is valid although an operation on it failed";
        const auto refused = device_->blas().axpy(1.0, one_, cells_[i]);
        if (!refused.ready() || refused.wait().code() != Errc::stale)
          return name + " is stale but is used";
        continue;
      }
      if (!cells_[i].valid()) return name + " is stale although all operations on it succeeded";
      const auto value = device_->download(cells_[i])[0];
      if (value != static_cast<double>(outcomes_[i].size())) {
        return name + " is " + std::to_string(value) + " after " +
               std::to_string(outcomes_[i].size()) + " additions";
      }
    }
    return {};
  }

 private:
  Device* device_;
  GpuRef<double> one_;
  std::vector<GpuRef<double>> cells_;
  std::vector<std::vector<Future<void>>> outcomes_;
};

/// Empty if the device computes: a fill, a kernel of each library that is cheap to open, a copy
/// back.
inline std::string not_working(Device& device) {
  try {
    const auto x = device.alloc<float>(1000), y = device.alloc<float>(1000),
               dot = device.alloc<float>(1);
    device.fill(x, 2.0f);
    device.fill(y, 3.0f);
    device.blas().axpy(2.0f, x, y);
    device.vector().multiply(x, y, y);
    device.blas().dot(x, y, dot);
    const auto value = device.download(dot)[0];
    return value == 28000.0f ? "" : "the dot product is " + std::to_string(value) + ", not 28000";
  } catch (const Exception& e) {
    return e.what();
  }
}

}  // namespace troupe::test
