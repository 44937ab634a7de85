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

std::vector<std::string> numbers_of(const Arguments& given) {
  return {std::to_string(given.spares),         std::to_string(given.silence.count()),
          std::to_string(given.wait.count()),   std::to_string(given.budget),
          std::to_string(given.window.count()), std::to_string(given.standby),
          std::to_string(given.refuges)};
}

std::optional<Arguments> parse(int argc, char** argv) {
  constexpr int kNumbers = 7;  // before the program
  Arguments given;
  if (argc > 2 && argv[1] == kInRefuge) {
    if (!read(argv[2], given.beside)) return std::nullopt;
    argc -= 2, argv += 2;
  }
  if (argc < 1 + kNumbers + 2) return std::nullopt;
  const bool sound = read(argv[1], given.spares) && read(argv[2], given.silence) &&
                     read(argv[3], given.wait) && read(argv[4], given.budget) &&
                     read(argv[5], given.window) && read(argv[6], given.standby) &&
                     read(argv[7], given.refuges);
  if (!sound) return std::nullopt;
  given.program = argv[1 + kNumbers];
  given.arguments.assign(argv + 2 + kNumbers, argv + argc);
  return given;
}

}  // namespace troupe::keeper
