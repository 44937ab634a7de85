#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <set>

#include <troupe/lib/direct.hpp>
#include <troupe/lib/sparse.hpp>
#include <troupe/sequence.hpp>

#include "device_rig.hpp"
#include "rank/device/commands/index_check.hpp"
#include "samples.hpp"

// --check indices: an operation with a wrong index is refused before it is launched, whatever the
// operation, and all others run.

namespace troupe::test {
namespace {

const std::string kMark = " (--check indices)";

std::vector<std::string> checking() {
  return {"--check", "indices", "--restart-budget", "1000"};
}

/// The operations that go by indices.
std::vector<const OperationInfo*> with_rules() {
  std::vector<const OperationInfo*> found;
  for (const auto* info : all_operations())
    if (info->index_rules != nullptr) found.push_back(info);
  return found;
}

/// The sample of an operation on a device: each operand is a buffer of its own, of zeros, but for
/// the indices, which are right.
class SampleCall {
 public:
  SampleCall(Device& device, const Sample& sample)
      : device_(&device), info_(sample.info), op_(sample.op), tail_(sample.tail) {
    for (const auto& operand : info_->operands) {
      auto& range = info_->operand(op_.data(), operand);
      if (!range.present()) continue;
      if (info_->cell == &operand) {
        cell_ = device.submitter().result_cell(64).take();
        range = cell_.where;
      } else {
        place(range);
      }
    }
    for (auto& part : tail_) place(part.range);
    for (const auto& rule : rules()) put_right(rule);
  }

