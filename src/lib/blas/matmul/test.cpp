// Products with epilogues.
#include "dense_reference.hpp"
#include "reference/gelu.hpp"

namespace troupe::test::reference {
namespace {

using blas::Compute;
using blas::Epilogue;

/// Every extent fits what f8 and integers ask for.
constexpr std::int64_t kM = 32, kN = 48, kK = 32, kGap = 16;

class BlasMatmul : public ::testing::Test {
 protected:
  /// Whether the command ended well. cuBLASLt need not have an algorithm for integers whose A is no
  /// transpose, nor for the gradients of f8; the cpu engine has all.
  static bool ended(const Future<void>& future, bool may_be_missing = false) {
    const auto outcome = future.wait();
    if (may_be_missing && outcome.code() == Errc::unsupported) {
      EXPECT_TRUE(outcome.error().message.starts_with("blas.matmul")) << outcome.error().message;
      (void)device().take_error();
      return false;
    }
    EXPECT_TRUE(outcome.ok()) << outcome.error().message;
    return outcome.ok();
  }

  template <class T>
  static Dense random(std::int64_t rows, std::int64_t columns, std::uint64_t seed,
                      Data data = Data::integers) {
    using N = std::conditional_t<ComplexElement<T>, T, float>;
    return random_matrix<N>(rows, columns, seed, data);
  }
  template <class T>
  static MatrixRef<GpuRef<T>> put_matrix(const Dense& a, std::int64_t gap = 0) {
    return MatrixRef(put_any<T>(spread(a, a.rows + gap)), a.rows, a.columns, a.rows + gap);
  }
  /// As T stores them; integers within their range.
  template <class T>
  static std::vector<Wide> stored(const std::vector<Wide>& values) {
    std::vector<Wide> result;
    for (auto value : values) {
      if (std::is_same_v<T, std::int8_t>) value = std::clamp(value.real(), -128.0, 127.0);
      result.push_back(to_wide(from_wide<T>(value)));
    }
    return result;
  }

  /// Exact, whatever the types: small integers.
  template <class A, class B, class D>
  void multiplies(std::vector<Transpose> of_a = {Transpose::no, Transpose::yes},
                  std::vector<Transpose> of_b = {Transpose::no, Transpose::yes},
                  std::optional<Compute> compute = {}) {
    SCOPED_TRACE(::testing::Message() << to_string(dtype_of<A>) << " and " << to_string(dtype_of<B>)
                                      << " into " << to_string(dtype_of<D>));
    using C = std::conditional_t<OfEightBits<D>, BFloat16, D>;
    using F = detail::MatmulScaleOf<A, D>;
    const auto wide_alpha = Wide(std::is_same_v<F, std::int32_t> ? 1 : 2);
    for (const auto ta : of_a) {
      for (const auto tb : of_b) {
        const auto a = ta == Transpose::no ? random<A>(kM, kK, 1) : random<A>(kK, kM, 1);
        const auto b = tb == Transpose::no ? random<B>(kK, kN, 2) : random<B>(kN, kK, 2);
        const auto c = random<C>(kM, kN, 3), before = random<D>(kM, kN, 4);
        const auto d = put_matrix<D>(before, kGap);
        const MatmulOptions options{.transpose_a = ta, .transpose_b = tb, .compute = compute};
        const auto x = put_matrix<A>(a, kGap);
        const auto y = put_matrix<B>(b);
        const bool missing = std::is_same_v<A, std::int8_t> || compute.has_value();
        if (!ended(device().blas().matmul<A, B, C, D>(
                       from_wide<F>(wide_alpha), x, y, from_wide<F>(1),
                       put_matrix<C>(c, std::is_same_v<A, std::int8_t> ? kGap : 0), d, options),
                   missing))
          continue;
        const auto expected = wide_alpha * (op(a, ta) * op(b, tb)) + c;
        EXPECT_EQ(got(d.buffer), stored_with_gaps<D>(expected, d.leading));
        if (!ended(device().blas().matmul<A, B, D>(x, y, d, options), missing)) continue;
        EXPECT_EQ(got(d.buffer), stored_with_gaps<D>(op(a, ta) * op(b, tb), d.leading));
      }
    }
  }
  /// What lies between the columns stays as it is.
  template <class D>
  static std::vector<Wide> stored_with_gaps(const Dense& d, std::int64_t leading) {
    return stored<D>(spread(d, leading));
  }

