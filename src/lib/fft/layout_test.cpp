#include <troupe/lib/fft.hpp>

#include <complex>
#include <functional>

#include "bad_arguments.hpp"

// Batches that are not packed. Their integers and lengths of 1, 2 and 4 are exact whatever the
// algorithm, so each gives what the packed batch gives, bit for bit.

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

/// The extents of one side: of the complex one of a real transform if `half`.
Extents side_of(Extents extents, bool half) {
  auto& last = extents.extent[extents.rank - 1];
  if (half) last = last / 2 + 1;
  return extents;
}

/// Calls `visit(packed, stored)` for each element of a batch: its place in the packed batch, and in
/// one that is stored as `storage` says, none of whose numbers is 0.
void for_each_element(const Extents& extents, std::int64_t batch, const Storage& storage,
                      const std::function<void(std::size_t, std::size_t)>& visit) {
  std::array<std::int64_t, 3> n{1, 1, 1}, stored{1, 1, 1};
  for (std::uint32_t d = 0; d < extents.rank; ++d) {  // aligned to the last dimension
    n[3 - extents.rank + d] = extents.extent[d];
    stored[3 - extents.rank + d] = storage.stored[d];
  }
  std::size_t packed = 0;
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t i = 0; i < n[0]; ++i) {
      for (std::int64_t j = 0; j < n[1]; ++j) {
        for (std::int64_t k = 0; k < n[2]; ++k) {
          visit(packed++,
                static_cast<std::size_t>(b * storage.distance +
                                         ((i * stored[1] + j) * stored[2] + k) * storage.stride));
        }
      }
    }
  }
}

template <class E>
std::vector<E> scattered(const std::vector<E>& packed, const Extents& extents, std::int64_t batch,
                         const Storage& storage) {
  std::size_t size = 0;
  for_each_element(extents, batch, storage,
                   [&](std::size_t, std::size_t at) { size = std::max(size, at + 1); });
  std::vector<E> all(size, E(-7));
  for_each_element(extents, batch, storage,
                   [&](std::size_t from, std::size_t to) { all[to] = packed[from]; });
  return all;
}

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

std::int64_t elements_in(const Extents& extents) {
  std::int64_t volume = 1;
  for (std::uint32_t d = 0; d < extents.rank; ++d) volume *= extents.extent[d];
  return volume;
}

/// Some ways to store `batch` transforms: with gaps between elements, within a larger array,
/// interleaved, and all of it.
std::vector<Storage> storages_of(const Extents& extents, std::int64_t batch) {
  Storage gaps{.stride = 3}, larger{.stride = 1}, interleaved{.distance = 1, .stride = batch},
      all{.stride = 2};
  for (std::uint32_t d = 0; d < extents.rank; ++d) {
    const auto n = extents.extent[d];
    gaps.stored[d] = interleaved.stored[d] = n;
    larger.stored[d] = n + 1 + d;
    all.stored[d] = n + 2;
  }
  const auto whole = [](const Storage& storage) {
    std::int64_t elements = storage.stride;
    for (const auto extent : storage.stored) elements *= std::max<std::int64_t>(extent, 1);
    return elements;
  };
  gaps.distance = whole(gaps), larger.distance = whole(larger), all.distance = whole(all) + 5;
  return {gaps, larger, interleaved, all};
}

/// Batches of In that become Out by `run(x, y, shape)`.
template <class In, class Out, class Run>
void check_layouts(const Extents& extents, const Run& run) {
  constexpr std::int64_t kBatch = 3;
  constexpr bool kReal = !std::is_same_v<In, Out>;
  const auto from = side_of(extents, kReal && !std::is_floating_point_v<In>);
  const auto to = side_of(extents, kReal && !std::is_floating_point_v<Out>);
  auto packed = integers<In>(kBatch * elements_in(from), 51);
  if constexpr (kReal && std::is_floating_point_v<Out>) {  // the spectrum of something real
    const auto real = put(integers<Out>(kBatch * elements_in(to), 52));
    const auto spectrum = put(packed);
    fft::on(device()).real_to_complex(real, spectrum, {extents, kBatch}).get();
    packed = device().download(spectrum);
  }
  const auto x = put(packed);
  const auto y = put(std::vector<Out>(static_cast<std::size_t>(kBatch * elements_in(to))));
  run(x, y, FftOptions{extents, kBatch}).get();
  const auto expected = device().download(y);
  for (const auto& input : storages_of(from, kBatch)) {
    for (const auto& output : storages_of(to, kBatch)) {
      SCOPED_TRACE(::testing::Message() << extents.rank << " dimensions, input stride "
                                        << input.stride << ", output stride " << output.stride);
      const auto stored_x = put(scattered(packed, from, kBatch, input));
      const auto before = scattered(std::vector<Out>(expected.size(), Out(9)), to, kBatch, output);
      const auto stored_y = put(before);
      run(stored_x, stored_y, FftOptions{extents, kBatch, input, output}).get();
      EXPECT_EQ(device().download(stored_y), scattered(expected, to, kBatch, output));
    }
  }
}

TYPED_TEST(FftLayouts, GiveWhatThePackedBatchGives) {
  using T = TypeParam;
  using C = std::complex<T>;
  auto ffts = fft::on(device());
  for (const auto& extents : {Extents{4}, Extents{2, 4}, Extents{4, 2}, Extents{2, 4, 4}}) {
    check_layouts<C, C>(extents, [&](const auto& x, const auto& y, const FftOptions& shape) {
      return ffts.forward(x, y, shape);
    });
    check_layouts<C, C>(extents, [&](const auto& x, const auto& y, const FftOptions& shape) {
      return ffts.inverse(x, y, shape);
    });
    check_layouts<T, C>(extents, [&](const auto& x, const auto& y, const FftOptions& shape) {
      return ffts.real_to_complex(x, y, shape);
    });
    check_layouts<C, T>(extents, [&](const auto& x, const auto& y, const FftOptions& shape) {
      return ffts.complex_to_real(x, y, shape);
    });
  }
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

TYPED_TEST(FftLayouts, OfRealsWorkInPlace) {
  using C = std::complex<TypeParam>;
  constexpr std::int64_t kBatch = 3;
  for (const auto& extents : {Extents{4}, Extents{4, 2}, Extents{4, 4}, Extents{2, 4, 4}}) {
    const auto half = side_of(extents, true);
    auto room = half;
    room.extent[extents.rank - 1] *= 2;
    const Storage padded{elements_in(room), 1, room.extent};
    const auto values = integers<TypeParam>(kBatch * elements_in(extents), 54);
    const auto x = put(values);
    const auto y = device().template alloc<C>(kBatch * elements_in(half));
    fft::on(device()).real_to_complex(x, y, {extents, kBatch}).get();
    const auto expected = device().download(y);

    auto before = scattered(values, extents, kBatch, padded);
    before.resize(static_cast<std::size_t>(kBatch * elements_in(room)), TypeParam(-7));
    const auto z = put(before);
    fft::on(device()).real_to_complex_in_place(z, {extents, kBatch}).get();
    const auto there = device().download(z);
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_EQ(C(there[2 * i], there[2 * i + 1]), expected[i]) << i;

    fft::on(device()).complex_to_real_in_place(z, {extents, kBatch}).get();
    const auto back = device().download(z);
    for_each_element(extents, kBatch, padded, [&](std::size_t packed, std::size_t at) {
      EXPECT_EQ(back[at], values[packed] * static_cast<TypeParam>(elements_in(extents)));
    });
  }
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
