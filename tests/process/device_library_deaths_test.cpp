#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <complex>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <troupe/lib/blas.hpp>
#include <troupe/lib/dnn.hpp>
#include <troupe/lib/fft.hpp>
#include <troupe/lib/primitives.hpp>
#include <troupe/lib/solver.hpp>
#include <troupe/lib/sparse.hpp>
#include <troupe/lib/tensor.hpp>

#include "device_rig.hpp"

// The death of a device host in the middle of a library's call, and the first call after it.

namespace troupe::test {
namespace {

using memory::FaultKind;

/// A call that takes a while and whose result is known, on buffers of its own.
class Work {
 public:
  virtual ~Work() = default;
  /// Gives what it reads and writes contents, also where they are stale.
  virtual void write() = 0;
  virtual Future<void> submit() = 0;
  /// Whether the result is right. Throws Exception.
  [[nodiscard]] virtual bool is_right() const = 0;
  /// Whether it writes where it reads: a call that was under way cannot run again.
  [[nodiscard]] virtual bool overwrites() const { return false; }
  [[nodiscard]] virtual bool is_stale() const = 0;
};

template <class T>
void put(Device& device, GpuRef<T>& buffer, const std::vector<T>& values) {
  if (!buffer) buffer = device.alloc<T>(std::ssize(values));
  if (!buffer.valid()) buffer.renew();
  device.upload<T>(values, buffer).get();
}

/// A positive definite matrix of order 2 and its factor, with the upper corner left as it is.
class Factorisation final : public Work {
 public:
  explicit Factorisation(Device& device) : device_(device) {}
  void write() override { put(device_, a_, {4, 2, -7, 5}); }
  Future<void> submit() override {
    return device_.solver().potrf(blas::Uplo::lower, MatrixRef(a_, 2, 2)).then([](std::int32_t) {});
  }
  [[nodiscard]] bool is_right() const override {
    return device_.download(a_) == std::vector<double>{2, 1, -7, 2};
  }
  [[nodiscard]] bool overwrites() const override { return true; }
  [[nodiscard]] bool is_stale() const override { return !a_.valid(); }

 private:
  Device& device_;
  GpuRef<double> a_;
};

/// Of a diagonal matrix; the eigenvectors replace it.
class Eigenvalues final : public Work {
 public:
  explicit Eigenvalues(Device& device) : device_(device) {}
  void write() override {
    std::vector<double> matrix(kOrder * kOrder);
    for (std::size_t i = 0; i < kOrder; ++i)
      matrix[i * (kOrder + 1)] = static_cast<double>(kOrder - i);
    put(device_, a_, matrix);
    put(device_, w_, std::vector<double>(kOrder));
  }
  Future<void> submit() override {
    return device_.solver()
        .syevd(solver::Vectors::yes, blas::Uplo::lower, MatrixRef(a_, kOrder, kOrder), w_)
        .then([](std::int32_t) {});
  }
  [[nodiscard]] bool is_right() const override {
    const auto values = device_.download(w_);
    for (std::size_t i = 0; i < kOrder; ++i) {
      if (std::abs(values[i] - static_cast<double>(i + 1)) > 1e-9) return false;
    }
    return true;
  }
  [[nodiscard]] bool overwrites() const override { return true; }
  [[nodiscard]] bool is_stale() const override { return !a_.valid() && !w_.valid(); }

 private:
  static constexpr std::size_t kOrder = 96;
  Device& device_;
  GpuRef<double> a_, w_;
};

/// Of a constant: all is in the first element.
class FourierTransform final : public Work {
 public:
  explicit FourierTransform(Device& device) : device_(device) {}
  void write() override {
    put(device_, x_, std::vector<Complex>(kLength, 1.0f));
    put(device_, y_, std::vector<Complex>(kLength, 7.0f));
  }
  Future<void> submit() override {
    return fft::on(device_).forward(x_, y_, {.extents = {static_cast<std::int64_t>(kLength)}});
  }
  [[nodiscard]] bool is_right() const override {
    std::vector<Complex> expected(kLength);
    expected[0] = static_cast<float>(kLength);
    return device_.download(y_) == expected;
  }
  [[nodiscard]] bool is_stale() const override { return !y_.valid(); }

 private:
  using Complex = std::complex<float>;
  static constexpr std::size_t kLength = 1 << 18;
  Device& device_;
  GpuRef<Complex> x_, y_;
};

/// Of ones with ones.
class Convolution final : public Work {
 public:
  explicit Convolution(Device& device) : device_(device) {}
  void write() override {
    put(device_, x_, std::vector<float>(kExtent * kExtent * kChannels, 1.0f));
    put(device_, w_, std::vector<float>(kChannels * 9 * kChannels, 1.0f));
    put(device_, y_, std::vector<float>(kOut * kOut * kChannels, 7.0f));
  }
  Future<void> submit() override {
    return dnn::on(device_).convolution(x_, w_, y_,
                                        {.input_channels = kChannels,
                                         .output_channels = kChannels,
                                         .extents = {kExtent, kExtent},
                                         .filter = {3, 3}});
  }
  [[nodiscard]] bool is_right() const override {
    return device_.download(y_) == std::vector<float>(kOut * kOut * kChannels, 9.0f * kChannels);
  }
  [[nodiscard]] bool is_stale() const override { return !y_.valid(); }

