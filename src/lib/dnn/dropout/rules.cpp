#include <troupe/lib/dnn/dropout.hpp>

#include "lib/dnn/dropout/view.hpp"

namespace troupe::dnn {
namespace {

std::vector<std::int64_t> numbers_of(const DropoutRule& rule) {
  return {word_of(rule.probability), static_cast<std::int64_t>(rule.seed),
          static_cast<std::int64_t>(rule.offset)};
}

}  // namespace

Dropped dropout(Graph& graph, TensorId x, const DropoutRule& rule, TensorId moved, bool with_mask) {
  const auto like = graph.layout(x);
  const auto made = [&] { return graph.between(packed_like(like, like.extents)); };
  Dropped dropped{made(), {}};
  if (with_mask) dropped.mask = made();
  graph.add(NodeKind::dropout, {x, moved}, {dropped.y, dropped.mask}, numbers_of(rule));
  return dropped;
}

TensorId dropout_mask(Graph& graph, const Layout& layout, const DropoutRule& rule, TensorId moved) {
  const auto mask = graph.between(layout);
  graph.add(NodeKind::dropout, {{}, moved}, {{}, mask}, numbers_of(rule));
  return mask;
}

std::string wrong_dropout(const NodeView& node) {
  const DropoutView view(node);
  if (!(view.probability >= 0 && view.probability < 1))
    return "the probability is negative, or not below 1";
  if ((view.x == nullptr) != (view.y == nullptr)) return "there is x or y alone";
  if (view.y == nullptr && view.mask == nullptr) return "there is neither y nor a mask";
  if (view.y != nullptr && !same_extents(*view.x, *view.y)) return "y has other extents than x";
  if (view.y != nullptr && view.mask != nullptr && !same_extents(*view.mask, *view.y))
    return "the mask has other extents than y";
  if (view.moved != nullptr &&
      (view.moved->dtype != DType::i64 || view.moved->volume() != 1 || !view.moved->in_memory()))
    return "what the offset is moved by is not one i64 in memory";
  return {};
}

}  // namespace troupe::dnn
