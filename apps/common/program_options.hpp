#pragma once

#include <string>
#include <utility>

#include <troupe/config.hpp>
#include <troupe/error.hpp>

/// What the programs that compute have in common in their options.
namespace troupe::app {

/// An option that does not change what the state after a step is: a saved state fits whatever it
/// says.
inline OptionSpec on_the_way(OptionSpec option) {
  option.shapes_result = false;
  return option;
}

inline OptionSpec lettered(char letter, OptionSpec option) {
  option.letter = letter;
  return option;
}

/// The one line of an option that is refused.
inline Error bad(const std::string& option, const std::string& why) {
  return {Errc::invalid, 0, "--" + option + ": " + why};
}

}  // namespace troupe::app
