#include <cmath>

#include <troupe/lib/fft.hpp>

#include "catalogue/catalogue.hpp"
#include "reference/transforms.hpp"

// Fourier transforms of all types and kinds, compared with sums on the host.

namespace troupe::catalogue {
namespace {

using fft::Kind;

/// A batch of transforms, without gaps or with.
struct Shape {
  FftOptions options;
  std::int64_t volume = 1, last = 1, half = 1;  ///< of one: all, the last extent, those of a real's

  Shape(Trial& t, bool powers_of_two) {
    const auto rank = t.random.between(1, 3);
    options.extents.rank = static_cast<std::uint32_t>(rank);
    for (std::int64_t i = 0; i < rank; ++i) {
      last = powers_of_two ? std::int64_t{1} << t.random.below(4) : t.random.between(1, 10);
      options.extents.extent[static_cast<std::size_t>(i)] = last;
      volume *= last;
    }
    half = volume / last * (last / 2 + 1);
    options.batch = t.random.between(1, 3);
  }
  /// Elements of all, with so many of each.
  [[nodiscard]] std::int64_t all(std::int64_t each) const { return each * options.batch; }
};

/// What is transformed, and the result: complex numbers or, on a real side, numbers.
struct Sides {
  std::vector<Wide> input, output;
};
/// In a batch of real sides the complex one has the first half of the last dimension.
template <class T>
Sides draw_sides(Trial& t, const Shape& shape, Kind kind) {
  Sides sides;
  const bool real = kind == Kind::real_to_complex || kind == Kind::complex_to_real;
  for (std::int64_t b = 0; b < shape.options.batch; ++b) {
    auto x = t.numbers<std::complex<double>>(shape.volume);
    for (auto& value : x) {
      if (real) value = value.real();
    }
    auto y = test::naive_dft(x, shape.options.extents, kind == Kind::inverse ? 1 : -1);
    if (real) {
      std::vector<Wide> stored;
      for (std::int64_t i = 0; i < shape.volume; ++i) {
        if (i % shape.last <= shape.last / 2) stored.push_back(y[static_cast<std::size_t>(i)]);
      }
      y = std::move(stored);
    }
    if (kind == Kind::complex_to_real) {
      std::swap(x, y);
      for (auto& value : y) value *= static_cast<double>(shape.volume);
    }
    sides.input.insert(sides.input.end(), x.begin(), x.end());
    sides.output.insert(sides.output.end(), y.begin(), y.end());
  }
  return sides;
}
/// By how much a result may differ: the largest of a transform of these, and its roundings.
double roundings(const Shape& shape) {
  return std::log2(static_cast<double>(shape.volume) + 1);
}
double largest(const std::vector<Wide>& values) {
  double most = 1;
  for (const auto& value : values) most = std::max(most, std::abs(value));
  return most;
}

template <class R>
void add_transforms_of(Catalogue& catalogue) {
  using C = std::complex<R>;
  for (const auto kind : {Kind::forward, Kind::inverse}) {
    catalogue.add<C>(
        {kind == Kind::forward ? "forward" : "inverse", "transform", Missing::itself},
        [kind](Trial& t) {
          const Shape shape(t, false);
          const auto sides = draw_sides<R>(t, shape, kind);
          auto options = shape.options;
          const bool in_place = t.flip();
          auto values = sides.input, expected = sides.output;
          if (shape.options.extents.rank == 1 && t.flip()) {  // elements a stride apart
            options.input.stride = options.output.stride = 2;
            options.input.distance = options.output.distance = 2 * shape.volume + 1;
            for (auto* side : {&values, &expected}) {
              std::vector<Wide> spread(
                  static_cast<std::size_t>(options.batch * options.input.distance), -77);
              for (std::int64_t i = 0; i < std::ssize(*side); ++i)
                spread[static_cast<std::size_t>(i / shape.volume * options.input.distance +
                                                2 * (i % shape.volume))] =
                    (*side)[static_cast<std::size_t>(i)];
              *side = std::move(spread);
            }
          }
          const auto x = t.put<C>(values),
                     y = in_place ? x : t.put<C>(std::vector<Wide>(values.size(), -77));
          auto fft = fft::on(t.device());
          t.call(kind == Kind::forward ? fft.template forward<R>(x, y, options)
                                       : fft.template inverse<R>(x, y, options));
          t.expect(y, expected, roundings(shape), largest(expected) / 8);
          if (!in_place) t.expect(x, values);
        });
  }
  catalogue.add<C>({"real_to_complex", "transform", Missing::itself}, [](Trial& t) {
    const Shape shape(t, false);
    const auto sides = draw_sides<R>(t, shape, Kind::real_to_complex);
    const auto x = t.put<R>(sides.input);
    const auto y = t.room<C>(shape.all(shape.half));
    t.call(fft::on(t.device()).template real_to_complex<R>(x, y, shape.options));
    t.expect(y, sides.output, roundings(shape), largest(sides.output) / 8);
    t.expect(x, sides.input);
  });
  catalogue.add<C>({"complex_to_real", "transform", Missing::itself}, [](Trial& t) {
    const Shape shape(t, false);
    const auto sides = draw_sides<R>(t, shape, Kind::complex_to_real);
    const auto y = t.room<R>(shape.all(shape.volume));
    t.call(
        fft::on(t.device()).template complex_to_real<R>(t.put<C>(sides.input), y, shape.options));
    t.expect(y, sides.output, roundings(shape), largest(sides.output) / 8);
  });
  // There and back where they lie: rows have room for the complex side's.
  catalogue.add<C>({"real_in_place", "transform", Missing::itself}, [](Trial& t) {
    const Shape shape(t, false);
    const auto sides = draw_sides<R>(t, shape, Kind::real_to_complex);
    const auto row = 2 * (shape.last / 2 + 1);
    std::vector<Wide> values(static_cast<std::size_t>(2 * shape.all(shape.half)), -77);
    const auto place = [&](std::int64_t i) {
      return static_cast<std::size_t>(i / shape.last * row + i % shape.last);
    };
    for (std::int64_t i = 0; i < std::ssize(sides.input); ++i)
      values[place(i)] = sides.input[static_cast<std::size_t>(i)];
    const auto x = t.put<R>(values);
    auto fft = fft::on(t.device());
    t.call(fft.template real_to_complex_in_place<R>(x, shape.options));
    t.call(fft.template complex_to_real_in_place<R>(x, shape.options));
    t.demand(
        "the error there and back",
        [&t, x, shape, sides, row] {
          const auto is = t.got(x);
          double most = 0;
          for (std::int64_t i = 0; i < std::ssize(sides.input); ++i) {
            const auto at = static_cast<std::size_t>(i / shape.last * row + i % shape.last);
            most = std::max(most, std::abs(is[at] / static_cast<double>(shape.volume) -
                                           sides.input[static_cast<std::size_t>(i)]));
          }
          return most / Trial::epsilon<R>();
        },
        64 * (roundings(shape) + 2));
  });
}

/// Complex numbers are pairs.
std::vector<Wide> paired(const std::vector<Wide>& values) {
  std::vector<Wide> pairs;
  for (const auto& value : values) pairs.push_back(value.real()), pairs.push_back(value.imag());
  return pairs;
}

template <class T>
void add_transforms_of_pairs(Catalogue& catalogue) {
  catalogue.add<T>({"transform of pairs", "transform", Missing::itself}, [](Trial& t) {
    const Shape shape(t, true);
    // The spectrum is that of a single number, which is an integer throughout: the type holds it.
    const auto kind = t.random.of(
        std::array{Kind::forward, Kind::inverse, Kind::real_to_complex, Kind::complex_to_real});
    auto sides = draw_sides<T>(t, shape, kind);
    const bool real_input = kind == Kind::real_to_complex,
               real_output = kind == Kind::complex_to_real;
    if (real_output) {
      for (std::size_t i = 0; i < sides.input.size(); ++i)
        sides.input[i] = static_cast<double>(i / static_cast<std::size_t>(shape.half) % 3 + 1);
      for (std::size_t i = 0; i < sides.output.size(); ++i) {
        const auto one = i / static_cast<std::size_t>(shape.volume);
        const bool begins = i % static_cast<std::size_t>(shape.volume) == 0;
        sides.output[i] =
            begins ? static_cast<double>(shape.volume) * static_cast<double>(one % 3 + 1) : 0;
      }
    }
    const auto input = real_input ? sides.input : paired(sides.input),
               output = real_output ? sides.output : paired(sides.output);
    const auto x = t.put<T>(input), y = t.room<T>(std::ssize(output));
    auto fft = fft::on(t.device());
    t.call(kind == Kind::forward           ? fft.template forward<T>(x, y, shape.options)
           : kind == Kind::inverse         ? fft.template inverse<T>(x, y, shape.options)
           : kind == Kind::real_to_complex ? fft.template real_to_complex<T>(x, y, shape.options)
                                           : fft.template complex_to_real<T>(x, y, shape.options));
    t.expect(y, output, roundings(shape), largest(output) / 8);
  });
}

void add_calls_of_transforms(Catalogue& catalogue) {
  for_types<float, double>([&catalogue]<class R>(R) { add_transforms_of<R>(catalogue); });
  for_types<Half, BFloat16>([&catalogue]<class T>(T) { add_transforms_of_pairs<T>(catalogue); });
}

const Subject kTransforms("fft", add_calls_of_transforms);

}  // namespace

}  // namespace troupe::catalogue