 private:
  static constexpr int kExtent = 96, kChannels = 16, kOut = kExtent - 2;
  Device& device_;
  GpuRef<float> x_, w_, y_;
};

/// Of keys that weigh the same.
class Attention final : public Work {
 public:
  explicit Attention(Device& device) : device_(device) {}
  void write() override {
    put(device_, q_, std::vector<Half>(kSequence * kDim));
    put(device_, v_, std::vector<Half>(kSequence * kDim, kOneHalf));
    put(device_, o_, std::vector<Half>(kSequence * kDim, Half{0x4700}));
  }
  Future<void> submit() override {
    return dnn::on(device_).attention(q_, q_, v_, o_, {.sequence_q = kSequence, .dim_qk = kDim});
  }
  [[nodiscard]] bool is_right() const override {
    const auto values = device_.download(o_);
    return std::all_of(values.begin(), values.end(),
                       [](Half value) { return value.bits == kOneHalf.bits; });
  }
  [[nodiscard]] bool is_stale() const override { return !o_.valid(); }

 private:
  static constexpr int kSequence = 256, kDim = 64;
  static constexpr Half kOneHalf{0x3800};
  Device& device_;
  GpuRef<Half> q_, v_, o_;
};

/// Of ones with ones, over two of four modes each.
class Contraction final : public Work {
 public:
  explicit Contraction(Device& device) : device_(device) {}
  void write() override {
    put(device_, a_, std::vector<float>(kElements, 1.0f));
    put(device_, b_, std::vector<float>(kElements, 1.0f));
    put(device_, c_, std::vector<float>(kElements, 7.0f));
  }
  Future<void> submit() override {
    const tensor::Numbers extents{kExtent, kExtent, kExtent, kExtent};
    const tensor::View a(a_, extents), b(b_, extents), c(c_, extents);
    return tensor::on(device_).contract(a("iajb"), b("bkal"), c("klij"));
  }
  [[nodiscard]] bool is_right() const override {
    return device_.download(c_) == std::vector<float>(kElements, 1.0f * kExtent * kExtent);
  }
  [[nodiscard]] bool is_stale() const override { return !c_.valid(); }

 private:
  static constexpr std::int64_t kExtent = 16;
  static constexpr std::size_t kElements = std::size_t{1} << 16;
  Device& device_;
  GpuRef<float> a_, b_, c_;
};

/// Twice the unit matrix times one with two elements in each row.
class SparseProduct final : public Work {
 public:
  explicit SparseProduct(Device& device) : device_(device) {}
  void write() override {
    std::vector<std::int32_t> ones(kRows + 1), twos(kRows + 1);
    std::iota(ones.begin(), ones.end(), 0);
    for (std::size_t i = 0; i <= kRows; ++i) twos[i] = static_cast<std::int32_t>(2 * i);
    std::vector<std::int32_t> diagonal(ones.begin(), ones.end() - 1), pairs(2 * kRows);
    for (std::size_t row = 0; row < kRows; ++row)
      pairs[2 * row] = 0, pairs[2 * row + 1] = static_cast<std::int32_t>(1 + row % (kRows - 1));
    columns_ = pairs, row_begin_ = twos;
    put(device_, a_begin_, ones), put(device_, a_column_, diagonal);
    put(device_, a_, std::vector<double>(kRows, 2.0));
    put(device_, b_begin_, twos), put(device_, b_column_, pairs);
    put(device_, b_, std::vector<double>(2 * kRows, 3.0));
    put(device_, c_begin_, std::vector<std::int32_t>(kRows + 1, 7));
    put(device_, c_column_, std::vector<std::int32_t>(2 * kRows, 7));
    put(device_, c_, std::vector<double>(2 * kRows, 7.0));
  }
  Future<void> submit() override {
    constexpr auto n = static_cast<std::int64_t>(kRows);
    return device_.sparse()
        .spgemm(CsrMatrix<double, std::int32_t>{n, n, a_begin_, a_column_, a_},
                CsrMatrix<double, std::int32_t>{n, n, b_begin_, b_column_, b_},
                CsrMatrix<double, std::int32_t>{n, n, c_begin_, c_column_, c_})
        .then([](std::int64_t) {});
  }
  [[nodiscard]] bool is_right() const override {
    return device_.download(c_begin_) == row_begin_ && device_.download(c_column_) == columns_ &&
           device_.download(c_) == std::vector<double>(2 * kRows, 6.0);
  }
  [[nodiscard]] bool is_stale() const override {
    return !c_begin_.valid() && !c_column_.valid() && !c_.valid();
  }