  [[nodiscard]] std::vector<IndexRule> rules() const { return info_->index_rules(op_.data()); }
  /// Changes an index; returns what stood there.
  std::int64_t put(const IndexRule& rule, const IndexArray& array, std::int64_t at,
                   std::int64_t value) {
    const auto before = get(rule, array, at);
    auto& contents = contents_.at(array.range.buffer);
    auto* const to = contents.data() + at * static_cast<std::int64_t>(size_of(rule.dtype));
    const auto narrow = static_cast<std::int32_t>(value);
    if (rule.dtype == DType::i32)
      std::memcpy(to, &narrow, sizeof narrow);
    else
      std::memcpy(to, &value, sizeof value);
    device_->upload<std::uint8_t>(contents, buffers_.at(array.range.buffer)).get();
    return before;
  }
  [[nodiscard]] std::int64_t get(const IndexRule& rule, const IndexArray& array,
                                 std::int64_t at) const {
    const auto* const from = contents_.at(array.range.buffer).data() +
                             at * static_cast<std::int64_t>(size_of(rule.dtype));
    std::int32_t narrow = 0;
    std::int64_t value = 0;
    std::memcpy(&narrow, from, sizeof narrow);
    if (rule.dtype == DType::i32) return narrow;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  Future<void> submit() { return detail::submit(device_->submitter(), *info_, op_, tail_); }
  /// Nothing has been written since it was made.
  [[nodiscard]] bool untouched() {
    return std::all_of(buffers_.begin(), buffers_.end(), [&](const auto& one) {
      return one.second.valid() && device_->download(one.second) == contents_.at(one.first);
    });
  }

 private:
  void place(Operand& range) {
    const auto buffer = device_->alloc<std::uint8_t>(4096);
    range = buffer.operand();
    contents_[range.buffer].resize(4096);
    buffers_.emplace(range.buffer, buffer);
    device_->fill(buffer, std::uint8_t{0}).get();
  }
  /// Rows of about as many elements each, with their places from 0 up.
  void put_right(const IndexRule& rule) {
    const auto& [name, range, length, bound] = rule.outer;
    const bool offsets = (rule.demands & IndexRule::offsets) != 0;
    for (std::int64_t i = 0; i < length; ++i)
      put(rule, rule.outer, i,
          offsets ? bound / rule.step * i / (length - 1) * rule.step : i * bound / length);
    std::int64_t begin = 0;
    for (std::int64_t k = 0, row = 0; k < rule.inner.length; ++k) {
      if (offsets) {
        while (get(rule, rule.outer, row + 1) <= k) ++row;
        begin = get(rule, rule.outer, row);
      } else if (length > 0 && get(rule, rule.outer, k) != get(rule, rule.outer, begin)) {
        begin = k;
      }
      put(rule, rule.inner, k, (k - begin) % rule.inner.bound);
    }
  }

  Device* device_;
  const OperationInfo* info_;
  std::vector<std::byte> op_;
  std::vector<TailOperand> tail_;
  detail::ResultCell cell_;
  std::map<std::uint32_t, GpuRef<std::uint8_t>> buffers_;
  std::map<std::uint32_t, std::vector<std::uint8_t>> contents_;
};

/// With that index the operation is refused, and with the right one in its place again it is not
/// looked at.
void expect_refused(Device& device, SampleCall& call, const OperationInfo& info,
                    const IndexRule& rule, const IndexArray& array, std::int64_t at,
                    std::int64_t value) {
  const auto right = call.put(rule, array, at, value);
  const auto future = call.submit();
  ASSERT_TRUE(future.ready()) << info.name;
  ASSERT_EQ(future.wait().code(), Errc::invalid) << info.name << ": " << array.name;
  const auto& message = future.wait().error().message;
  const auto words = std::string(info.name) + ": " + std::string(array.name) + "[" +
                     std::to_string(at) + "] is " + std::to_string(value) + ", ";
  EXPECT_TRUE(message.starts_with(words) && message.ends_with(kMark)) << message << "\n" << words;
  EXPECT_EQ(device.take_error().code(), Errc::invalid) << info.name;
  EXPECT_TRUE(call.untouched()) << info.name;
  call.put(rule, array, at, right);
}

TEST(DeviceIndexCheck, EveryWrongIndexOfEveryOperationIsRefused) {
  DeviceRig rig(checking());
  auto& device = rig.device();
  for (const auto* info : with_rules()) {
    SampleCall call(device, sample_of(*info));
    const auto rules = call.rules();
    for (const auto& rule : rules) {
      const auto expect = [&](const IndexArray& array, std::int64_t at, std::int64_t value) {
        expect_refused(device, call, *info, rule, array, at, value);
      };
      const auto &outer = rule.outer, &inner = rule.inner;
      if ((rule.demands & IndexRule::offsets) != 0) {
        expect(outer, 0, 1);
        expect(outer, outer.length - 1, outer.bound + 1);
      } else if (outer.length > 0) {
        expect(outer, outer.length - 1, outer.bound);
        expect(outer, 0, -1);
      }
      if (inner.length == 0) continue;
      expect(inner, inner.length - 1, inner.bound);
      expect(inner, 0, -2);
      if ((rule.demands & IndexRule::sorted) == 0) continue;
      bool found = false;
      for (std::int64_t k = 1; k < inner.length && !found; ++k) {
        found = call.get(rule, inner, k) > 0;
        if (found) expect(inner, k, call.get(rule, inner, k - 1));
      }
      EXPECT_TRUE(found) << info->name << " has rows of one element in its sample";
    }
  }
  EXPECT_EQ(not_working(device), "");
}

/// Zeros are no matrix that every operation can deal with; but indices are not to blame.
TEST(DeviceIndexCheck, RightIndicesOfEveryOperationPass) {
  DeviceRig rig(checking());
  auto& device = rig.device();
  for (const auto* info : with_rules()) {
    SampleCall call(device, sample_of(*info));
    const auto future = call.submit();
    ASSERT_TRUE(future.wait_for(kDeadline)) << info->name;
    const auto& outcome = future.wait();
    if (outcome.ok() || outcome.code() == Errc::numeric) continue;
    // Direct solvers may be missing, and look themselves at lists that are more than indices.
    const auto message = outcome.error().message;
    EXPECT_TRUE(info->library() == "direct" && !message.ends_with(kMark))
        << info->name << ": " << message;
  }
  (void)device.take_error();
  EXPECT_EQ(not_working(device), "");
}

/// What operations demand can be examined, with the names that they give; those without a demand go
/// by no indices.
TEST(DeviceIndexCheck, OperationsDemandWhatCanBeExamined) {
  std::set<std::string_view> without;
  for (const auto* info : all_operations()) {
    if (info->library() != "sparse" && info->library() != "direct") {
      EXPECT_EQ(info->index_rules, nullptr) << info->name;
    } else if (info->index_rules == nullptr) {
      without.insert(info->name);
    } else {
      const auto rules = info->index_rules(sample_of(*info).op.data());
      EXPECT_FALSE(rules.empty()) << info->name;
      for (const auto& rule : rules) {
        auto examination = sparse::examination_of(rule, OnFailure::report);
        examination.found = cell_in(1);
        const auto sound = examination.check();
        EXPECT_TRUE(sound.ok()) << info->name << ": " << (sound.ok() ? "" : sound.error().message);
        for (const auto* array : {&rule.outer, &rule.inner}) {
          EXPECT_LT(array->name.size(), examination.inner_name.size()) << info->name;
          EXPECT_EQ(array->name.empty(), array->length == 0) << info->name;
        }
      }
    }
  }
  EXPECT_EQ(without,
            (std::set<std::string_view>{"direct.release", "sparse.dense_to_sparse",
                                        "sparse.examine", "sparse.gpsv_interleaved", "sparse.gtsv",
                                        "sparse.gtsv_interleaved", "sparse.gtsv_strided"}));
}

/// A product with a matrix of 3 x 3, of which one column may be wrong.
struct Product {
  CsrMatrix<double, std::int32_t> right, wrong;
  GpuRef<double> x, y;

