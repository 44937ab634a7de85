#include "lib/dnn/graph/cpu.hpp"
#include "common/core/philox_block.hpp"
#include "lib/dnn/dropout/view.hpp"

namespace troupe::dnn {

void compute_dropout(const NodeView& node, Contents& contents) {
  const DropoutView view(node);
  auto offset = view.offset;
  if (view.moved != nullptr) offset += static_cast<std::uint64_t>(contents[view.moved].integers[0]);
  const auto count = static_cast<std::size_t>(view.volume());
  const auto kept = [&](std::size_t i) {
    return host::rng_numbers::philox_word(view.seed, offset + i) >= view.threshold();
  };
  if (view.mask != nullptr) {
    auto& mask = contents.make(view.mask);
    for (std::size_t i = 0; i < count; ++i) mask[i] = kept(i) ? 1 : 0;
  }
  if (view.y == nullptr) return;
  const auto& x = contents.of(view.x);
  auto& y = contents.make(view.y);
  for (std::size_t i = 0; i < count; ++i) y[i] = kept(i) ? x[i] * view.scale() : 0;
}

}  // namespace troupe::dnn
