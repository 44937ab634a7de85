#include "matrix_market_parser.hpp"

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

namespace troupe::cg::matrix_market {
namespace {

constexpr std::size_t kBufferBytes = 1 << 20;  // also the longest line accepted
constexpr std::int64_t kMaxRows = std::int64_t{1} << 31;
constexpr std::int64_t kShortestEntry = 6;  // "1 1 1\n"

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

}  // namespace

Parser::Parser(std::string path) : path_(std::move(path)), buffer_(kBufferBytes) {}

Error Parser::invalid(std::int64_t line, const std::string& what) const {
  return {Errc::invalid, 0, path_ + ":" + std::to_string(line) + ": " + what};
}

Error Parser::system_error(const char* what) const {
  const int code = errno;
  return {Errc::io, code, path_ + ": " + what + ": " + std::strerror(code)};
}

void Parser::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

bool Parser::is_banner(std::string_view line) {
  const auto word = take_word(line);
  // Copies of well-known matrices circulate with one percent sign: the meaning is clear.
  return same_word(word, "%%matrixmarket") || same_word(word, "%matrixmarket");
}

bool Parser::is_blank(std::string_view line) {
  return take_word(line).empty();
}

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

}  // namespace troupe::cg::matrix_market