  explicit Product(Device& device) {
    const auto put = [&]<class T>(const std::vector<T>& values) {
      const auto buffer = device.alloc<T>(std::ssize(values));
      device.upload<T>(values, buffer).get();
      return buffer;
    };
    using Indices = std::vector<std::int32_t>;
    const auto begins = put(Indices{0, 1, 2, 4});
    const auto value = put(std::vector<double>{1, 2, 3, 4});
    right = {3, 3, begins, put(Indices{2, 0, 1, 0}), value};  // in any order
    wrong = {3, 3, begins, put(Indices{2, 0, 3, 0}), value};
    x = put(std::vector<double>{1, 10, 100});
    y = put(std::vector<double>{-1, -1, -1});
  }
  const std::string fault = "sparse.spmv: column[2] is 3, outside of [0, 3)" + kMark;
  const std::vector<double> result{100, 2, 34}, before{-1, -1, -1};
};

TEST(DeviceIndexCheck, ResultsStayAsTheyAreAndTheNextCallWorks) {
  DeviceRig rig(checking());
  auto& device = rig.device();
  const Product product(device);
  const auto refused = device.sparse().spmv(product.wrong, product.x, product.y);
  ASSERT_TRUE(refused.ready());
  EXPECT_EQ(refused.wait().error().message, product.fault);
  EXPECT_EQ(device.take_error().error().message, product.fault);
  EXPECT_EQ(device.download(product.y), product.before);
  device.sparse().spmv(product.right, product.x, product.y).get();
  EXPECT_EQ(device.download(product.y), product.result);
  EXPECT_TRUE(device.take_error().ok());
}

/// Nobody waits for what the continuation belongs to, so that it runs on the thread that takes
/// replies where nobody waits.
TEST(DeviceIndexCheck, InContinuations) {
  DeviceRig rig(checking());
  auto& device = rig.device();
  const Product product(device);
  const auto large = device.alloc<double>(8 << 20);
  for (int i = 0; i < 20; ++i) {
    const bool wrong = i % 2 == 1;
    Future<void> answer;
    std::atomic<bool> ran{false};
    device.fill(large, 1.0).on_ready([&](const Result<void>&) {
      answer = device.sparse().spmv(wrong ? product.wrong : product.right, product.x, product.y);
      ran = true;
    });
    ASSERT_TRUE(eventually([&] { return ran.load(); }));
    ASSERT_TRUE(answer.wait_for(kDeadline));
    EXPECT_EQ(answer.wait().code(), wrong ? Errc::invalid : Errc::ok);
  }
  EXPECT_EQ(device.download(product.y), product.result);
}

/// Device hosts die while submissions wait for an answer: each goes on, what is wrong is never
/// launched, and what is right is never called wrong.
TEST(DeviceIndexCheck, InTheMiddleOfFaults) {
  DeviceRig rig(checking());
  auto& device = rig.device();
  Product product(device);
  for (int round = 0; round < 4; ++round) {
    const auto old = active_host();
    std::thread killer([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(3 * round));
      EXPECT_TRUE(kill_active());
    });
    for (int i = 0; i < 400; ++i) {
      const auto good = device.sparse().spmv(product.right, product.x, product.y);
      const auto bad = device.sparse().spmv(product.wrong, product.x, product.y);
      ASSERT_TRUE(good.wait_for(kDeadline) && bad.wait_for(kDeadline));
      EXPECT_NE(good.wait().code(), Errc::invalid) << good.wait().error().message;
      EXPECT_FALSE(bad.wait().ok());
      if (!product.y.valid()) product.y.renew();
    }
    killer.join();
    ASSERT_TRUE(replaced(old));
  }
  device.sparse().spmv(product.right, product.x, product.y).get();
  EXPECT_EQ(device.download(product.y), product.result);
}

/// Where a command fails with its device host, the thread that brings up the next one runs what was
/// to come behind it.
TEST(DeviceIndexCheck, InContinuationsThatAFaultRuns) {
  auto options = checking();
  options.insert(options.end(), {"--replay", "off"});
  DeviceRig rig(options);
  auto& device = rig.device();
  Product product(device);
  const auto large = device.alloc<double>(8 << 20);
  for (int round = 0; round < 3; ++round) {
    const auto old = active_host();
    constexpr std::size_t kCalls = 8;
    std::vector<Future<void>> answers(kCalls);
    std::atomic<std::size_t> ran{0};
    for (auto& answer : answers) {
      auto target = large;
      if (!target.valid()) target.renew();
      device.fill(target, 1.0).on_ready([&](const Result<void>&) {
        answer = device.sparse().spmv(product.right, product.x, product.y);
        ++ran;
      });
    }
    ASSERT_TRUE(kill_active());
    ASSERT_TRUE(eventually([&] { return ran == kCalls; }));
    ASSERT_TRUE(all_resolved(answers));
    for (const auto& answer : answers)
      EXPECT_NE(answer.wait().code(), Errc::invalid) << answer.wait().error().message;
    ASSERT_TRUE(replaced(old));
    if (!product.y.valid()) product.y.renew();
  }
  device.sparse().spmv(product.right, product.x, product.y).get();
  EXPECT_EQ(device.download(product.y), product.result);
}

TEST(DeviceIndexCheck, WithoutTheOptionNothingIsExamined) {
  for (const bool checks : {false, true}) {
    DeviceRig rig(checks ? checking() : std::vector<std::string>{"--check", "collectives"});
    const Product product(rig.device());
    const auto before = rig.core().port().submitted();
    rig.device().sparse().spmv(product.right, product.x, product.y).get();
    EXPECT_EQ(rig.core().port().submitted() - before, checks ? 2u : 1u);
    rig.device().fill(product.y, 0.0).get();
    EXPECT_EQ(rig.core().port().submitted() - before, checks ? 3u : 2u);
  }
}

TEST(DeviceIndexCheck, RecordedCallsAreNotExamined) {
  DeviceRig rig(checking());
  auto& device = rig.device();
  const Product product(device);
  auto sequence = device.record([&] { device.sparse().spmv(product.right, product.x, product.y); });
  const auto before = rig.core().port().submitted();
  sequence.run().get();
  EXPECT_EQ(rig.core().port().submitted() - before, 1u);
  EXPECT_EQ(device.download(product.y), product.result);
}

/// A device that answers when it is told to.
class Silent final : public detail::Submitter, public detail::Progress {
 public:
  Future<void> submit(const detail::CommandView&) override {
    promises_.emplace_back();
    return promises_.back().future();
  }
  Future<void> refuse(Error error) override {
    ++refused;
    return Future<void>(std::move(error));
  }
  Future<void> refuse_collective(Error error, const detail::Scope& scope) override {
    group = scope.group;
    return Future<void>(std::move(error));
  }
  Result<detail::ResultCell> result_cell(std::size_t bytes) override {
    if (bytes > sizeof cell_) return Error{Errc::out_of_memory, 0, "too large"};
    return detail::ResultCell{cell_in(1), cell_.data(), nullptr};
  }
  void keep(std::shared_ptr<const void> what) override { kept = std::move(what); }
  void poll() noexcept override {}
  void before_sleep() noexcept override {}
  [[nodiscard]] std::chrono::nanoseconds spin_time() const noexcept override { return 0ns; }

