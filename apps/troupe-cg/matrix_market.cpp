#include "matrix_market.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <new>
#include <numeric>
#include <tuple>

#include "matrix_market_parser.hpp"

namespace troupe::cg {
namespace {

using matrix_market::Entry;
using matrix_market::Header;
using matrix_market::Parser;

constexpr std::int64_t kAuditEntries = std::int64_t{1} << 23;

/// The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): a bijection of 64 bits.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// The unordered pair of indices; fits, as rows are at most 2^31.
std::uint64_t pair_key(const Entry& entry) {
  const auto [low, high] = std::minmax(entry.row, entry.column);
  return static_cast<std::uint64_t>(low) << 32 | static_cast<std::uint64_t>(high);
}

struct Scan {
  bool rows_ascend = true, columns_ascend = true;  // strictly: no entry twice
  std::array<std::uint64_t, 2> below{}, above{};   // the multiset hashes
  std::int64_t diagonal = 0;
  std::int64_t last_row = -1, last_column = -1;

  void add(const Entry& entry) {
    rows_ascend &= std::tie(entry.row, entry.column) > std::tie(last_row, last_column);
    columns_ascend &= std::tie(entry.column, entry.row) > std::tie(last_column, last_row);
    last_row = entry.row;
    last_column = entry.column;
    if (entry.row == entry.column) {
      ++diagonal;
      return;
    }
    std::uint64_t bits = 0;
    std::memcpy(&bits, &entry.value, sizeof bits);
    auto& sum = entry.row > entry.column ? below : above;
    const std::uint64_t key = mix(pair_key(entry));
    sum[0] += mix(key ^ mix(bits ^ 0xd1b54a32d192ed03u));
    sum[1] += mix(mix(key + 0x632be59bd9b4e019u) ^ mix(bits));
  }
};

/// The exact check for duplicates and, in a general file, asymmetry. All entries of one unordered
/// pair fall into the same class; one pass of the file per class.
Result<void> audit(Parser& parser, const Header& header) {
  struct Place {
    std::uint64_t key;
    std::int64_t line;
    double value;
    bool above;
  };
  const auto classes =
      static_cast<std::uint64_t>((header.entries + kAuditEntries - 1) / kAuditEntries);
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  std::string what;
  auto report = [&](const Place& place, const char* text) {
    if (place.line >= first) return;
    first = place.line;
    auto low = std::to_string((place.key >> 32) + 1),
         high = std::to_string((place.key & 0xffffffffu) + 1);
    if (!place.above) std::swap(low, high);
    what = "entry (" + low + ", " + high + ") " + text;
  };
  std::vector<Place> places;
  places.reserve(static_cast<std::size_t>(header.entries) / classes + 1024);
  for (std::uint64_t current = 0; current < classes; ++current) {
    places.clear();
    auto opened = parser.open();
    if (!opened) return opened.error();
    auto read = parser.for_each_entry(header, [&](const Entry& entry) {
      const std::uint64_t key = pair_key(entry);
      if (mix(key) % classes != current) return;
      places.push_back({key, entry.line, entry.value, entry.row < entry.column});
    });
    if (!read) return read;
    std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
      return a.key != b.key ? a.key < b.key : a.line < b.line;
    });
    for (std::size_t begin = 0, end = 0; begin < places.size(); begin = end) {
      std::array<const Place*, 2> seen{};  // below or on the diagonal, above
      for (end = begin; end < places.size() && places[end].key == places[begin].key; ++end) {
        const Place& place = places[end];
        const Place*& mine = seen[place.above ? 1 : 0];
        if (mine) report(place, "occurs a second time");
        if (!mine) mine = &place;
      }
      const bool diagonal = places[begin].key >> 32 == (places[begin].key & 0xffffffffu);
      if (header.symmetric || diagonal) continue;
      if (!seen[0] || !seen[1]) {
        report(places[begin], "has no mirror image, and CG needs a symmetric matrix");
      } else if (seen[0]->value != seen[1]->value) {
        report(seen[0]->line > seen[1]->line ? *seen[0] : *seen[1],
               "differs from its mirror image, and CG needs a symmetric matrix");
      }
    }
  }
  if (!what.empty()) return parser.invalid(first, what);
  return {};
}

