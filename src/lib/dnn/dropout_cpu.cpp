#include "lib/dnn/dropout_view.hpp"
#include "lib/dnn/graph_cpu.hpp"
#include "lib/rng/philox.hpp"

namespace troupe::dnn {

void compute_dropout(const NodeView& node, Contents& contents) {
  const DropoutView view(node);
  auto offset = view.offset;
  if (view.moved != nullptr) offset += static_cast<std::uint64_t>(contents[view.moved].integers[0]);
  const auto count = view.volume();
  std::vector<std::uint32_t> words(static_cast<std::size_t>(count));
  host::cpu::Philox(view.seed, offset).bits(words.data(), count);
  const auto kept = [threshold = view.threshold()](std::uint32_t word) {
    return word >= threshold;
  };
  if (view.mask != nullptr) {
    auto& mask = contents.make(view.mask);
    for (std::size_t i = 0; i < words.size(); ++i) mask[i] = kept(words[i]) ? 1 : 0;
  }
  if (view.y == nullptr) return;
  const auto& x = contents.of(view.x);
  auto& y = contents.make(view.y);
  for (std::size_t i = 0; i < words.size(); ++i) y[i] = kept(words[i]) ? x[i] * view.scale() : 0;
}

}  // namespace troupe::dnn