  [[nodiscard]] std::size_t submitted() const { return promises_.size(); }
  void answer() {
    for (auto& promise : promises_) promise.resolve({});
  }

  int refused = 0;
  std::uint32_t group = 0;
  std::shared_ptr<const void> kept;

 private:
  std::vector<Promise<void>> promises_;
  std::array<std::byte, 64> cell_{};
};

TEST(DeviceIndexCheck, AContinuationDoesNotWaitForEver) {
  Silent silent;
  rank_process::IndexCheck check(silent, silent);
  const auto gather = sample_of<sparse::Gather>();
  const auto in_continuation = [&] {
    Promise<void> promise;
    Future<void> answer;
    promise.future().on_ready([&](const Result<void>&) { answer = detail::submit(check, gather); });
    promise.resolve({});
    EXPECT_TRUE(answer.ready());
    EXPECT_EQ(answer.wait().code(), Errc::would_block);
    EXPECT_TRUE(answer.wait().error().message.starts_with("sparse.gather: its indices"));
  };
  const auto begin = std::chrono::steady_clock::now();
  in_continuation();
  EXPECT_GE(std::chrono::steady_clock::now() - begin, rank_process::IndexCheck::kPatience);
  EXPECT_EQ(silent.submitted(), 1u);
  // Until it is answered nobody else waits, or adds to what the device has to do.
  in_continuation();
  EXPECT_EQ(silent.submitted(), 1u);
  silent.answer();
  in_continuation();
  EXPECT_EQ(silent.submitted(), 2u);
  EXPECT_EQ(silent.refused, 3);
}

TEST(DeviceIndexCheck, PassesOnEverythingElse) {
  Silent silent;
  rank_process::IndexCheck check(silent, silent);
  EXPECT_FALSE(detail::submit(check, sample_of<sparse::Gtsv>()).ready());
  EXPECT_EQ(check.refuse({Errc::invalid, 0, "this"}).wait().error().message, "this");
  EXPECT_EQ(silent.refused, 1);
  EXPECT_EQ(check.refuse_collective({Errc::invalid, 0, "that"}, {1, 7}).wait().code(),
            Errc::invalid);
  EXPECT_EQ(silent.group, 7u);
  EXPECT_TRUE(check.result_cell(64).ok());
  EXPECT_EQ(check.result_cell(65).code(), Errc::out_of_memory);
  const auto kept = std::make_shared<int>(1);
  check.keep(kept);
  EXPECT_EQ(silent.kept, kept);
}

}  // namespace
}  // namespace troupe::test
