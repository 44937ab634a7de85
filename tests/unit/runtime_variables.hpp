#pragma once

#include <cctype>
#include <cstdlib>

#include <troupe/config.hpp>

namespace troupe::test {

/// Takes the variables of runtime options out of this process's environment: the settings of the
/// machine that runs the tests are none of theirs.
inline void forget_runtime_variables() {
  for (const auto& option : runtime_options()) {
    auto variable = "TROUPE_" + option.name;
    for (auto& letter : variable)
      letter = letter == '-' ? '_' : static_cast<char>(std::toupper(letter));
    ::unsetenv(variable.c_str());
  }
}

}  // namespace troupe::test
