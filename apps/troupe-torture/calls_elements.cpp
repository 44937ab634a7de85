#include <algorithm>

#include <troupe/lib/primitives.hpp>

#include "trial.hpp"

// Sorts by segment, merges, what is made of single elements, and copies: exact, as all of it is
// computed with small integers.

namespace troupe::torture {
namespace {

template <class T>
std::vector<T> some_numbers(Trial& t) {
  std::vector<T> values(static_cast<std::size_t>(t.random.between(1, 300)));
  for (auto& value : values) value = static_cast<T>(t.random.below(50));
  return values;
}
template <class T>
std::vector<Wide> as_wide(const std::vector<T>& values) {
  std::vector<Wide> all;
  for (const auto value : values) all.emplace_back(static_cast<double>(value));
  return all;
}

template <class T>
void add_order(Calls& calls) {
  calls.add<T>("in order", [](Trial& t) {
    auto library = primitives::on(t.device());
    const auto x = some_numbers<T>(t);
    const auto n = std::ssize(x);
    std::vector<std::int64_t> offsets{0, n};
    for (int i = 0; i < 4; ++i) offsets.push_back(t.random.between(0, n));
    std::sort(offsets.begin(), offsets.end());
    auto in_segments = x;
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i)
      std::sort(in_segments.begin() + offsets[i], in_segments.begin() + offsets[i + 1]);
    const auto sorted = t.room<T>(n);
    t.call(library.segmented_sort(t.put_values(x), t.put_values(offsets), sorted));
    t.expect(sorted, as_wide(in_segments));

    auto a = some_numbers<T>(t), b = some_numbers<T>(t);
    std::sort(a.begin(), a.end()), std::sort(b.begin(), b.end());
    std::vector<T> both(a.size() + b.size());
    std::merge(a.begin(), a.end(), b.begin(), b.end(), both.begin());
    const auto merged = t.room<T>(std::ssize(both));
    t.call(library.merge(t.put_values(a), t.put_values(b), merged));
    t.expect(merged, as_wide(both));
  });
}

template <class T>
void add_arithmetic(Calls& calls) {
  calls.add<T>("elements", [](Trial& t) {
    auto library = primitives::on(t.device());
    const auto x = some_numbers<T>(t);
    const auto n = std::ssize(x);
    const auto dx = t.put_values(x);
    const auto squares = t.room<T>(n), products = t.room<T>(n), sum = t.room<T>(1);
    const auto doubles = t.room<double>(n);
    t.call(library.transform(dx, squares, primitives::Unary::square));
    t.call(library.transform(dx, squares, products, primitives::Binary::multiply));
    t.call(library.convert(products, doubles));
    t.call(library.transform_reduce(dx, sum, primitives::Unary::square));
    std::vector<Wide> square, cube;
    Wide total = 0;
    for (const auto value : as_wide(x)) {
      square.push_back(value * value), cube.push_back(value * value * value);
      total += square.back();
    }
    t.expect(squares, square);
    t.expect(products, cube);
    t.expect(doubles, cube);
    t.expect(sum, {total});
  });
}

/// f16 and bf16. Numbers up to 12, so that their squares are exact.
template <class T>
void add_narrow(Calls& calls) {
  calls.add<T>("narrow elements", [](Trial& t) {
    auto library = primitives::on(t.device());
    std::vector<float> numbers(static_cast<std::size_t>(t.random.between(1, 300)));
    for (auto& number : numbers) number = static_cast<float>(t.random.below(13));
    const auto n = std::ssize(numbers);
    const auto x = t.room<T>(n), sorted = t.room<T>(n), unique = t.room<T>(n),
               largest = t.room<T>(1);
    const auto place = t.room<std::int64_t>(1);
    t.call(library.convert(t.put_values(numbers), x));
    t.call(library.arg_reduce(x, largest, place, primitives::Extreme::max));
    t.call(library.transform(x, x, primitives::Unary::square));
    t.call(library.sort(x, sorted, primitives::Order::descending));
    t.call(library.unique(sorted, unique));
    const auto most = std::max_element(numbers.begin(), numbers.end());
    t.expect(largest, {*most});
    t.expect(place, {static_cast<double>(most - numbers.begin())});
    auto squares = as_wide(numbers);
    for (auto& number : squares) number *= number;
    t.expect(x, squares);
    std::sort(squares.begin(), squares.end(),
              [](const Wide& a, const Wide& b) { return b.real() < a.real(); });
    t.expect(sorted, squares);
    squares.erase(std::unique(squares.begin(), squares.end()), squares.end());
    squares.resize(numbers.size(), 1);
    t.expect(unique, squares);
  });
}

void add_copies(Calls& calls) {
  calls.add<std::uint8_t>("copies", [](Trial& t) {
    const auto x = some_numbers<std::uint8_t>(t);
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
    t.expect(to, as_wide(expected));
  });
}

template <class... T>
void add_of_each(Calls& calls) {
  (add_order<T>(calls), ...);
  (add_arithmetic<T>(calls), ...);
}

}  // namespace

void add_elements(Calls& calls) {
  add_of_each<std::int32_t, std::uint32_t, std::int64_t, std::uint64_t, float, double>(calls);
  add_narrow<Half>(calls), add_narrow<BFloat16>(calls);
  add_copies(calls);
}

}  // namespace troupe::torture
