// Whatever the bytes, the reader answers with rows that keep their promises or
// with an error, and all ranks agree which.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <troupe/error.hpp>

#include "fuzz.hpp"
#include "matrix_market.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using troupe::check;
  const int fd = ::memfd_create("matrix", MFD_CLOEXEC);
  check(fd >= 0, "memfd_create");
  std::size_t written = 0;
  while (written < size) {
    const ssize_t count = ::write(fd, data + written, size - written);
    check(count > 0, "write");
    written += static_cast<std::size_t>(count);
  }
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  constexpr std::int32_t kRanks = 2;
  const auto first = troupe::cg::read_matrix_market(path, 0, kRanks);
  const auto second = troupe::cg::read_matrix_market(path, 1, kRanks);
  check(first.code() == second.code(), "both ranks succeed or fail alike");
  if (first.ok()) {
    std::int64_t entries = 0;
    for (const auto* rows : {&first.value(), &second.value()}) {
      entries += static_cast<std::int64_t>(rows->column.size());
      for (std::size_t row = 0; row + 1 < rows->row_begin.size(); ++row) {
        for (auto k = rows->row_begin[row]; k < rows->row_begin[row + 1]; ++k) {
          const auto column = rows->column[static_cast<std::size_t>(k)];
          check(column >= 0 && column < rows->global_rows, "columns are in range");
          check(k == rows->row_begin[row] || rows->column[static_cast<std::size_t>(k) - 1] < column,
                "columns ascend");
        }
      }
    }
    check(entries == first->global_nonzeros, "the ranks' entries make up the matrix");
  } else {
    check(first.error().message == second.error().message, "both ranks report the same");
  }
  ::close(fd);
  return 0;
}

std::vector<std::vector<std::byte>> fuzz_seeds() {
  constexpr std::string_view kMatrices[] = {
      "%%MatrixMarket matrix coordinate real symmetric\n% a comment\n3 3 4\n1 1 2.0\n2 1 -1\n"
      "2 2 2e0\n3 3 2\n",
      "%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 4.5\n1 2 1\n2 2 +3.25e-1\n",
      "%%MatrixMarket matrix coordinate integer symmetric\n2 2 2\n1 1 7\n2 2 9\n",
      "%%MatrixMarket matrix coordinate pattern symmetric\n2 2 2\n1 1\n2 2\n"};
  std::vector<std::vector<std::byte>> seeds;
  for (const auto text : kMatrices) {
    const auto bytes = std::as_bytes(std::span(text));
    seeds.emplace_back(bytes.begin(), bytes.end());
  }
  return seeds;
}
