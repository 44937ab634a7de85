#include <array>
#include <cmath>
#include <span>

#include <troupe/lib/fft.hpp>

#include "catalogue/catalogue.hpp"
#include "reference/transforms.hpp"

// Fourier transforms of all types and kinds, compared with sums on the host.

namespace troupe::catalogue {
namespace {

using fft::Kind;

/// A batch of transforms.
struct Shape {
  FftOptions options;
  std::int64_t volume = 1, last = 1, half = 1;  ///< of one: all, the last extent, those of a real's

  Shape(Trial& t, bool powers_of_two) {
    constexpr std::array<std::int64_t, 12> kLengths{1, 2, 3, 7, 8, 13, 16, 30, 64, 97, 100, 128};
    const bool wide = t.varies_widely();
    const auto rank = t.random.between(1, 3);
    options.extents.rank = static_cast<std::uint32_t>(rank);
    // The reference multiplies all elements by the extents: of two and three they are short.
    const auto lengths = std::span(kLengths).first(rank == 1 ? 12 : rank == 2 ? 8 : 7);
    for (std::int64_t i = 0; i < rank; ++i) {
      last = powers_of_two ? std::int64_t{1} << t.random.below(wide ? 5 : 4)
             : wide        ? lengths[static_cast<std::size_t>(t.random.below(std::ssize(lengths)))]
                           : t.random.between(1, 10);
      options.extents.extent[static_cast<std::size_t>(i)] = last;
      volume *= last;
    }
    half = volume / last * (last / 2 + 1);
    options.batch = t.random.between(1, 3);
  }
  /// Elements of all, with so many of each.
  [[nodiscard]] std::int64_t all(std::int64_t each) const { return each * options.batch; }
};

/// Where one side of a batch lies: packed, with gaps between elements, rows and transforms, or
/// element by element of all transforms.
struct Side {
  fft::Storage storage;
  std::vector<std::size_t> places;  ///< of each element
  std::size_t size = 0;

  /// `halved`: the complex side of a real one.
  Side(Trial& t, const Shape& shape, bool halved) {
    const auto batch = shape.options.batch;
    const bool interleaved = t.random.one_in(4), gaps = !interleaved && t.flip();
    const auto rank = static_cast<std::size_t>(shape.options.extents.rank);
    auto extents = shape.options.extents.extent;
    if (halved) extents[rank - 1] = extents[rank - 1] / 2 + 1;
    std::array<std::int64_t, fft::kMaxRank> pitch{};
    std::int64_t step = gaps ? t.random.between(1, 2) : interleaved ? batch : 1, count = 1;
    if (gaps || interleaved) storage.stride = step;
    for (auto i = rank; i-- > 0;) {
      pitch[i] = step, count *= extents[i];
      const auto stored = extents[i] + (gaps ? t.random.below(3) : 0);
      if (gaps) storage.stored[i] = stored;
      step *= stored;
    }
    if (gaps) storage.distance = step += t.random.below(4);
    if (interleaved) storage.distance = 1;
    const auto distance = interleaved ? 1 : step;
    size = static_cast<std::size_t>(interleaved ? step : step * batch);
    for (std::int64_t b = 0; b < batch; ++b) {
      for (std::int64_t i = 0; i < count; ++i) {
        auto place = b * distance, rest = i;
        for (auto axis = rank; axis-- > 0; rest /= extents[axis])
          place += rest % extents[axis] * pitch[axis];
        places.push_back(static_cast<std::size_t>(place));
      }
    }
  }
  [[nodiscard]] std::vector<Wide> memory(const std::vector<Wide>& values) const {
    std::vector<Wide> all(size, -77);
    for (std::size_t i = 0; i < values.size(); ++i) all[places[i]] = values[i];
    return all;
  }
  [[nodiscard]] std::vector<Wide> fillers() const { return memory({}); }
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
    std::vector<Wide> x;
    if constexpr (RealElement<T>)
      x = t.numbers<std::complex<T>>(shape.volume, t.data<T>());
    else
      x = t.numbers<std::complex<double>>(shape.volume);
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

/// Complex numbers are pairs.
std::vector<Wide> paired(const std::vector<Wide>& values) {
  std::vector<Wide> pairs;
  for (const auto& value : values) pairs.push_back(value.real()), pairs.push_back(value.imag());
  return pairs;
}

template <class R>
void add_transforms_of(Catalogue& catalogue) {
  using C = std::complex<R>;
  for (const auto kind : {Kind::forward, Kind::inverse}) {
    catalogue.add<C>({kind == Kind::forward ? "forward" : "inverse", "transform", Missing::itself},
                     [kind](Trial& t) {
                       const Shape shape(t, false);
                       const auto sides = draw_sides<R>(t, shape, kind);
                       const Side from(t, shape, false);
                       const bool in_place = t.flip();
                       const auto to = in_place ? from : Side(t, shape, false);
                       auto options = shape.options;
                       options.input = from.storage, options.output = to.storage;
                       const auto x = t.put<C>(from.memory(sides.input)),
                                  y = in_place ? x : t.put<C>(to.fillers());
                       auto fft = fft::on(t.device());
                       t.call(kind == Kind::forward ? fft.template forward<R>(x, y, options)
                                                    : fft.template inverse<R>(x, y, options));
                       t.expect(y, to.memory(sides.output), roundings(shape),
                                largest(sides.output) / 8);
                       if (!in_place) t.expect(x, from.memory(sides.input));
                     });
  }
  catalogue.add<C>({"real_to_complex", "transform", Missing::itself}, [](Trial& t) {
    const Shape shape(t, false);
    const auto sides = draw_sides<R>(t, shape, Kind::real_to_complex);
    const Side from(t, shape, false), to(t, shape, true);
    auto options = shape.options;
    options.input = from.storage, options.output = to.storage;
    const auto x = t.put<R>(from.memory(sides.input));
    const auto y = t.put<C>(to.fillers());
    t.call(fft::on(t.device()).template real_to_complex<R>(x, y, options));
    t.expect(y, to.memory(sides.output), roundings(shape), largest(sides.output) / 8);
    t.expect(x, from.memory(sides.input));
  });
  catalogue.add<C>({"complex_to_real", "transform", Missing::itself}, [](Trial& t) {
    const Shape shape(t, false);
    const auto sides = draw_sides<R>(t, shape, Kind::complex_to_real);
    const Side from(t, shape, true), to(t, shape, false);
    auto options = shape.options;
    options.input = from.storage, options.output = to.storage;
    const auto y = t.put<R>(to.fillers());
    t.call(fft::on(t.device())
               .template complex_to_real<R>(t.put<C>(from.memory(sides.input)), y, options));
    t.expect(y, to.memory(sides.output), roundings(shape), largest(sides.output) / 8);
  });
  // There, or there and back, where they lie: rows have room for the complex side's.
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
    if (t.flip())
      return t.expect(x, paired(sides.output), roundings(shape), largest(sides.output) / 8);
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
