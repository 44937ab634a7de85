#include "samples.hpp"

namespace troupe::test {

std::vector<Sample>& samples() {
  static std::vector<Sample> all;
  return all;
}

}  // namespace troupe::test
