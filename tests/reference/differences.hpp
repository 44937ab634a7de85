#pragma once

#include <vector>

namespace troupe::test {

/// The derivatives of loss() by the numbers of an array that it reads, by central differences.
template <class Loss>
std::vector<double> central_differences(std::vector<double>& numbers, const Loss& loss,
                                        double h = 1e-4) {
  std::vector<double> result;
  for (auto& number : numbers) {
    const double at = number;
    number = at + h;
    const double above = loss();
    number = at - h;
    result.push_back((above - loss()) / (2 * h));
    number = at;
  }
  return result;
}

}  // namespace troupe::test
