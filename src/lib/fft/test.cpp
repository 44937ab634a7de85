#include <troupe/lib/fft.hpp>

#include "bad_arguments.hpp"
#include "reference/transforms.hpp"

namespace troupe::test {
namespace {

/// Skipped where the engine has no FFT library, which the cpu engine loads at run time.
template <class T>
class FftOps : public Typed<T> {
 protected:
  void SetUp() override {
    const auto x = put(std::vector<std::complex<T>>(1));
    const Result<void> probed = fft::on(device()).forward(x, x, {.extents = {1}}).wait();
    if (probed.ok()) return;
    (void)device().take_error();
    ASSERT_FALSE(on_cuda()) << probed.error().message;
    ASSERT_EQ(probed.code(), Errc::unsupported) << probed.error().message;
    ASSERT_NE(probed.error().message.find("FFTW"), std::string::npos) << probed.error().message;
    GTEST_SKIP() << probed.error().message;
  }
};
TYPED_TEST_SUITE(FftOps, Reals);

template <class E>
E element_from(const Wide& value) {
  if constexpr (std::is_floating_point_v<E>) {
    return static_cast<E>(value.real());
  } else {
    using T = typename E::value_type;
    return {static_cast<T>(value.real()), static_cast<T>(value.imag())};
  }
}

/// Transforms of a batch `distance` apart, with -7 between and behind them.
template <class E>
std::vector<E> laid_out(const std::vector<std::vector<Wide>>& transforms, std::int64_t distance) {
  std::vector<E> all(transforms.size() * static_cast<std::size_t>(distance), E(-7));
  for (std::size_t b = 0; b < transforms.size(); ++b) {
    for (std::size_t i = 0; i < transforms[b].size(); ++i)
      all[b * static_cast<std::size_t>(distance) + i] = element_from<E>(transforms[b][i]);
  }
  return all;
}

/// Runs a batch on elements of type In and gives what the output then holds, padding included.
template <class T, class In, class Out>
std::vector<Out> transformed(Kind kind, const std::vector<In>& input, std::int64_t output_elements,
                             const FftOptions& shape) {
  const auto x = put(input);
  const auto y = put(std::vector<Out>(static_cast<std::size_t>(output_elements), Out(-7)));
  auto on_device = fft::on(device());
  if constexpr (std::is_same_v<In, Out>) {
    (kind == Kind::forward ? on_device.forward(x, y, shape) : on_device.inverse(x, y, shape)).get();
  } else if constexpr (std::is_same_v<In, T>) {
    on_device.real_to_complex(x, y, shape).get();
  } else {
    on_device.complex_to_real(x, y, shape).get();
  }
  // Only complex_to_real may destroy its input.
  if (kind != Kind::complex_to_real) {
    EXPECT_EQ(device().download(x), input);
  }
  return device().download(y);
}

/// A batch of transforms with padding of so many elements between them, against the reference.
template <class T, class In, class Out>
void check_transforms(Kind kind, const Extents& extents, std::int64_t batch, std::int64_t padding) {
  SCOPED_TRACE(::testing::Message()
               << "kind " << static_cast<int>(kind) << ", " << extents.extent[0] << " x "
               << extents.extent[1] << " x " << extents.extent[2] << ", batch of " << batch
               << ", padding " << padding);
  std::mt19937_64 random(41);
  std::uniform_real_distribution<double> uniform(-1, 1);
  const auto next = [&] { return uniform(random); };
  std::vector<std::vector<Wide>> inputs, outputs;
  for (std::int64_t b = 0; b < batch; ++b) {
    auto one = expected_of(kind, extents, next);
    inputs.push_back(std::move(one.input));
    outputs.push_back(std::move(one.output));
  }
  const auto input_distance = std::ssize(inputs[0]) + padding;
  const auto output_distance = std::ssize(outputs[0]) + 2 * padding;
  const auto expected = laid_out<Out>(outputs, output_distance);
  const auto actual =
      transformed<T, In, Out>(kind, laid_out<In>(inputs, input_distance), std::ssize(expected),
                              {.extents = extents,
                               .batch = batch,
                               .input = {padding == 0 ? 0 : input_distance},
                               .output = {padding == 0 ? 0 : output_distance}});
  for (std::size_t b = 0; b < outputs.size(); ++b) {
    long double error = 0, norm = 0;
    const auto begin = b * static_cast<std::size_t>(output_distance);
    for (std::size_t i = 0; i < static_cast<std::size_t>(output_distance); ++i) {
      if (i >= outputs[b].size()) {
        EXPECT_EQ(actual[begin + i], Out(-7)) << "an element between two transforms was written";
        continue;
      }
      const auto value = Wide(actual[begin + i]);
      error += std::norm(value - outputs[b][i]);
      norm += std::norm(outputs[b][i]);
    }
    EXPECT_LE(std::sqrt(static_cast<double>(error / norm)), allowed_error<T>(extents));
  }
}

template <class T>
void check_all_kinds(const Extents& extents, std::int64_t batch, std::int64_t padding) {
  using C = std::complex<T>;
  check_transforms<T, C, C>(Kind::forward, extents, batch, padding);
  check_transforms<T, C, C>(Kind::inverse, extents, batch, padding);
  check_transforms<T, T, C>(Kind::real_to_complex, extents, batch, padding);
  check_transforms<T, C, T>(Kind::complex_to_real, extents, batch, padding);
}

TYPED_TEST(FftOps, OfADeltaAndOfAConstantAreExact) {
  using C = std::complex<TypeParam>;
  for (const auto& extents : {Extents{8}, Extents{16}, Extents{8, 8}, Extents{4, 8, 2}}) {
    const auto volume = volume_of(extents);
    std::vector<C> delta(static_cast<std::size_t>(volume)), constant(delta.size(), C(3));
    delta[0] = C(3);
    auto peak = delta;
    peak[0] = C(static_cast<TypeParam>(3 * volume));
    const FftOptions shape{.extents = extents};
    for (const auto kind : {Kind::forward, Kind::inverse}) {
      EXPECT_EQ((transformed<TypeParam, C, C>(kind, delta, volume, shape)), constant);
      EXPECT_EQ((transformed<TypeParam, C, C>(kind, constant, volume, shape)), peak);
    }
  }
}

TYPED_TEST(FftOps, AreCloseToTheDefinition) {
  for (const auto& extents :
       {Extents{3}, Extents{8}, Extents{15}, Extents{100}, Extents{131}, Extents{1009},
        Extents{1024}, Extents{5, 7}, Extents{16, 12}, Extents{1, 9}, Extents{9, 1},
        Extents{33, 64}, Extents{3, 5, 7}, Extents{8, 4, 6}, Extents{10, 11, 12}}) {
    check_all_kinds<TypeParam>(extents, 1, 0);
    check_all_kinds<TypeParam>(extents, 3, 0);
    check_all_kinds<TypeParam>(extents, 2, 7);
  }
}

/// Wherever their operands lie: an engine must not choose its algorithm by their addresses.
TYPED_TEST(FftOps, RepeatTheSameBits) {
  using C = std::complex<TypeParam>;
  const std::int64_t batch = 5;
  for (const auto& extents : {Extents{45, 28}, Extents{64, 32}}) {
    const auto volume = batch * volume_of(extents), half = batch * half_of(extents);
    const FftOptions shape{.extents = extents, .batch = batch};
    const auto values = random_values<TypeParam>(2 * volume, 44);
    std::vector<C> pairs;
    for (std::size_t i = 0; i < values.size(); i += 2) pairs.emplace_back(values[i], values[i + 1]);
    const auto real = put(values), moved_real = device().template alloc<TypeParam>(volume + 2);
    const auto complex = put(pairs), moved_complex = device().template alloc<C>(volume + 1);
    device().copy(real.slice(0, volume), moved_real.slice(2, volume));
    device().copy(complex, moved_complex.slice(1, volume));
    const auto y = device().template alloc<C>(volume),
               moved_y = device().template alloc<C>(volume + 1);
    auto on_device = fft::on(device());
    on_device.real_to_complex(real.slice(0, volume), y, shape);
    on_device.real_to_complex(moved_real.slice(2, volume), moved_y.slice(1, half), shape).get();
    EXPECT_EQ(device().download(y.slice(0, half)), device().download(moved_y.slice(1, half)));
    on_device.forward(complex, y, shape);
    on_device.forward(moved_complex.slice(1, volume), moved_y.slice(1, volume), shape).get();
    EXPECT_EQ(device().download(y), device().download(moved_y.slice(1, volume)));

    // Into elements that others lie between, and in place.
    const auto wide = put(std::vector<C>(static_cast<std::size_t>(2 * volume), C(7))),
               moved_wide = put(std::vector<C>(static_cast<std::size_t>(2 * volume + 1), C(7)));
    const FftOptions spread{.extents = extents, .batch = batch, .output = {.stride = 2}};
    on_device.forward(complex, wide, spread);
    on_device.forward(moved_complex.slice(1, volume), moved_wide.slice(1, 2 * volume), spread)
        .get();
    EXPECT_EQ(device().download(wide), device().download(moved_wide.slice(1, 2 * volume)));
    on_device.forward(complex, complex, shape);
    on_device.forward(moved_complex.slice(1, volume), moved_complex.slice(1, volume), shape).get();
    EXPECT_EQ(device().download(complex), device().download(moved_complex.slice(1, volume)));
  }
}

/// There are more shapes than an engine keeps plans for, twice in the same order: each has lost its
/// plan when it comes again. Nobody waits in between.
TYPED_TEST(FftOps, OfManyShapesFollowOneAnother) {
  using C = std::complex<TypeParam>;
  constexpr std::int64_t kShapes = 80;
  std::vector<C> ramp;
  for (std::int64_t i = 1; i <= kShapes; ++i) ramp.emplace_back(static_cast<TypeParam>(i));
  const auto x = put(ramp);
  const auto y = put(std::vector<C>(2 * kShapes));
  const auto work = device().template alloc<C>(kShapes);
  std::vector<Future<void>> done;
  for (std::int64_t i = 0; i < 2 * kShapes; ++i) {
    const auto n = i % kShapes + 1;
    done.push_back(fft::on(device()).forward(x.slice(0, n), work.slice(0, n), {.extents = {n}}));
    done.push_back(device().copy(work.slice(0, 1), y.slice(i, 1)));
  }
  for (const auto& future : done) future.get();
  const auto sums = device().download(y);
  for (std::int64_t i = 0; i < 2 * kShapes; ++i) {
    const auto n = i % kShapes + 1;
    const auto expected = static_cast<double>(n * (n + 1)) / 2;
    EXPECT_LE(std::abs(std::complex<double>(sums[static_cast<std::size_t>(i)]) - expected),
              expected * allowed_error<TypeParam>({1009}))
        << n;
  }
}

TYPED_TEST(FftOps, OfNothingDoNothing) {
  using C = std::complex<TypeParam>;
  const auto x = put(std::vector<C>(4, C(1))), y = put(std::vector<C>(4, C(2)));
  fft::on(device()).forward(x, y, {.extents = {64}, .batch = 0}).get();
  EXPECT_EQ(device().download(y), std::vector<C>(4, C(2)));
}

TEST_F(BadArguments, OfTransforms) {
  const auto other = put(std::vector<double>(16, 1.0));
  const Operand y = other.operand();
  // Two transforms of 2 x 2 of 16 bytes each fill x.
  const fft::Transform good{DType::c128, Kind::forward, 2, {2, 2, 0}, 2, {4}, {4}, x, y};
  const auto with = [&](auto change) {
    auto op = good;
    change(op);
    expect_refused(op);
  };
  constexpr auto kHuge = std::int64_t{1} << 40;
  with([](auto& op) { op.kind = static_cast<Kind>(4); });
  with([](auto& op) { op.rank = 0; });
  with([](auto& op) { op.rank = 4; });
  with([](auto& op) { op.rank = 1; });  // the second extent is not 0
  with([](auto& op) { op.rank = 3; });  // the third one is
  with([](auto& op) { op.extents[0] = -2; });
  with([](auto& op) { op.extents = {kHuge, kHuge, 0}; });
  with([](auto& op) { op.extents = {3, 2, 0}; });
  with([](auto& op) { op.batch = -1; });
  with([](auto& op) { op.batch = 3; });
  with([](auto& op) { op.batch = kHuge; });
  with([](auto& op) { op.input_storage.distance = -4; });
  with([](auto& op) { op.input_storage.distance = 5; });
  with([](auto& op) { op.output_storage.distance = 3; });
  with([](auto& op) { op.output_storage.distance = 5; });
  with([](auto& op) { op.output_storage.distance = kHuge; });
  with([&](auto& op) { op.input = absent; });
  with([&](auto& op) { op.output = absent; });
  with([&](auto& op) {  // aligned to its own element, but not to a complex one
    op.kind = Kind::real_to_complex;
    op.batch = 1;
    op.input.offset += 8;
    op.input.bytes -= 8;
  });
  with([](auto& op) {  // the output of a real transform is as large as its last extent says
    op.kind = Kind::complex_to_real;
    op.extents = {4, 4, 0};
    op.batch = 1;
  });
  with([](auto& op) {  // in place: a real one
    op.kind = Kind::real_to_complex;
    op.batch = 1;
    op.output = op.input;
  });
  with([](auto& op) {  // in place: other distances
    op.extents = {1, 2, 0};
    op.input_storage.distance = 2;
    op.output = op.input;
  });
  with([](auto& op) {  // half in place
    op.batch = 1;
    op.input.bytes = op.output.bytes = 64;
    op.output = op.input;
    op.output.offset += 32;
  });
  auto wrong_type = good;
  wrong_type.dtype = DType::f64;
  expect_refused(wrong_type, Errc::unsupported);
  EXPECT_EQ(fft::on(device())
                .forward(put(std::vector<std::complex<double>>(1)),
                         put(std::vector<std::complex<double>>(1)), {.extents = {1, 1, 1, 1}})
                .wait()
                .code(),
            Errc::invalid);
}

TEST(FftOpsAccess, OnlyTransformsToRealsDestroyTheirInput) {
  fft::Transform op{DType::c64, Kind::forward, 2, {3, 4, 0}, 2, {}, {}, {}, {}};
  for (const auto kind :
       {Kind::forward, Kind::inverse, Kind::real_to_complex, Kind::complex_to_real}) {
    op.kind = kind;
    EXPECT_EQ(op.access(op.input, Access::read),
              kind == Kind::complex_to_real ? Access::update : Access::read);
    EXPECT_EQ(op.access(op.output, Access::write), Access::write);
    EXPECT_EQ(op.written(op.input), 0u);
  }
  op.kind = Kind::real_to_complex;  // 3 x 3 stored
  EXPECT_EQ(op.written(op.output), 2u * 9 * 8);
  op.output_storage.distance = 10;
  EXPECT_EQ(op.written(op.output), 9u * 8);
  op.kind = Kind::complex_to_real;
  op.output_storage.distance = 0;
  EXPECT_EQ(op.written(op.output), 2u * 12 * 4);
  op.batch = 0;
  EXPECT_EQ(op.written(op.output), 0u);
}

}  // namespace
}  // namespace troupe::test
