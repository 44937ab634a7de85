#include "matrix_market.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <string_view>
#include <tuple>

namespace troupe::cg {
namespace {

constexpr std::size_t kBufferBytes = 1 << 20;  // also the longest line accepted
constexpr std::int64_t kMaxRows = std::int64_t{1} << 31;
constexpr std::int64_t kAuditEntries = std::int64_t{1} << 23;
constexpr std::int64_t kShortestEntry = 6;  // "1 1 1\n"

struct Header {
  bool integer = false, symmetric = false;
  std::int64_t rows = 0, entries = 0;
  std::int64_t size_line = 0;
  bool operator==(const Header&) const = default;
};

/// One stored entry; zero-based.
struct Entry {
  std::int64_t row, column, line;
  double value;
};

bool same_word(std::string_view a, std::string_view lower_case) {
  return std::equal(a.begin(), a.end(), lower_case.begin(), lower_case.end(), [](char x, char y) {
    return (x >= 'A' && x <= 'Z' ? static_cast<char>(x - 'A' + 'a') : x) == y;
  });
}

/// Takes the next blank-separated word off `rest`; empty at the end.
std::string_view take_word(std::string_view& rest) {
  const auto begin = std::min(rest.find_first_not_of(" \t"), rest.size());
  rest.remove_prefix(begin);
  const auto word = rest.substr(0, rest.find_first_of(" \t"));
  rest.remove_prefix(word.size());
  return word;
}

std::optional<std::int64_t> to_integer(std::string_view word) {
  if (word.size() > 1 && word[0] == '+' && word[1] != '-') word.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size()) return std::nullopt;
  return value;
}

std::optional<double> to_real(std::string_view word) {
  if (word.size() > 1 && word[0] == '+' && word[1] != '-') word.remove_prefix(1);
  std::array<char, 64> copy;
  if (const auto d = word.find_first_of("dD"); d != word.npos && word.size() <= copy.size()) {
    std::copy(word.begin(), word.end(), copy.begin());
    copy[d] = 'e';
    word = {copy.data(), word.size()};
  }
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value + 0.0;  // -0.0 becomes 0.0: they are equal, so they must hash alike
}

/// Streams a file line by line and knows the format; open() starts a pass from the beginning.
class Parser {
 public:
  explicit Parser(const std::string& path) : path_(path), buffer_(kBufferBytes) {}
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;
  ~Parser() { close(); }

  [[nodiscard]] Error invalid(std::int64_t line, const std::string& what) const {
    return {Errc::invalid, 0, path_ + ":" + std::to_string(line) + ": " + what};
  }

  Result<Header> open();

  /// Calls visit(const Entry&) for every entry after the header that open() returned.
  template <class Visit>
  Result<void> for_each_entry(const Header& header, Visit visit) {
    std::int64_t seen = 0;
    std::string_view line;
    while (next_line(line)) {
      std::string_view rest = line;
      if (take_word(rest).empty()) continue;
      if (is_banner(line)) return invalid(line_, "a second banner");
      if (seen == header.entries) {
        return invalid(line_, "more than the announced " + std::to_string(seen) + " entries");
      }
      auto entry = parse_entry(header, line);
      if (!entry) return entry.error();
      visit(*entry);
      ++seen;
    }
    if (failure_) return *failure_;
    if (seen < header.entries) {
      return invalid(line_, "truncated: " + std::to_string(seen) + " of " +
                                std::to_string(header.entries) + " announced entries");
    }
    return {};
  }

 private:
  static bool is_banner(std::string_view line) {
    std::string_view rest = line;
    const auto word = take_word(rest);
    // Copies of well-known matrices circulate with one percent sign: the meaning is clear.
    return same_word(word, "%%matrixmarket") || same_word(word, "%matrixmarket");
  }
  [[nodiscard]] Error system_error(const char* what) const {
    const int code = errno;
    return {Errc::io, code, path_ + ": " + what + ": " + std::strerror(code)};
  }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  bool next_line(std::string_view& line);
  Result<void> parse_banner(std::string_view line, Header& header) const;
  Result<void> parse_size(std::string_view line, Header& header) const;
  Result<Entry> parse_entry(const Header& header, std::string_view line) const;

  std::string path_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // the unread part of buffer_
  std::int64_t line_ = 0, file_bytes_ = 0;
  int fd_ = -1;
  bool at_end_ = false;
  std::optional<Error> failure_;  // why next_line() stopped before the end
};

bool Parser::next_line(std::string_view& line) {
  std::size_t searched = 0;
  for (;;) {
    const char* from = buffer_.data() + begin_;
    const void* found = std::memchr(from + searched, '\n', end_ - begin_ - searched);
    if (found || (at_end_ && end_ > begin_)) {
      const std::size_t length =
          found ? static_cast<std::size_t>(static_cast<const char*>(found) - from) : end_ - begin_;
      line = {from, length};
      begin_ += length + (found ? 1 : 0);
      ++line_;
      if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
      return true;
    }
    if (at_end_) return false;
    searched = end_ - begin_;
    if (searched == buffer_.size()) {
      failure_ = invalid(line_ + 1, "a line longer than 1 MiB");
      return false;
    }
    std::memmove(buffer_.data(), from, searched);
    begin_ = 0;
    end_ = searched;
    const ssize_t got = ::read(fd_, buffer_.data() + end_, buffer_.size() - end_);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      failure_ = system_error("read");
      return false;
    }
    at_end_ = got == 0;
    end_ += static_cast<std::size_t>(got);
  }
}

