#include <troupe/lib/kernel.hpp>

#include "samples.hpp"

namespace troupe::test {
namespace {

Operand image_in(std::uint32_t region) {
  auto image = range_in(region);
  image.region |= kPinnedRegion;
  image.buffer = image.generation = 0;
  return image;
}

Operand facts_cell() {
  auto cell = cell_in(2);
  cell.bytes = sizeof(kernel::Facts);
  return cell;
}

/// f(buffer, 7), with one variable but on another rank's device: a name, two sizes, two arguments
/// and "v" inline.
template <class Op>
Tailed<Op> launch_sample() {
  constexpr bool there = std::is_base_of_v<kernel::LaunchThere, Op>;
  Op op;
  op.image_id[0] = 5, op.image_id[1] = 6, op.instance = there ? 0 : 9;
  op.grid[0] = 3, op.block[0] = 32;
  op.name_bytes = 1, op.arguments = 2, op.symbol_bytes = there ? 0 : 2;
  if constexpr (!there) op.image = image_in(1);
  std::vector<std::byte> data(there ? 4 * 8 : 5 * 8);
  data[0] = std::byte{'f'};
  const std::uint32_t sizes[] = {8, 4}, number = 7;
  std::memcpy(data.data() + 8, sizes, sizeof sizes);
  std::memcpy(data.data() + 24, &number, sizeof number);
  std::vector<TailOperand> tail{{range_in(2), Op::argument_tag(0, 0), Access::write, {}}};
  if (!there) {
    data[32] = std::byte{'v'};
    tail.push_back({range_in(3), Op::kSymbol, Access::read, {}});
  }
  return {op, tail, data};
}

const Samples kKernelSamples{
    kernel::Describe{{}, {5, 6}, 9, 128, 0, image_in(1), facts_cell()},
    launch_sample<kernel::Launch>(), launch_sample<kernel::RepeatableLaunch>(),
    launch_sample<kernel::LaunchThere>(), launch_sample<kernel::RepeatableLaunchThere>()};

}  // namespace
}  // namespace troupe::test
