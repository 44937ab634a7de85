#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <utility>

/// Matrices of the SuiteSparse collection, which are no part of this repository.
namespace troupe::test {

/// The elements of a symmetric matrix, of both triangles, by row and column.
struct RealMatrix {
  std::int64_t rows = 0;
  std::map<std::pair<std::int64_t, std::int64_t>, double> element;
};

/// The matrix of that name in the folder matrices of $TROUPE_SHARED; without rows if it is not
/// there. The file is in the format Matrix Market, coordinate real symmetric.
inline RealMatrix real_matrix(const std::string& name) {
  const char* const shared = std::getenv("TROUPE_SHARED");
  if (shared == nullptr) return {};
  std::ifstream file(std::filesystem::path(shared) / "matrices" / name);
  while (file.peek() == '%') file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  RealMatrix matrix;
  std::int64_t columns = 0, count = 0, row = 0, column = 0;
  double value = 0;
  file >> matrix.rows >> columns >> count;
  while (file >> row >> column >> value)
    matrix.element[{row - 1, column - 1}] = matrix.element[{column - 1, row - 1}] = value;
  return matrix;
}

}  // namespace troupe::test
