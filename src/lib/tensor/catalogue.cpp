#include <algorithm>
#include <numeric>
#include <string>

#include <troupe/lib/tensor.hpp>

#include "catalogue/catalogue.hpp"
#include "reference/tensors.hpp"

// Contractions, reductions, permutations and elementwise functions of tensors of small integers,
// compared with loops over all indices on the host.

namespace troupe::catalogue {
namespace {

using reference::PerLetter;
using tensor::Binary;
using tensor::Unary;

/// An extent for each of the letters.
PerLetter draw_extents(Trial& t, const std::string& letters, std::int64_t largest) {
  PerLetter extents;
  for (const char letter : letters) extents[letter] = t.random.between(1, largest);
  return extents;
}
std::string shuffled(Trial& t, std::string letters) {
  for (std::size_t i = letters.size(); i > 1; --i)
    std::swap(letters[i - 1],
              letters[static_cast<std::size_t>(t.random.below(std::ssize(letters)))]);
  return letters;
}

/// A tensor whose modes lie in any order, with fillers between its elements or without.
template <class T>
struct Placed {
  reference::Tensor reference;
  std::vector<std::int64_t> strides;
  tensor::View<T> view;

  Placed(Trial& t, const std::string& modes, const PerLetter& extents)
      : reference(reference::tensor_of(modes, extents)),
        view({}, tensor::Numbers(std::span(reference.extents))) {
    reference.values = t.numbers<T>(reference.volume());
    strides = reference::strides_of(reference, shuffled(t, modes), t.random.below(2));
    view.strides = tensor::Numbers(std::span(strides));
    view.buffer = t.put<T>(memory(reference));
  }
  [[nodiscard]] std::vector<Wide> memory(const reference::Tensor& contents) const {
    return reference::stored(contents, strides, -77);
  }
  tensor::TermOf<T> operator()(Unary unary = Unary::identity) const {
    return view(reference.modes, unary);
  }
  void expect(Trial& t, const reference::Tensor& contents) const {
    t.expect(view.buffer, memory(contents));
  }
  /// With each of its elements conjugated, where that is asked for.
  [[nodiscard]] reference::Tensor seen(Unary unary) const {
    return unary == Unary::conj ? reference::conjugated(reference) : reference;
  }
};

template <class T>
ScalarTypeOf<T> factor(const Wide& value) {
  return reference::to_number<ScalarTypeOf<T>>(value);
}
Unary draw_unary(Trial& t) {
  return t.flip() ? Unary::conj : Unary::identity;
}
/// alpha x + beta y
reference::Tensor sum(const Wide& alpha, reference::Tensor x, const Wide& beta,
                      const reference::Tensor& y) {
  for (std::size_t i = 0; i < x.values.size(); ++i)
    x.values[i] = alpha * x.values[i] + beta * y.values[i];
  return x;
}

template <class T>
void add_contractions(Catalogue& catalogue) {
  catalogue.add<T>({"contraction", "contract tune_contract", Missing::itself}, [](Trial& t) {
    const auto extents = draw_extents(t, "bmnkl", 4);
    const std::string batch = t.flip() ? "b" : "", sums = t.flip() ? "kl" : "k";
    const Placed<T> a(t, shuffled(t, batch + "m" + sums), extents),
        b(t, shuffled(t, batch + "n" + sums), extents), c(t, shuffled(t, batch + "mn"), extents);
    const auto alpha = t.scalar<T>(), beta = t.scalar<T>();
    const auto conj_a = draw_unary(t), conj_b = draw_unary(t);
    auto on_device = tensor::on(t.device());
    if (t.random.one_in(4))
      t.call(on_device.tune_contract(a(), b(), c(), {}, {.candidates = 2, .repeats = 1}));
    t.call(on_device.template contract<T>(factor<T>(alpha), a(conj_a), b(conj_b), factor<T>(beta),
                                          c()));
    c.expect(t, sum(alpha,
                    reference::sum_of_products(c.reference.modes, {a.seen(conj_a), b.seen(conj_b)}),
                    beta, c.reference));
    a.expect(t, a.reference);
  });
  catalogue.add<T>({"contraction of three", "contract_trinary", Missing::itself}, [](Trial& t) {
    const auto extents = draw_extents(t, "ijkl", 3);
    const Placed<T> a(t, shuffled(t, "ij"), extents), b(t, shuffled(t, "jk"), extents),
        c(t, shuffled(t, "kl"), extents), e(t, shuffled(t, "il"), extents);
    t.call(tensor::on(t.device()).contract_trinary(a(), b(), c(), e()));
    e.expect(
        t, reference::sum_of_products(e.reference.modes, {a.reference, b.reference, c.reference}));
  });
  catalogue.add<T>({"einsum", "contract reduce", Missing::itself}, [](Trial& t) {
    const auto extents = draw_extents(t, "ijkl", 4);
    const std::string in = shuffled(t, "ijk"), out = shuffled(t, "ij");
    const Placed<T> a(t, in, extents), b(t, "lk", extents), sums(t, out, extents),
        product(t, out + "l", extents);
    auto on_device = tensor::on(t.device());
    t.call(on_device.einsum(in + "->" + out, {a.view}, sums.view));
    t.call(on_device.einsum(in + ",lk->" + out + "l", {a.view, b.view}, product.view));
    sums.expect(t, reference::sum_of_products(out, {a.reference}));
    product.expect(t, reference::sum_of_products(out + "l", {a.reference, b.reference}));
  });
}

/// A matrix of which some blocks are stored.
template <class T>
struct BlockMatrix {
  tensor::BlockView<T> view;
  std::int64_t columns = 0;
  std::vector<Wide> whole;          ///< row-major, with zeros where nothing is stored
  std::vector<std::size_t> places;  ///< of what is stored, as it lies

