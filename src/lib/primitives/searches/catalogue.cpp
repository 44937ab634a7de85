#include <algorithm>

#include <troupe/lib/primitives.hpp>

#include "catalogue/catalogue.hpp"

// Searches for small numbers among small numbers, many of which are equal.

namespace troupe::catalogue {
namespace {

template <class T>
void add_search(Catalogue& catalogue) {
  catalogue.add<T>("search", [](Trial& t) {
    std::vector<NumberOf<T>> sorted(static_cast<std::size_t>(t.random.below(200)));
    for (auto& x : sorted) x = static_cast<NumberOf<T>>(t.random.below(50));
    std::sort(sorted.begin(), sorted.end());
    std::vector<NumberOf<T>> values(static_cast<std::size_t>(t.random.between(1, 300)));
    for (auto& x : values) x = static_cast<NumberOf<T>>(t.random.below(60));
    const bool upper = t.flip();
    std::vector<Wide> expected;
    for (const auto value : values) {
      expected.emplace_back(
          static_cast<double>(std::count_if(sorted.begin(), sorted.end(), [&](auto x) {
            return x < value || (upper && x == value);
          })));
    }
    const auto positions = t.room<std::int64_t>(std::ssize(values));
    const auto in = t.put<T>(wide(sorted)), of = t.put<T>(wide(values));
    t.call_or_record([=, library = primitives::on(t.device())] {
      return library.search(in, of, positions,
                            upper ? primitives::Bound::upper : primitives::Bound::lower);
    });
    t.expect(positions, expected);
  });
}

void add_calls_of_searches(Catalogue& catalogue) {
  for_types<std::int32_t, std::uint32_t, std::int64_t, std::uint64_t, float, double, Half,
            BFloat16>([&]<class T>(T) { add_search<T>(catalogue); });
}

const Subject kSearches("primitives", add_calls_of_searches);

}  // namespace
}  // namespace troupe::catalogue
