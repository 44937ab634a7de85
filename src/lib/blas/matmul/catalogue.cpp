#include "catalogue/catalogue.hpp"
#include "reference/gelu.hpp"

// Products with something done to the result: cuBLASLt's.

namespace troupe::catalogue {
namespace {

using blas::Epilogue;
using blas::EpilogueUse;
using blas::Transpose;

/// The inner extent of what is to be exact in bf16.
constexpr std::int64_t kK = 16;

bool is_smooth(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::gelu:
    case Epilogue::gelu_bias:
    case Epilogue::gelu_aux:
    case Epilogue::gelu_aux_bias:
    case Epilogue::dgelu:
    case Epilogue::dgelu_bgrad: return true;
    default: return false;
  }
}

/// Without an epilogue: D = alpha op(A) op(B) + beta C, D apart from C or not.
template <class A, class B, class D>
void add_product(Catalogue& catalogue) {
  catalogue.add<A>(
      {"matmul", "matmul tune_matmul", sizeof(A) == 1 ? Missing::itself : Missing::never},
      [](Trial& t) {
        // cuBLASLt multiplies integers and 8 bits with the first transposed, the second not.
        constexpr bool kBytes = sizeof(A) == 1;
        const auto ta = kBytes || t.flip() ? Transpose::yes : Transpose::no,
                   tb = kBytes || t.flip() ? Transpose::no : Transpose::yes;
        // It wants such extents of them; and bf16 has few of the sums of numbers of 8 bits.
        const auto extent = [&t] { return kBytes ? 16 * t.random.between(1, 4) : t.length<A>(); };
        const auto m = extent(), n = extent(), k = sizeof(D) == 2 && kBytes ? kK : extent();
        const auto a = ta == Transpose::no ? t.varied<A>(m, k) : t.varied<A>(k, m);
        const auto b = tb == Transpose::no ? t.varied<B>(k, n) : t.varied<B>(n, k);
        const auto c = t.varied<D>(m, n);
        const auto gap = kBytes ? 0 : 16 * t.random.below(2);
        const auto x = t.put<A>(a, gap);
        const auto y = t.put<B>(b, gap);
        const bool in_place = !kBytes && t.flip();
        const auto d = t.put<D>(in_place ? c : t.varied<D>(m, n), gap);
        const MatmulOptions options{.transpose_a = ta, .transpose_b = tb};
        const auto product = reference::op(a, ta) * reference::op(b, tb);
        auto blas = t.device().blas();
        if (t.flip())
          t.call(blas.template tune_matmul<A, B, D>(x, y, d, options,
                                                    {.candidates = 2, .repeats = 1}));
        if constexpr (!kBytes) {
          using F = detail::MatmulScaleOf<A, D>;
          const auto alpha = t.scalar<F>(), beta = t.scalar<F>();
          const auto from = in_place ? d : t.put<D>(c, gap);
          t.call(blas.template matmul<A, B, D, D>(reference::to_number<F>(alpha), x, y,
                                                  reference::to_number<F>(beta), from, d, options));
          t.expect(d, alpha * product + beta * c);
        } else {
          t.call(blas.template matmul<A, B, D>(x, y, d, options));
          t.expect(d, product);
        }
      });
}

/// C = alpha op(A) + beta op(B), each in its own order; of 8 bits C = op(A), which is exact.
template <class T>
void add_transform(Catalogue& catalogue) {
  catalogue.add<T>({"transform", "transform", Missing::itself}, [](Trial& t) {
    const auto m = t.length<T>(), n = t.length<T>();
    const auto order = [&t] { return t.flip() ? blas::Order::row : blas::Order::column; };
    const std::int64_t most_gap = sizeof(T) == 1 ? 1 : 3;  // no filler is a number of 8 bits
    // A row-major matrix is the transpose of one by columns in the same memory.
    const auto put = [&](const Dense& a, blas::Order by) {
      auto matrix = t.put<T>(by == blas::Order::row ? reference::op(a, Transpose::yes) : a,
                             t.random.below(most_gap));
      if (by == blas::Order::row) std::swap(matrix.rows, matrix.columns);
      return matrix;
    };
    const auto operand = [&](Transpose transpose) {
      return transpose == Transpose::no ? t.varied<T>(m, n) : t.varied<T>(n, m);
    };
    const TransformOptions options{t.flip() ? Transpose::yes : Transpose::no,
                                   t.flip() ? Transpose::yes : Transpose::no, order(), order(),
                                   order()};
    const bool row = options.order_c == blas::Order::row;
    const auto a = operand(options.transpose_a), b = operand(options.transpose_b);
    const auto to = t.put<T>(row ? t.varied<T>(n, m) : t.varied<T>(m, n), t.random.below(most_gap));
    const MatrixRef<GpuRef<T>> c(to.buffer, m, n, to.leading);
    auto expected = reference::op(a, options.transpose_a);
    auto blas = t.device().blas();
    if constexpr (sizeof(T) == 1) {
      t.call(blas.template transform<T>(put(a, options.order_a), c, options));
    } else {
      using F = detail::TransformFactorOf<T>;
      const auto alpha = t.scalar<F>(), beta = t.scalar<F>();
      t.call(blas.template transform<T>(reference::to_number<F>(alpha), put(a, options.order_a),
                                        reference::to_number<F>(beta), put(b, options.order_b), c,
                                        options));
      expected = alpha * expected + beta * reference::op(b, options.transpose_b);
    }
    t.expect(to, row ? reference::op(expected, Transpose::yes) : expected);
  });
}

/// What an epilogue makes of the product, and beside it.
template <class T>
void epilogue(Trial& t, Epilogue epilogue) {
  const bool smooth = is_smooth(epilogue), mask = blas::has_mask(epilogue);
  const double scale = smooth ? 0.25 : 1;
  const auto m = 32 * t.random.between(1, 5), n = 16 * t.random.between(1, 3), k = kK;
  const auto a = scale * t.dense<T>(m, k), b = 0.5 * scale * t.dense<T>(k, n);
  const bool of_b = epilogue == Epilogue::bgrad_b;
  const auto bias = t.numbers<float>(of_b ? n : m);
  const std::int64_t ld = mask ? (m + 127) / 128 * 128 : m + 8;
  std::vector<std::uint8_t> bits(static_cast<std::size_t>(ld / 8 * n));
  for (auto& byte : bits) byte = static_cast<std::uint8_t>(t.random.next());
  const auto slopes = 0.5 * t.dense<T>(ld, n);
  const auto bits_there = t.put_values(bits);
  const auto numbers_there = t.put<T>(slopes.element), bias_there = t.put<T>(bias);
  const auto d = t.room<T>(m, n);
  MatmulOptions options{.epilogue = epilogue, .bias = bias_there, .ld_aux = ld};
  if (mask)
    options.aux = bits_there;
  else
    options.aux = numbers_there;
  // cuBLASLt sums up the rows of a transposed B only.
  if (of_b) options.transpose_b = Transpose::yes;
  t.call(t.device().blas().template matmul<T, T, T>(
      t.put<T>(a, 0), t.put<T>(of_b ? reference::op(b, Transpose::yes) : b, 0), d, options));

  auto x = a * b, aux = slopes;
  std::vector<Wide> sums(static_cast<std::size_t>(of_b ? n : m));
  const bool biased = blas::bias_use(epilogue) == EpilogueUse::read;
  const bool writes_aux = blas::aux_use(epilogue) == EpilogueUse::write;
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = 0; i < m; ++i) {
      auto value = x(i, j).real() + (biased ? bias[static_cast<std::size_t>(i)].real() : 0);
      auto& byte = bits[static_cast<std::size_t>((j * ld + i) / 8)];
      const auto bit = static_cast<std::uint8_t>(1u << i % 8);
      if (writes_aux) {
        aux(i, j) = value;
        byte = static_cast<std::uint8_t>(value >= 0 ? byte | bit : byte & ~bit);
      }
      switch (epilogue) {
        case Epilogue::relu:
        case Epilogue::relu_bias:
        case Epilogue::relu_aux:
        case Epilogue::relu_aux_bias: value = std::max(value, 0.0); break;
        case Epilogue::drelu:
        case Epilogue::drelu_bgrad: value = (byte & bit) != 0 ? value : 0; break;
        case Epilogue::dgelu:
        case Epilogue::dgelu_bgrad: value *= reference::gelu_slope(slopes(i, j).real()); break;
        default:
          if (smooth) value = reference::gelu(value);
      }
      x(i, j) = value;
      if (!of_b && epilogue != Epilogue::bgrad_a) sums[static_cast<std::size_t>(i)] += value;
    }
  }
  for (std::int64_t l = 0; l < k; ++l) {
    for (std::size_t i = 0; i < sums.size(); ++i) {
      if (of_b) sums[i] += b(l, static_cast<std::int64_t>(i));
      if (epilogue == Epilogue::bgrad_a) sums[i] += a(static_cast<std::int64_t>(i), l);
    }
  }
  // On GPUs cuBLASLt's tanh is good to some 5e-6.
  const bool wide = std::is_same_v<T, float>;
  t.expect(d.buffer, x.element, smooth ? (wide ? 16 : 1) : 0, wide ? 1 : 0.1);
  if (mask && writes_aux) {
    // What lies behind the last row is anything.
    t.check([&t, bits, bits_there, ld, m, n]() -> std::string {
      const auto actual = t.device().download(bits_there);
      for (std::int64_t i = 0; i < n * m / 8; ++i) {
        const auto at = static_cast<std::size_t>(i / (m / 8) * (ld / 8) + i % (m / 8));
        if (actual[at] != bits[at]) return fmt::format("byte {} of the mask is wrong", at);
      }
      return {};
    });
  } else if (writes_aux) {
    t.expect(numbers_there, aux.element);
  }
  if (blas::bias_use(epilogue) == EpilogueUse::write) t.expect(bias_there, sums, 4, 32);
}

template <class T>
void add_epilogues(Catalogue& catalogue) {
  catalogue.add<T>({"matmul epilogue", "matmul"}, [](Trial& t) {
    epilogue<T>(t, static_cast<Epilogue>(t.random.below(blas::kEpilogueCount)));
  });
}

void add_calls_of_matmul(Catalogue& catalogue) {
  for_types<Half, BFloat16, float, double, std::complex<float>, std::complex<double>>(
      [&catalogue]<class T>(T) { add_product<T, T, T>(catalogue); });
  add_product<std::int8_t, std::int8_t, std::int32_t>(catalogue);
  add_product<Float8E4M3, Float8E4M3, BFloat16>(catalogue);
  add_product<Float8E5M2, Float8E4M3, BFloat16>(catalogue);
  for_types<Half, BFloat16, float>([&catalogue]<class T>(T) { add_epilogues<T>(catalogue); });
  for_types<Half, BFloat16, float, double, std::complex<float>, std::complex<double>, std::int8_t,
            std::int32_t, Float8E4M3, Float8E5M2>(
      [&catalogue]<class T>(T) { add_transform<T>(catalogue); });
}

const Subject kMatmul("blas", add_calls_of_matmul);

}  // namespace

}  // namespace troupe::catalogue