  /// Every order of every matrix, with a bias where there is one. cuBLASLt need not have them all.
  template <class T, class D = T>
  static void multiplies_in_orders(Epilogue epilogue = Epilogue::none) {
    SCOPED_TRACE(to_string(dtype_of<T>));
    using F = detail::MatmulScaleOf<T, D>;
    const auto a = random<T>(kM, kK, 1), b = random<T>(kK, kN, 2);
    const auto c = random<D>(kM, kN, 3), bias = random<D>(kM, 1, 4);
    const auto bias_there = put_any<D>(bias.element);
    const bool integers = std::is_same_v<T, std::int8_t>;  // whose C and D lie alike
    std::size_t done = 0;
    for (unsigned which = 0; which < 32; ++which) {
      const auto order = [which](unsigned bit) {
        return (which >> bit & 1u) != 0 ? blas::Order::row : blas::Order::column;
      };
      if (integers && order(2) != order(3)) continue;
      const auto transpose = which >= 16 ? Transpose::conjugate : Transpose::no;
      MatmulOptions options{.transpose_a = transpose,
                            .order_a = order(0),
                            .order_b = order(1),
                            .order_c = order(2),
                            .order_d = order(3)};
      if (epilogue != Epilogue::none) options.epilogue = epilogue, options.bias = bias_there;
      const auto x = put_in<T>(order(0), op(a, transpose)), y = put_in<T>(order(1), b);
      const auto z = put_in<D>(order(2), c), d = put_in<D>(order(3), Dense{kM, kN});
      if (!ended(device().blas().matmul<T, T, D, D>(from_wide<F>(1), x, y, from_wide<F>(1), z, d,
                                                    options),
                 true))
        continue;
      ++done;
      auto expected = a * b + c;
      for (std::int64_t j = 0; j < kN && epilogue != Epilogue::none; ++j) {
        for (std::int64_t i = 0; i < kM; ++i) expected(i, j) += bias(i, 0);
      }
      EXPECT_EQ(got(d.buffer), stored<D>(spread_in(order(3), expected, d.leading)))
          << "orders " << which;
    }
    EXPECT_GE(done, device().info().engine == "cpu" ? (integers ? 16u : 32u) : 1u);
  }
  template <class T>
  static MatrixRef<GpuRef<T>> put_in(blas::Order order, const Dense& a) {
    const auto leading = (order == blas::Order::column ? a.rows : a.columns) + kGap;
    return {put_any<T>(spread_in(order, a, leading)), a.rows, a.columns, leading};
  }

