#include <algorithm>
#include <functional>

#include <troupe/lib/primitives.hpp>

#include "catalogue/catalogue.hpp"

// Sorts by segment, merges, what is made of single elements, and copies: exact, as all of it is
// computed with small integers.

namespace troupe::catalogue {
namespace {

template <class N>
std::vector<N> some_numbers(Trial& t, int largest) {
  std::vector<N> values(static_cast<std::size_t>(t.random.between(1, 300)));
  for (auto& value : values) value = static_cast<N>(t.random.below(largest + 1));
  return values;
}

template <class T>
void add_order(Catalogue& catalogue) {
  catalogue.add<T>({"in order", "segmented_sort merge"}, [](Trial& t) {
    using N = NumberOf<T>;
    auto library = primitives::on(t.device());
    const auto x = some_numbers<N>(t, 50);
    const auto n = std::ssize(x);
    std::vector<std::int64_t> offsets{0, n};
    for (int i = 0; i < 4; ++i) offsets.push_back(t.random.between(0, n));
    std::sort(offsets.begin(), offsets.end());
    auto in_segments = x, descending = x;
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i)
      std::sort(in_segments.begin() + offsets[i], in_segments.begin() + offsets[i + 1]);
    std::sort(descending.begin(), descending.end(), std::greater<>{});
    const auto dx = t.put<T>(wide(x));
    const auto sorted = t.room<T>(n), reversed = t.room<T>(n);
    t.call(library.segmented_sort(dx, t.put_values(offsets), sorted));
    t.call(library.sort(dx, reversed, primitives::Order::descending));
    t.expect(sorted, wide(in_segments));
    t.expect(reversed, wide(descending));

    auto a = some_numbers<N>(t, 50), b = some_numbers<N>(t, 50);
    std::sort(a.begin(), a.end()), std::sort(b.begin(), b.end());
    std::vector<N> both(a.size() + b.size());
    std::merge(a.begin(), a.end(), b.begin(), b.end(), both.begin());
    const auto merged = t.room<T>(std::ssize(both));
    t.call(library.merge(t.put<T>(wide(a)), t.put<T>(wide(b)), merged));
    t.expect(merged, wide(both));
  });
}

template <class T>
void add_arithmetic(Catalogue& catalogue) {
  catalogue.add<T>(
      {"elements", "transform transform_pairs convert transform_reduce"}, [](Trial& t) {
        auto library = primitives::on(t.device());
        const auto x = some_numbers<NumberOf<T>>(t, 6);  // bf16 has cubes of these
        const auto n = std::ssize(x);
        const auto dx = t.put<T>(wide(x));
        const auto squares = t.room<T>(n), products = t.room<T>(n), sum = t.room<T>(1);
        const auto doubles = t.room<double>(n);
        t.call(library.transform(dx, squares, primitives::Unary::square));
        t.call(library.transform(dx, squares, products, primitives::Binary::multiply));
        t.call(library.convert(products, doubles));
        t.call(library.transform_reduce(dx, sum, primitives::Unary::square));
        std::vector<Wide> square, cube;
        Wide total = 0;
        for (const auto value : wide(x)) {
          square.push_back(value * value), cube.push_back(value * value * value);
          total += square.back();
        }
        t.expect(squares, square);
        t.expect(products, cube);
        t.expect(doubles, cube);
        t.expect(sum, {total}, sizeof(T) == 2 ? 1 : 0, total.real());  // of 16 bits: rounded
      });
}

void add_copies(Catalogue& catalogue) {
  catalogue.add<std::uint8_t>({"copies", "copy_batched"}, [](Trial& t) {
    const auto x = some_numbers<std::uint8_t>(t, 50);
    const auto n = std::ssize(x), k = std::min<std::int64_t>(n, 5), length = n / k;
    const auto from = t.put_values(x), to = t.room<std::uint8_t>(n);
    auto expected = std::vector<std::uint8_t>(x.size(), 1);
    std::vector<GpuRef<std::uint8_t>> sources, destinations;
    for (std::int64_t i = 0; i < k; ++i) {  // the last range of one is the first of the other
      const auto source = i * length, destination = (k - 1 - i) * length;
      sources.push_back(from.slice(source, length));
      destinations.push_back(to.slice(destination, length));
      std::copy_n(x.begin() + source, length, expected.begin() + destination);
    }
    t.call(primitives::on(t.device()).copy_batched(sources, destinations));
    t.expect(to, wide(expected));
  });
}

template <class... T>
void add_of_each(Catalogue& catalogue) {
  (add_order<T>(catalogue), ...);
  (add_arithmetic<T>(catalogue), ...);
}

void add_calls_of_elements(Catalogue& catalogue) {
  add_of_each<std::int32_t, std::uint32_t, std::int64_t, std::uint64_t, float, double, Half,
              BFloat16>(catalogue);
  add_copies(catalogue);
}

const Subject kElements("primitives", add_calls_of_elements);

}  // namespace

}  // namespace troupe::catalogue
