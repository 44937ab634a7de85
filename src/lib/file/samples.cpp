#include <troupe/lib/file.hpp>

#include "samples.hpp"

namespace troupe::test {
namespace {

/// 4096 bytes at the start of the file /f.
template <class Op>
Tailed<Op> file_sample() {
  Op op;
  op.dtype = DType::f64, op.path_bytes = 2;
  if constexpr (requires { op.source; }) op.source = range_in(1);
  if constexpr (requires { op.destination; }) op.destination = range_in(1);
  op.done = cell_in(2);
  op.done.bytes = sizeof(file::Done);
  op.inode = outside::thing(64), op.place = outside::thing(1 << 16);
  return {op, {}, {std::byte{'/'}, std::byte{'f'}}};
}

const Samples kFileSamples{file_sample<file::Write>(), file_sample<file::Read>()};

}  // namespace
}  // namespace troupe::test
