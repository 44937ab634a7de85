#include <troupe/lib/fft.hpp>

#include <complex>
#include <functional>

#include "bad_arguments.hpp"

// Batches that are not packed, beside those of the catalogue.

namespace troupe::test {
namespace {

using fft::Extents;
using fft::Storage;

template <class T>
class FftLayouts : public Typed<T> {
 protected:
  void SetUp() override {
    const auto x = put(std::vector<std::complex<T>>(1));
    if (fft::on(device()).forward(x, x, {.extents = {1}}).wait().ok()) return;
    (void)device().take_error();
    ASSERT_FALSE(on_cuda());
    GTEST_SKIP() << "the cpu engine has no FFT library";
  }
};
TYPED_TEST_SUITE(FftLayouts, Reals);

template <class E>
std::vector<E> integers(std::int64_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<E> values;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto next = [&] { return static_cast<float>(static_cast<int>(random() % 9) - 4); };
    if constexpr (std::is_floating_point_v<E>) {
      values.push_back(next());
    } else {
      const auto real = next();
      values.emplace_back(real, next());
    }
  }
  return values;
}

/// As for a spectrogram.
TYPED_TEST(FftLayouts, MayOverlapInAnInputThatIsOnlyRead) {
  using C = std::complex<TypeParam>;
  constexpr std::int64_t kWindows = 5, kLength = 4, kStep = 1;
  const auto signal = integers<TypeParam>(kLength + (kWindows - 1) * kStep, 53);
  std::vector<TypeParam> windows;
  for (std::int64_t w = 0; w < kWindows; ++w)
    windows.insert(windows.end(), signal.begin() + w * kStep, signal.begin() + w * kStep + kLength);
  const auto packed = device().template alloc<C>(kWindows * 3);
  const auto overlapping = device().template alloc<C>(kWindows * 3);
  const auto x = put(signal);
  fft::on(device()).real_to_complex(put(windows), packed, {{kLength}, kWindows}).get();
  fft::on(device())
      .real_to_complex(x, overlapping, {{kLength}, kWindows, {.distance = kStep}})
      .get();
  EXPECT_EQ(device().download(overlapping), device().download(packed));
  EXPECT_EQ(device().download(x), signal);
}

TEST_F(BadArguments, OfTransformsThatAreNotPacked) {
  const auto other = put(std::vector<double>(16, 1.0));
  const Operand y = other.operand();
  // Two transforms of 2 x 2 of 16 bytes each, interleaved, fill x.
  const fft::Transform good{DType::c128, fft::Kind::forward, 2, {2, 2, 0}, 2, {1, 2}, {1, 2}, x, y};
  EXPECT_TRUE(good.check().ok()) << good.check().error().message;
  const auto with = [&](auto change) {
    auto op = good;
    change(op);
    expect_refused(op);
  };
  constexpr auto kHuge = std::int64_t{1} << 40;
  with([](auto& op) { op.input_storage.stride = -1; });
  with([](auto& op) { op.input_storage.stride = 3; });
  with([](auto& op) { op.input_storage.stride = kHuge; });
  with([](auto& op) { op.output_storage.stride = 1; });  // both transforms in the same places
  with([](auto& op) { op.output_storage.distance = 2; });
  with([](auto& op) { op.input_storage.stored = {0, 1, 0}; });
  with([](auto& op) { op.input_storage.stored = {1, 0, 0}; });
  with([](auto& op) { op.input_storage.stored = {0, -2, 0}; });
  with([](auto& op) { op.input_storage.stored = {0, 0, 2}; });
  with([](auto& op) { op.input_storage.stored = {kHuge, kHuge, 0}; });
  with([](auto& op) { op.output_storage.stored = {0, 3, 0}; });
  with([](auto& op) {  // a transform to reals destroys its input, which must not overlap
    op.kind = fft::Kind::complex_to_real;
    op.input_storage = {1, 1, {}};
    op.output_storage = {};
  });
  with([](auto& op) {  // in place: stored otherwise
    op.output = op.input;
    op.output_storage = {};
  });
  with([](auto& op) {  // in place: reals without room for their transform
    op.kind = fft::Kind::real_to_complex;
    op.output = op.input;
    op.batch = 1;
    op.input_storage = op.output_storage = {};
  });
  with([](auto& op) {  // in place: reals that are not neighbours
    op.kind = fft::Kind::real_to_complex;
    op.output = op.input;
    op.rank = 1;
    op.extents = {2, 0, 0};
    op.batch = 1;
    op.input_storage = {.stride = 2};
    op.output_storage = {};
  });
}

TEST(FftLayoutWrites, AreWhatSurelyIsWritten) {
  fft::Transform op{DType::c64, fft::Kind::forward, 2, {3, 4, 0}, 2, {}, {}, {}, {}};
  op.output_storage = {.distance = 1, .stride = 2};  // interleaved
  EXPECT_EQ(op.written(op.output), 24u * 8);
  op.output_storage = {.stored = {3, 5}};
  EXPECT_EQ(op.written(op.output), 4u * 8);
  op.output_storage = {.stride = 2};
  EXPECT_EQ(op.written(op.output), 0u);
}

}  // namespace
}  // namespace troupe::test