  /// D and whatever the epilogue writes; integers are exact, but for sums in 16 bits.
  template <class T, class D = T>
  void has_epilogues() {
    SCOPED_TRACE(::testing::Message()
                 << to_string(dtype_of<T>) << " into " << to_string(dtype_of<D>));
    for (std::size_t i = 0; i < blas::kEpilogueCount; ++i)
      has_epilogue<T, D>(static_cast<Epilogue>(i));
  }
  template <class T, class D>
  void has_epilogue(Epilogue epilogue) {
    SCOPED_TRACE(::testing::Message() << "epilogue " << static_cast<int>(epilogue));
    const bool smooth = epilogue == Epilogue::gelu || epilogue == Epilogue::gelu_bias ||
                        epilogue == Epilogue::gelu_aux || epilogue == Epilogue::gelu_aux_bias ||
                        epilogue >= Epilogue::dgelu;
    constexpr std::int64_t k = 16;
    // For gelu both large and small values matter.
    const auto a = 0.25 * random<T>(kM, k, 1), b = 0.5 * random<T>(k, kN, 2);
    const auto bias = random<D>(epilogue == Epilogue::bgrad_b ? kN : kM, 1, 3);
    const bool mask = blas::has_mask(epilogue);
    const std::int64_t ld = mask ? 128 : kM + 8;
    std::vector<std::uint8_t> bits(static_cast<std::size_t>(ld / 8 * kN));
    std::mt19937_64 random_bits(7);
    for (auto& byte : bits) byte = static_cast<std::uint8_t>(random_bits());
    const auto slopes = 0.5 * random<D>(ld, kN, 4);
    const auto bits_there = put(bits);
    const auto numbers_there = put_any<D>(slopes.element);
    const auto bias_there = put_any<D>(bias.element);
    const auto d = put_matrix<D>(Dense{kM, kN});
    MatmulOptions options{.epilogue = epilogue, .bias = bias_there, .ld_aux = ld};
    if (mask)
      options.aux = bits_there;
    else
      options.aux = numbers_there;
    // cuBLASLt sums up the rows of a transposed B only.
    const bool transposes = epilogue == Epilogue::bgrad_b;
    if (transposes) options.transpose_b = Transpose::yes;
    ASSERT_TRUE(ended(device().blas().matmul<T, T, D>(
        put_matrix<T>(a), put_matrix<T>(transposes ? op(b, Transpose::yes) : b), d, options)));

    auto x = a * b;
    std::vector<double> sums(static_cast<std::size_t>(kM));
    auto aux = slopes;
    const bool biased = blas::bias_use(epilogue) == blas::EpilogueUse::read;
    for (std::int64_t j = 0; j < kN; ++j) {
      for (std::int64_t i = 0; i < kM; ++i) {
        auto value = x(i, j).real() + (biased ? bias(i, 0).real() : 0);
        auto& byte = bits[static_cast<std::size_t>((j * ld + i) / 8)];
        const auto bit = static_cast<std::uint8_t>(1u << i % 8);
        switch (epilogue) {
          case Epilogue::relu_aux:
          case Epilogue::relu_aux_bias:
            byte = static_cast<std::uint8_t>(value >= 0 ? byte | bit : byte & ~bit);
            value = std::max(value, 0.0);
            break;
          case Epilogue::relu:
          case Epilogue::relu_bias: value = std::max(value, 0.0); break;
          case Epilogue::gelu_aux:
          case Epilogue::gelu_aux_bias:
            aux(i, j) = value;
            value = gelu(value);
            break;
          case Epilogue::gelu:
          case Epilogue::gelu_bias: value = gelu(value); break;
          case Epilogue::drelu:
          case Epilogue::drelu_bgrad: value = (byte & bit) != 0 ? value : 0; break;
          case Epilogue::dgelu:
          case Epilogue::dgelu_bgrad: value *= gelu_slope(slopes(i, j).real()); break;
          default: break;
        }
        x(i, j) = value;
        sums[static_cast<std::size_t>(i)] += value;
      }
    }
    // On GPUs cuBLASLt's tanh is good to some 5e-6.
    expect_near<D>(got(d.buffer), x.element, smooth ? 96 : 0);
    if (mask) {
      const auto actual = device().download(bits_there);
      for (std::int64_t j = 0; j < kN; ++j) {  // what lies behind the last row is anything
        for (std::int64_t i = 0; i < kM / 8; ++i) {
          const auto at = static_cast<std::size_t>(j * ld / 8 + i);
          ASSERT_EQ(actual[at], bits[at]) << "rows from " << 8 * i << " on, column " << j;
        }
      }
    } else if (blas::aux_use(epilogue) == blas::EpilogueUse::write) {
      const auto actual = got(numbers_there);
      for (std::int64_t j = 0; j < kN; ++j) {
        for (std::int64_t i = 0; i < kM; ++i)
          EXPECT_EQ(actual[static_cast<std::size_t>(j * ld + i)], to_wide(from_wide<D>(aux(i, j))));
      }
    }
    if (blas::bias_use(epilogue) != blas::EpilogueUse::write) return;
    std::vector<Wide> expected(sums.begin(), sums.end());
    if (epilogue == Epilogue::bgrad_a || epilogue == Epilogue::bgrad_b) {
      const bool of_b = epilogue == Epilogue::bgrad_b;
      expected.assign(of_b ? kN : kM, Wide());
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const auto at = static_cast<std::int64_t>(i);
        for (std::int64_t l = 0; l < k; ++l) expected[i] += of_b ? b(l, at) : a(at, l);
      }
    }
    expect_near<D>(got(bias_there), expected, 64);
  }
  /// Equal to the values as D stores them, or within `units` roundings of f32 and one of D.
  template <class D>
  static void expect_near(const std::vector<Wide>& actual, const std::vector<Wide>& expected,
                          double units) {
    const double rounding = std::is_same_v<D, float>  ? 0x1p-24
                            : std::is_same_v<D, Half> ? 0x1p-11
                                                      : 0x1p-8;
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i) {
      const double exact = expected[i].real();
      if (units == 0) {
        ASSERT_EQ(actual[i], to_wide(from_wide<D>(expected[i]))) << "element " << i;
      } else {
        const double size = std::max(1.0, std::abs(exact));
        ASSERT_NEAR(actual[i].real(), exact, size * (units * 0x1p-23 + 2 * rounding))
            << "element " << i;
      }
    }
  }
};

