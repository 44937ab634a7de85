// libFuzzer entry: whatever the bytes, the reader answers with rows that keep their promises or
// with an error, and all ranks agree which.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include <troupe/error.hpp>

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