 private:
  static constexpr std::size_t kRows = 20'000;
  Device& device_;
  std::vector<std::int32_t> row_begin_, columns_;
  GpuRef<std::int32_t> a_begin_, a_column_, b_begin_, b_column_, c_begin_, c_column_;
  GpuRef<double> a_, b_, c_;
};

/// Of numbers that descend.
class Sorting final : public Work {
 public:
  explicit Sorting(Device& device) : device_(device) {}
  void write() override {
    std::vector<float> keys(kKeys);
    for (std::size_t i = 0; i < kKeys; ++i) keys[i] = static_cast<float>(kKeys - i);
    put(device_, keys_, keys);
    put(device_, sorted_, std::vector<float>(kKeys, 7.0f));
  }
  Future<void> submit() override { return primitives::on(device_).sort(keys_, sorted_); }
  [[nodiscard]] bool is_right() const override {
    std::vector<float> expected(kKeys);
    std::iota(expected.begin(), expected.end(), 1.0f);
    return device_.download(sorted_) == expected;
  }
  [[nodiscard]] bool is_stale() const override { return !sorted_.valid(); }

 private:
  static constexpr std::size_t kKeys = 1 << 18;
  Device& device_;
  GpuRef<float> keys_, sorted_;
};

struct Library {
  std::string name;
  std::function<std::unique_ptr<Work>(Device&)> make;
};
template <class W>
Library library(std::string name) {
  return {std::move(name), [](Device& device) { return std::make_unique<W>(device); }};
}
void PrintTo(const Library& library, std::ostream* out) {
  *out << library.name;
}

class LibraryDeaths : public ::testing::TestWithParam<Library> {};

/// The fault comes before the call, behind it, or from outside while it is under way or is about to
/// be; the library has been used before, or is opened by the call.
TEST_P(LibraryDeaths, InTheMiddleOfACallLoseItOrDoItWhole) {
  enum Order { before, behind, outside };
  for (int round = 0; round < 6; ++round) {
    SCOPED_TRACE(round);
    DeviceRig rig({"--standby", "local"});
    auto& device = rig.device();
    const Bystanders bystanders(device, 42);
    const auto work = GetParam().make(device), warm = GetParam().make(device);
    if (round % 2 == 0) {
      warm->write();
      const auto supported = warm->submit().wait();
      if (supported.code() == Errc::unsupported) GTEST_SKIP() << supported.error().message;
      ASSERT_TRUE(supported.ok()) << supported.error().to_string();
    }
    work->write();
    const auto old = active_host();
    const auto order = static_cast<Order>(round / 2);
    if (order == before) device.inject(FaultKind::kill);
    const auto over = work->submit();
    if (order == behind) device.inject(FaultKind::kill);
    if (order == outside) ::kill(old, SIGKILL);
    ASSERT_TRUE(over.wait_for(kDeadline));
    ASSERT_TRUE(eventually([&] { return replaced(old); }));
    if (over.wait().ok()) {
      EXPECT_TRUE(work->is_right());
    } else {
      EXPECT_TRUE(work->overwrites()) << "it can run again: " << over.wait().error().to_string();
      EXPECT_EQ(over.wait().code(), Errc::device_lost);
      EXPECT_TRUE(work->is_stale());
    }
    work->write();
    const auto next = work->submit();
    ASSERT_TRUE(next.wait_for(kDeadline));
    EXPECT_TRUE(next.wait().ok()) << "the first call after it: " << next.wait().error().to_string();
    EXPECT_TRUE(work->is_right());
    EXPECT_EQ(bystanders.damage(), "");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Of, LibraryDeaths,
    ::testing::Values(library<Factorisation>("solver_potrf"), library<Eigenvalues>("solver_syevd"),
                      library<FourierTransform>("fft_transform"),
                      library<Convolution>("dnn_convolution"), library<Attention>("dnn_attention"),
                      library<Contraction>("tensor_contract"),
                      library<SparseProduct>("sparse_spgemm"), library<Sorting>("primitives_sort")),
    [](const auto& instance) { return instance.param.name; });

/// What a measurement has found serves the device hosts that come later: the product has the same
/// bits, which it need not have by another algorithm.
TEST(MeasuredPlans, OutliveDeviceHosts) {
  DeviceRig rig({"--standby", "local"});
  auto& device = rig.device();
  constexpr std::int64_t n = 96;
  GpuRef<float> a, b, c;
  std::vector<float> values(n * n);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = std::sin(static_cast<float>(i)) / 3.0f;
  put(device, a, values), put(device, b, values), put(device, c, values);
  const auto x = MatrixRef(a, n, n), y = MatrixRef(b, n, n), z = MatrixRef(c, n, n);
  const auto measured =
      device.blas().tune_matmul<float, float, float>(x, y, z, {}, {.repeats = 1}).wait();
  ASSERT_TRUE(measured.ok()) << measured.error().to_string();
  device.blas().matmul<float, float, float>(x, y, z).get();
  const auto before = device.download(c);
  for (int deaths = 0; deaths < 2; ++deaths) {
    const auto old = active_host();
    device.inject(FaultKind::kill);
    ASSERT_TRUE(eventually([&] { return replaced(old); }));
    put(device, c, values);
    device.blas().matmul<float, float, float>(x, y, z).get();
    EXPECT_EQ(device.download(c), before);
  }
}

}  // namespace
}  // namespace troupe::test