Result<Header> Parser::open() {
  close();
  begin_ = end_ = 0;
  line_ = 0;
  at_end_ = false;
  failure_.reset();
  // O_NONBLOCK: opening a FIFO must not hang; it has no effect on regular files.
  fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status = {};
  if (fd_ < 0) return system_error("open");
  if (::fstat(fd_, &status) != 0) return system_error("fstat");
  if (!S_ISREG(status.st_mode)) return Error{Errc::io, 0, path_ + ": not a regular file"};
  file_bytes_ = status.st_size;

  Header header;
  std::string_view line;
  if (!next_line(line)) {
    return failure_ ? *failure_ : invalid(1, "the file is empty: no %%MatrixMarket banner");
  }
  if (auto parsed = parse_banner(line, header); !parsed) return parsed.error();
  while (next_line(line)) {
    if (is_banner(line)) return invalid(line_, "a second banner");
    std::string_view rest = line;
    const auto word = take_word(rest);
    if (word.empty() || word[0] == '%') continue;
    if (auto parsed = parse_size(line, header); !parsed) return parsed.error();
    header.size_line = line_;
    return header;
  }
  return failure_ ? *failure_ : invalid(line_, "truncated: no size line");
}

Result<void> Parser::parse_banner(std::string_view line, Header& header) const {
  if (!is_banner(line)) {
    return invalid(line_,
                   "not a Matrix Market file: the first line must begin with %%MatrixMarket");
  }
  std::string_view rest = line;
  take_word(rest);
  const auto object = take_word(rest), format = take_word(rest), field = take_word(rest),
             symmetry = take_word(rest);
  if (symmetry.empty() || !take_word(rest).empty()) {
    return invalid(line_, "the banner must be: %%MatrixMarket matrix coordinate FIELD SYMMETRY");
  }
  auto unsupported = [&](const char* what, std::string_view word) {
    return invalid(line_, std::string("unsupported ") + what + " '" + std::string(word) + "'");
  };
  if (!same_word(object, "matrix")) return unsupported("object", object);
  if (!same_word(format, "coordinate")) return unsupported("format", format);
  header.integer = same_word(field, "integer");
  if (!header.integer && !same_word(field, "real")) return unsupported("field", field);
  header.symmetric = same_word(symmetry, "symmetric");
  if (!header.symmetric && !same_word(symmetry, "general"))
    return unsupported("symmetry", symmetry);
  return {};
}

Result<void> Parser::parse_size(std::string_view line, Header& header) const {
  std::string_view rest = line;
  const auto rows = to_integer(take_word(rest)), columns = to_integer(take_word(rest)),
             entries = to_integer(take_word(rest));
  if (!rows || !columns || !entries) {
    return invalid(line_, "the size line must be three integers: ROWS COLUMNS ENTRIES");
  }
  if (!take_word(rest).empty()) return invalid(line_, "trailing junk after the size");
  if (*rows < 1 || *columns < 1 || *entries < 0) {
    return invalid(line_, "the sizes must be positive");
  }
  if (*rows != *columns) return invalid(line_, "the matrix is not square");
  if (*rows > kMaxRows) return invalid(line_, "more than 2^31 rows");
  const std::int64_t places =
      header.symmetric ? *rows % 2 == 0 ? *rows / 2 * (*rows + 1) : (*rows + 1) / 2 * *rows
                       : *rows * *rows;
  if (*entries > places) return invalid(line_, "more entries than the matrix has places");
  // These two bound every allocation by the size of the file.
  if (*entries > (file_bytes_ + 1) / kShortestEntry) {
    return invalid(line_, "truncated: more entries announced than the file can hold");
  }
  if (*rows > (header.symmetric ? 2 : 1) * *entries) {
    return invalid(line_, "more rows than the entries can reach: the matrix is singular");
  }
  header.rows = *rows;
  header.entries = *entries;
  return {};
}

Result<Entry> Parser::parse_entry(const Header& header, std::string_view line) const {
  std::string_view rest = line;
  const auto row = to_integer(take_word(rest)), column = to_integer(take_word(rest));
  if (!row || !column) return invalid(line_, "an entry must begin with two integer indices");
  if (*row < 1 || *row > header.rows || *column < 1 || *column > header.rows) {
    return invalid(line_, "index out of range 1 to " + std::to_string(header.rows));
  }
  if (header.symmetric && *row < *column) {
    return invalid(line_,
                   "an entry above the diagonal of a symmetric file, which stores the lower "
                   "triangle only");
  }
  const auto word = take_word(rest);
  if (word.empty()) return invalid(line_, "the entry has no value");
  Entry entry{*row - 1, *column - 1, line_, 0};
  if (header.integer) {
    const auto value = to_integer(word);
    constexpr std::int64_t kExact = std::int64_t{1} << std::numeric_limits<double>::digits;
    if (!value || *value > kExact || *value < -kExact) {
      return invalid(line_, "the value is not an integer that a double can hold");
    }
    entry.value = static_cast<double>(*value);
  } else {
    const auto value = to_real(word);
    if (!value) return invalid(line_, "the value is not a finite number");
    entry.value = *value;
  }
  if (!take_word(rest).empty()) return invalid(line_, "trailing junk after the entry");
  return entry;
}

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
