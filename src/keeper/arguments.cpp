#include "keeper/arguments.hpp"

#include <charconv>
#include <cstring>

namespace troupe::keeper {
namespace {

template <class Number>
bool read(const char* text, Number& number) {
  const char* const end = text + std::strlen(text);
  const auto [rest, error] = std::from_chars(text, end, number);
  return error == std::errc() && rest == end && number >= 0;
}

bool read(const char* text, std::chrono::nanoseconds& time) {
  std::int64_t ns = 0;
  if (!read(text, ns)) return false;
  time = std::chrono::nanoseconds(ns);
  return true;
}

}  // namespace

std::optional<Arguments> parse(int argc, char** argv) {
  constexpr int kNumbers = 5;  // before the program
  if (argc < 1 + kNumbers + 2) return std::nullopt;
  Arguments given;
  const bool sound = read(argv[1], given.spares) && read(argv[2], given.silence) &&
                     read(argv[3], given.wait) && read(argv[4], given.budget) &&
                     read(argv[5], given.window);
  if (!sound) return std::nullopt;
  given.program = argv[1 + kNumbers];
  given.arguments.assign(argv + 2 + kNumbers, argv + argc);
  return given;
}

}  // namespace troupe::keeper
