#include <troupe/lib/function.hpp>

#include "samples.hpp"

namespace troupe::test {
namespace {

/// f(buffer, 7), of the library "v".
template <class Op>
Tailed<Op> call_sample() {
  Op op;
  op.name_bytes = 1, op.arguments = 2, op.path_bytes = 2;
  if constexpr (requires { op.status; }) {
    op.library_id[0] = 3, op.library_id[1] = 4;
    op.status = cell_in(1);
  }
  const std::uint32_t sizes[] = {8, 4};
  const std::byte values[16] = {};
  using namespace std::string_view_literals;
  return {op,
          {{range_in(2), kernel::Launch::argument_tag(0, 0), Access::update, {}}},
          kernel::Inline::pack("f", sizes, values, "v\0"sv)};
}

const Samples kFunctionSamples{call_sample<functions::Call>(),
                               call_sample<functions::RepeatableCall>(),
                               call_sample<functions::CallThere>()};

}  // namespace
}  // namespace troupe::test