TEST_F(BlasMatmul, OfSixteenBits) {
  multiplies<Half, Half, Half>();
  multiplies<Half, Half, float>();
  multiplies<BFloat16, BFloat16, BFloat16>();
  multiplies<BFloat16, BFloat16, float>();
}
TEST_F(BlasMatmul, OfThirtyTwoAndSixtyFourBits) {
  multiplies<float, float, float>();
  multiplies<float, float, float>({Transpose::no}, {Transpose::no}, Compute::tf32);
  multiplies<float, float, float>({Transpose::no}, {Transpose::no}, Compute::f32_by_bf16);
  multiplies<double, double, double>();
}
TEST_F(BlasMatmul, OfComplexNumbers) {
  const std::vector<Transpose> all(std::begin(kTransposes), std::end(kTransposes));
  multiplies<std::complex<float>, std::complex<float>, std::complex<float>>(all, all);
  multiplies<std::complex<double>, std::complex<double>, std::complex<double>>(all, all);
}
TEST_F(BlasMatmul, OfIntegers) {
  multiplies<std::int8_t, std::int8_t, std::int32_t>();
  multiplies<std::int8_t, std::int8_t, std::int8_t>();
}
TEST_F(BlasMatmul, OfEightBits) {
  const std::vector<Transpose> yes{Transpose::yes}, no{Transpose::no};
  multiplies<Float8E4M3, Float8E4M3, float>(yes, no);
  multiplies<Float8E4M3, Float8E4M3, Half>(yes, no);
  multiplies<Float8E4M3, Float8E4M3, BFloat16>(yes, no);
  multiplies<Float8E4M3, Float8E4M3, Float8E4M3>(yes, no);
  multiplies<Float8E4M3, Float8E5M2, BFloat16>(yes, no);
  multiplies<Float8E5M2, Float8E4M3, Float8E5M2>(yes, no);
}

TEST_F(BlasMatmul, ScalesOfEightBits) {
  const auto a = random<Float8E4M3>(kK, kM, 1), b = random<Float8E4M3>(kK, kN, 2);
  const auto d = put_matrix<Float8E4M3>(Dense{kM, kN});
  const auto scale = [](float value) { return put(std::vector<float>{value}); };
  const auto scale_a = scale(2), scale_b = scale(0.5f), scale_d = scale(0.25f), amax = scale(-1);
  ASSERT_TRUE(ended(device().blas().matmul<Float8E4M3, Float8E4M3, Float8E4M3>(
      put_matrix<Float8E4M3>(a), put_matrix<Float8E4M3>(b), d,
      {.transpose_a = Transpose::yes,
       .scale_a = scale_a,
       .scale_b = scale_b,
       .scale_d = scale_d,
       .amax_d = amax})));
  const auto product = op(a, Transpose::yes) * b;
  EXPECT_EQ(got(d.buffer), stored<Float8E4M3>((Wide(0.25) * product).element));
  double largest = 0;
  for (const auto& x : product.element) largest = std::max(largest, std::abs(x.real()));
  EXPECT_EQ(device().download(amax)[0], largest);
}

