#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <troupe/error.hpp>

/// The text of a Matrix Market file: what its lines say, one after the other. What the matrix is
/// good for is matrix_market.hpp's business.
namespace troupe::cg::matrix_market {

/// The banner and the size line.
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

/// Streams a file line by line and knows the format; open() starts a pass from the beginning.
class Parser {
 public:
  explicit Parser(std::string path);
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;
  ~Parser() { close(); }

  /// "FILE:LINE: what"
  [[nodiscard]] Error invalid(std::int64_t line, const std::string& what) const;

  /// Starts from the beginning and reads up to the size line. Errors: io, invalid.
  Result<Header> open();

  /// Calls visit(const Entry&) for every entry after the header that open() returned. Errors: io,
  /// invalid.
  template <class Visit>
  Result<void> for_each_entry(const Header& header, Visit visit) {
    std::int64_t seen = 0;
    std::string_view line;
    while (next_line(line)) {
      if (is_blank(line)) continue;
      if (is_banner(line)) return invalid(line_, "a second banner");
      if (seen == header.entries && line.starts_with("%"))
        return invalid(line_, "a comment behind the first entry");
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
  static bool is_banner(std::string_view line);
  static bool is_blank(std::string_view line);
  [[nodiscard]] Error system_error(const char* what) const;
  void close();
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

}  // namespace troupe::cg::matrix_market
