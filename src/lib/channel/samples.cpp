#include <troupe/lib/channel.hpp>

#include "samples.hpp"

namespace troupe::test {
namespace {

Operand invitation() {
  auto cell = cell_in(1);
  cell.bytes = sizeof(channel::Invitation);
  return cell;
}

const Samples kChannelSamples{
    channel::Invite{DType::u8, 3, invitation()},
    channel::Connect{DType::u8, 3},
    Tailed<channel::Join>{{DType::u8, 4}, {}, std::vector<std::byte>(128, std::byte{7})},
    channel::Settle{DType::u8, range_in(1)},
    channel::Send{DType::u8, 3, range_in(1)},
    channel::Receive{DType::u8, 4, range_in(2)},
    channel::Drop{DType::u8, 3}};

}  // namespace
}  // namespace troupe::test
