#include <nlohmann/json.hpp>

#include "call.hpp"

namespace troupe::judge {
namespace {

using tensor::Binary;
using tensor::Unary;

/// "a_layout": [extents, strides].
template <class T>
tensor::View<T> view(Call& c, const std::string& name) {
  const auto layout = c.get<nlohmann::json>(name + "_layout");
  const auto extents = layout.at(0).get<std::vector<std::int64_t>>(),
             strides = layout.at(1).get<std::vector<std::int64_t>>();
  return {c.buffer<T>(name), tensor::Numbers(std::span(extents)),
          tensor::Numbers(std::span(strides))};
}
/// "a_modes": letters; "a_unary": a word.
template <class T>
tensor::TermOf<T> term(Call& c, const std::string& name) {
  return view<T>(c, name)(c.get<std::string>(name + "_modes"),
                          c.choice<Unary>(name + "_unary", {"identity", "conj", "neg", "abs"}));
}
/// "a_blocks": [extents of the sections, places of the blocks].
template <class T>
tensor::BlockView<T> blocks(Call& c, const std::string& name) {
  const auto layout = c.get<nlohmann::json>(name + "_blocks");
  return {c.buffer<T>(name), layout.at(0).get<tensor::Sections>(),
          layout.at(1).get<tensor::BlockPlaces>()};
}
Binary binary(const Call& c, const std::string& name) {
  return c.choice<Binary>(name, {"add", "mul", "max", "min"});
}

template <class T>
void add_tensors_of(Runs& runs) {
  using S = ScalarTypeOf<T>;
  const auto add = calls_of<T>(runs, [](Device& device) { return tensor::on(device); });
  add("contract", [](Call& c, auto on) {
    on.template contract<T>(c.factor<S>("alpha"), term<T>(c, "a"), term<T>(c, "b"),
                            c.factor<S>("beta"), term<T>(c, "d"))
        .get();
  });
  if constexpr (FieldElement<T>) {
    add("contract_block_sparse", [](Call& c, auto on) {
      const auto a = blocks<T>(c, "a"), b = blocks<T>(c, "b"), d = blocks<T>(c, "d");
      on.template contract_block_sparse<T>(c.factor<S>("alpha"), a("mk"), b("kn"),
                                           c.factor<S>("beta"), d("mn"))
          .get();
    });
  }
  add("contract_trinary", [](Call& c, auto on) {
    const auto e = term<T>(c, "e");
    on.template contract_trinary<T>(c.factor<S>("alpha"), term<T>(c, "a"), term<T>(c, "b"),
                                    term<T>(c, "c"), c.factor<S>("beta"), e, e)
        .get();
  });
  add("reduce", [](Call& c, auto on) {
    const auto d = term<T>(c, "d");
    on.template reduce<T>(binary(c, "f"), c.factor<S>("alpha"), term<T>(c, "a"),
                          c.factor<S>("beta"), d, d)
        .get();
  });
  add("permute", [](Call& c, auto on) {
    on.permute(c.factor<S>("alpha"), term<T>(c, "a"), term<T>(c, "b")).get();
  });
  add("elementwise_binary", [](Call& c, auto on) {
    const auto d = term<T>(c, "d");
    on.template elementwise<T>(binary(c, "f"), c.factor<S>("alpha"), term<T>(c, "a"),
                               c.factor<S>("gamma"), d, d)
        .get();
  });
  add("elementwise_trinary", [](Call& c, auto on) {
    const auto d = term<T>(c, "d");
    on.template elementwise<T>(binary(c, "f"), binary(c, "g"), c.factor<S>("alpha"),
                               term<T>(c, "a"), c.factor<S>("beta"), term<T>(c, "b"),
                               c.factor<S>("gamma"), d, d)
        .get();
  });
  add("einsum", [](Call& c, auto on) {
    const auto subscripts = c.get<std::string>("subscripts");
    const auto scratch = c.device().alloc<T>(4096);
    const auto operands = c.integer("operands");
    const auto a = view<T>(c, "a"), out = view<T>(c, "out");
    if (operands == 1) return on.einsum(subscripts, {a}, out, scratch).get();
    const auto b = view<T>(c, "b");
    if (operands == 2) return on.einsum(subscripts, {a, b}, out, scratch).get();
    on.einsum(subscripts, {a, b, view<T>(c, "c")}, out, scratch).get();
  });
}

}  // namespace

void add_tensors(Runs& runs) {
  const auto add = [&runs]<class T>(T) { add_tensors_of<T>(runs); };
  for_numbers(add);
  for_types<Half, BFloat16>(add);
}

}  // namespace troupe::judge
