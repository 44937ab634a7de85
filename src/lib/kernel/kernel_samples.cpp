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

/// f(buffer, 7), with one variable; a name, two sizes, two arguments and "v" inline.
template <class Op>
Tailed<Op> launch_sample() {
  Op op;
  op.image_id[0] = 5, op.image_id[1] = 6;
  op.grid[0] = 3, op.block[0] = 32;
  op.name_bytes = 1, op.arguments = 2, op.symbol_bytes = 2;
  op.image = image_in(1);
  std::vector<std::byte> data(5 * 8);
  data[0] = std::byte{'f'};
  const std::uint32_t sizes[] = {8, 4}, number = 7;
  std::memcpy(data.data() + 8, sizes, sizeof sizes);
  std::memcpy(data.data() + 24, &number, sizeof number);
  data[32] = std::byte{'v'};
  return {op,
          {{range_in(2), Op::argument_tag(0, 0), Access::write, {}},
           {range_in(3), Op::kSymbol, Access::read, {}}},
          data};
}

const Samples kKernelSamples{kernel::Describe{{}, {5, 6}, 128, 0, image_in(1), facts_cell()},
                             launch_sample<kernel::Launch>(),
                             launch_sample<kernel::RepeatableLaunch>()};

}  // namespace
}  // namespace troupe::test