/// Rows and columns, blocks of 128 along k, and blocks of 128 x 128; powers of two are exact. The
/// last blocks are not full, and L is no multiple of 4.
TEST_F(BlasMatmul, ManyScalesOfEightBits) {
  using blas::ScaleMode;
  constexpr std::int64_t m = 144, n = 272, k = 336, blocks = 3, blocks4 = 4;
  const auto a = random<Float8E4M3>(k, m, 1), b = random<Float8E4M3>(k, n, 2);
  const auto x = put_matrix<Float8E4M3>(a), y = put_matrix<Float8E4M3>(b);
  std::mt19937_64 random_powers(3);
  const auto scales = [&](ScaleMode mode, std::int64_t lines) {
    const auto count = mode == ScaleMode::vector     ? lines
                       : mode == ScaleMode::block128 ? lines * blocks
                                                     : (lines + 127) / 128 * blocks4;
    std::vector<float> values(static_cast<std::size_t>(count));
    for (auto& value : values) value = std::ldexp(1.0f, static_cast<int>(random_powers() % 4) - 2);
    return values;
  };
  const auto scaled = [&](Dense matrix, ScaleMode mode, const std::vector<float>& by) {
    for (std::int64_t j = 0; j < matrix.columns; ++j) {
      for (std::int64_t l = 0; l < k; ++l) {
        const auto which = mode == ScaleMode::vector     ? j
                           : mode == ScaleMode::block128 ? l / 128 * matrix.columns + j
                                                         : j / 128 * blocks4 + l / 128;
        matrix(l, j) *= by[static_cast<std::size_t>(which)];
      }
    }
    return matrix;
  };
  constexpr std::pair<ScaleMode, ScaleMode> kModes[] = {
      {ScaleMode::vector, ScaleMode::vector},
      {ScaleMode::block128, ScaleMode::block128},
      {ScaleMode::block128, ScaleMode::block128x128},
      {ScaleMode::block128x128, ScaleMode::block128}};
  // They came with Hopper, and went with it.
  const auto capability = device().info().compute_capability;
  for (const auto& [mode_a, mode_b] : kModes) {
    const auto by_a = scales(mode_a, m), by_b = scales(mode_b, n);
    const auto scale_a = put(by_a), scale_b = put(by_b);
    const auto product = op(scaled(a, mode_a, by_a), Transpose::yes) * scaled(b, mode_b, by_b);
    const MatmulOptions options{.transpose_a = Transpose::yes,
                                .scale_a = scale_a,
                                .scale_b = scale_b,
                                .scale_mode_a = mode_a,
                                .scale_mode_b = mode_b};
    const auto multiply = [&]<class D>(D) {
      SCOPED_TRACE(::testing::Message()
                   << static_cast<int>(mode_a) << " and " << static_cast<int>(mode_b) << " into "
                   << to_string(dtype_of<D>));
      const auto d = put_matrix<D>(Dense{m, n});
      if (ended(device().blas().matmul<Float8E4M3, Float8E4M3, D>(x, y, d, options),
                capability != 0 && capability != 90)) {
        EXPECT_EQ(got(d.buffer), stored<D>(product.element));
      }
    };
    multiply(BFloat16{});
    multiply(float{});
  }
}

TEST_F(BlasMatmul, EpiloguesOfSinglePrecision) {
  has_epilogues<float>();
}
TEST_F(BlasMatmul, EpiloguesOfSixteenBits) {
  has_epilogues<Half>();
  has_epilogues<BFloat16>();
}

TEST_F(BlasMatmul, RowMajor) {
  multiplies_in_orders<float>();
  multiplies_in_orders<float>(Epilogue::bias);
  multiplies_in_orders<double>();
  multiplies_in_orders<std::complex<float>>();
  multiplies_in_orders<std::complex<double>>();
  multiplies_in_orders<Half>(Epilogue::bias);
  multiplies_in_orders<BFloat16, float>();
  multiplies_in_orders<std::int8_t, std::int32_t>();
}

}  // namespace
}  // namespace troupe::test::reference