/// Calls use(local row, column, value) for what an entry, and in a symmetric file its mirror image,
/// puts into the rows [first, first + count).
template <class Use>
void place(const Header& header, const Entry& entry, std::int64_t first, std::int64_t count,
           Use use) {
  if (entry.row >= first && entry.row < first + count) {
    use(static_cast<std::size_t>(entry.row - first), entry.column, entry.value);
  }
  if (header.symmetric && entry.row != entry.column && entry.column >= first &&
      entry.column < first + count) {
    use(static_cast<std::size_t>(entry.column - first), entry.row, entry.value);
  }
}

void sort_rows(LocalRows& local) {
  std::vector<std::pair<std::int64_t, double>> row;
  for (std::size_t i = 0; i + 1 < local.row_begin.size(); ++i) {
    const auto begin = static_cast<std::size_t>(local.row_begin[i]);
    const auto end = static_cast<std::size_t>(local.row_begin[i + 1]);
    if (std::is_sorted(local.column.data() + begin, local.column.data() + end)) continue;
    row.clear();
    for (auto k = begin; k < end; ++k) row.emplace_back(local.column[k], local.value[k]);
    std::sort(row.begin(), row.end());
    for (auto k = begin; k < end; ++k) std::tie(local.column[k], local.value[k]) = row[k - begin];
  }
}

Result<LocalRows> read(const std::string& path, std::int32_t rank, std::int32_t ranks) {
  Parser parser(path);
  auto header = parser.open();
  if (!header) return header.error();
  const RowBlocks blocks{header->rows, ranks};
  if (header->rows < ranks) {
    return parser.invalid(header->size_line, "more ranks than rows: " + std::to_string(ranks) +
                                                 " and " + std::to_string(header->rows));
  }
  LocalRows local;
  local.first_row = blocks.first(rank);
  local.rows = blocks.count(rank);
  local.global_rows = header->rows;
  local.row_begin.resize(static_cast<std::size_t>(local.rows) + 1);
  Scan scan;
  auto scanned = parser.for_each_entry(*header, [&](const Entry& entry) {
    scan.add(entry);
    place(*header, entry, local.first_row, local.rows,
          [&](std::size_t row, std::int64_t, double) { ++local.row_begin[row + 1]; });
  });
  if (!scanned) return scanned.error();
  const bool no_duplicates = scan.rows_ascend || scan.columns_ascend;
  if (!no_duplicates || (!header->symmetric && scan.below != scan.above)) {
    if (auto audited = audit(parser, *header); !audited) return audited.error();
  }
  local.global_nonzeros =
      (header->symmetric ? 2 : 1) * header->entries - (header->symmetric ? scan.diagonal : 0);

  std::partial_sum(local.row_begin.begin(), local.row_begin.end(), local.row_begin.begin());
  local.column.resize(static_cast<std::size_t>(local.row_begin.back()));
  local.value.resize(local.column.size());
  std::vector<std::int64_t> next(local.row_begin.begin(), local.row_begin.end() - 1);
  const Error changed{Errc::io, 0, path + ": the file changed while it was read"};
  auto again = parser.open();
  if (!again) return again.error();
  if (*again != *header) return changed;
  bool fits = true;
  Scan second;
  auto filled = parser.for_each_entry(*header, [&](const Entry& entry) {
    second.add(entry);
    place(*header, entry, local.first_row, local.rows,
          [&](std::size_t row, std::int64_t column, double value) {
            if (next[row] == local.row_begin[row + 1]) {
              fits = false;
              return;
            }
            const auto k = static_cast<std::size_t>(next[row]++);
            local.column[k] = column;
            local.value[k] = value;
          });
  });
  if (!filled) return filled.error();
  if (!fits || second.below != scan.below || second.above != scan.above) return changed;
  sort_rows(local);
  return local;
}

}  // namespace

Result<LocalRows> read_matrix_market(const std::string& path, std::int32_t rank,
                                     std::int32_t ranks) {
  check(ranks >= 1 && rank >= 0 && rank < ranks, "read_matrix_market(): rank out of range");
  try {
    return read(path, rank, ranks);
  } catch (const std::bad_alloc&) {
    return Error{Errc::out_of_memory, 0, path + ": this rank's rows do not fit into host memory"};
  }
}

}  // namespace troupe::cg
