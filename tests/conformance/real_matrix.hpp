#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <system_error>
#include <utility>

/// Matrices of the SuiteSparse collection, which are no part of this repository.
namespace troupe::test {

/// The elements of a matrix, by row and column; of a symmetric one those of both triangles.
struct RealMatrix {
  std::int64_t rows = 0, columns = 0;
  bool symmetric = false;
  std::map<std::pair<std::int64_t, std::int64_t>, double> element;
};

inline std::filesystem::path folder_of_real_matrices() {
  const char* const shared = std::getenv("TROUPE_SHARED");
  return shared == nullptr ? std::filesystem::path() : std::filesystem::path(shared) / "matrices";
}

/// The matrix of that name in the folder matrices of $TROUPE_SHARED; without rows if it is not
/// there. The file is in the format Matrix Market, coordinates with real numbers.
inline RealMatrix real_matrix(const std::string& name) {
  std::ifstream file(folder_of_real_matrices() / name);
  RealMatrix matrix;
  std::string line;
  for (bool first = true; file.peek() == '%' && std::getline(file, line); first = false) {
    if (first) matrix.symmetric = line.find(" symmetric") != std::string::npos;
  }
  std::int64_t count = 0, row = 0, column = 0;
  double value = 0;
  file >> matrix.rows >> matrix.columns >> count;
  while (file >> row >> column >> value) {
    matrix.element[{row - 1, column - 1}] = value;
    if (matrix.symmetric) matrix.element[{column - 1, row - 1}] = value;
  }
  return matrix;
}

/// Those of them with at most so many elements in the file.
inline std::map<std::string, RealMatrix> real_matrices(std::int64_t most) {
  std::map<std::string, RealMatrix> all;
  std::error_code none;  // there is no such folder
  for (const auto& entry : std::filesystem::directory_iterator(folder_of_real_matrices(), none)) {
    std::ifstream file(entry.path());
    std::string line;
    if (!std::getline(file, line) || line.find("coordinate real") == std::string::npos) continue;
    while (file.peek() == '%') file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
    std::int64_t rows = 0, columns = 0, count = 0;
    file >> rows >> columns >> count;
    const auto name = entry.path().filename().string();
    if (count <= most) all[name] = real_matrix(name);
  }
  return all;
}

}  // namespace troupe::test