  /// `rows`, `its_columns`: the extents of the sections.
  BlockMatrix(Trial& t, const std::vector<std::int64_t>& rows,
              const std::vector<std::int64_t>& its_columns)
      : columns(std::reduce(its_columns.begin(), its_columns.end())) {
    view.sections = {rows, its_columns};
    whole.resize(static_cast<std::size_t>(std::reduce(rows.begin(), rows.end()) * columns));
    std::int64_t top = 0;
    for (std::size_t i = 0; i < rows.size(); top += rows[i++]) {
      std::int64_t left = 0;
      for (std::size_t j = 0; j < its_columns.size(); left += its_columns[j++]) {
        if (!view.blocks.empty() && t.random.one_in(3)) continue;
        view.blocks.push_back({static_cast<std::int64_t>(i), static_cast<std::int64_t>(j)});
        for (auto row = top; row < top + rows[i]; ++row) {
          for (auto column = left; column < left + its_columns[j]; ++column)
            places.push_back(static_cast<std::size_t>(row * columns + column));
        }
      }
    }
    const auto values = t.numbers<T>(std::ssize(places));
    for (std::size_t i = 0; i < places.size(); ++i) whole[places[i]] = values[i];
    view.buffer = t.put<T>(values);
  }
};

template <class T>
void add_products_of_blocks(Catalogue& catalogue) {
  catalogue.add<T>({"blocks of matrices", "contract_block_sparse", Missing::itself}, [](Trial& t) {
    const auto cut = [&t] {
      std::vector<std::int64_t> sections(static_cast<std::size_t>(t.random.between(1, 3)));
      for (auto& extent : sections) extent = t.random.between(1, 4);
      return sections;
    };
    const auto m = cut(), n = cut(), k = cut();
    const BlockMatrix<T> a(t, m, k), b(t, k, n), d(t, m, n);
    const auto alpha = t.scalar<T>(), beta = t.scalar<T>();
    t.call(tensor::on(t.device())
               .template contract_block_sparse<T>(factor<T>(alpha), a.view("mk"), b.view("kn"),
                                                  factor<T>(beta), d.view("mn")));
    std::vector<Wide> expected;
    for (const auto place : d.places) {
      const auto columns = static_cast<std::size_t>(d.columns);
      const auto inner = static_cast<std::size_t>(a.columns);
      Wide sum = 0;
      for (std::size_t i = 0; i < inner; ++i)
        sum += a.whole[place / columns * inner + i] * b.whole[i * columns + place % columns];
      expected.push_back(alpha * sum + beta * d.whole[place]);
    }
    t.expect(d.view.buffer, std::move(expected));
  });
}

template <class T>
void add_elements_of_tensors(Catalogue& catalogue) {
  catalogue.add<T>({"reduction", "reduce", Missing::itself}, [](Trial& t) {
    const auto extents = draw_extents(t, "ijkl", 4);
    const Placed<T> a(t, shuffled(t, "ijkl"), extents), d(t, shuffled(t, "jk"), extents);
    const auto alpha = t.scalar<T>(), beta = t.scalar<T>();
    t.call(tensor::on(t.device())
               .template reduce<T>(Binary::add, factor<T>(alpha), a(), factor<T>(beta), d(), d()));
    d.expect(t, sum(alpha, reference::sum_of_products(d.reference.modes, {a.reference}), beta,
                    d.reference));
  });
  catalogue.add<T>({"permutation", "permute", Missing::itself}, [](Trial& t) {
    const auto extents = draw_extents(t, "ijkl", 5);
    const Placed<T> a(t, shuffled(t, t.flip() ? "ijkl" : "jl"), extents),
        b(t, shuffled(t, "ijkl"), extents);
    const auto alpha = t.scalar<T>();
    t.call(tensor::on(t.device()).permute(factor<T>(alpha), a(), b()));
    auto expected = b.reference;
    reference::for_each_index(
        extents, [&](const PerLetter& at) { expected.at(at) = alpha * a.reference.at(at); });
    b.expect(t, expected);
  });
  catalogue.add<T>(
      {"elements of tensors", "elementwise_binary elementwise_trinary", Missing::itself},
      [](Trial& t) {
        const auto extents = draw_extents(t, "ijk", 5);
        const Placed<T> a(t, shuffled(t, "ik"), extents), b(t, shuffled(t, "ijk"), extents),
            c(t, shuffled(t, "ijk"), extents);
        const auto alpha = t.scalar<T>(), beta = t.scalar<T>(), gamma = t.scalar<T>();
        auto expected = c.reference;
        auto on_device = tensor::on(t.device());
        if (t.flip()) {
          t.call(on_device.template elementwise<T>(Binary::add, factor<T>(alpha), a(),
                                                   factor<T>(gamma), c(), c()));
          reference::for_each_index(extents, [&](const PerLetter& at) {
            expected.at(at) = alpha * a.reference.at(at) + gamma * c.reference.at(at);
          });
        } else {
          t.call(on_device.template elementwise<T>(Binary::mul, Binary::add, factor<T>(alpha), a(),
                                                   factor<T>(beta), b(), factor<T>(gamma), c(),
                                                   c()));
          reference::for_each_index(extents, [&](const PerLetter& at) {
            expected.at(at) = (alpha * a.reference.at(at)) * (beta * b.reference.at(at)) +
                              gamma * c.reference.at(at);
          });
        }
        c.expect(t, expected);
      });
}

void add_calls_of_tensors(Catalogue& catalogue) {
  const auto add = [&catalogue]<class T>(T) {
    add_contractions<T>(catalogue);
    add_elements_of_tensors<T>(catalogue);
  };
  for_numbers(add);
  for_numbers([&catalogue]<class T>(T) { add_products_of_blocks<T>(catalogue); });
  for_types<Half, BFloat16>(add);
}

const Subject kTensors("tensor", add_calls_of_tensors);

}  // namespace

}  // namespace troupe::catalogue
