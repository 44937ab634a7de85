#include "tensor_values.hpp"

// Contractions of tensors of which only some blocks are stored.

namespace troupe::test {
namespace {

using tensor::BlockPlaces;
using tensor::BlockView;
using tensor::Sections;

const std::map<char, std::vector<std::int64_t>> kCuts{
    {'m', {2, 3}}, {'k', {3, 1, 2}}, {'n', {4, 1}}, {'b', {1, 2}}, {'c', {2}}};

std::int64_t begin_of(char mode, std::int64_t section) {
  std::int64_t begin = 0;
  for (std::int64_t i = 0; i < section; ++i) begin += kCuts.at(mode)[static_cast<std::size_t>(i)];
  return begin;
}

/// The indices of all stored elements, as they lie.
std::vector<PerLetter> indices_of(const std::string& modes, const BlockPlaces& blocks) {
  std::vector<PerLetter> all;
  for (const auto& block : blocks) {
    std::vector<PerLetter> of_block{{}};
    for (std::size_t i = 0; i < modes.size(); ++i) {
      const auto begin = begin_of(modes[i], block[i]), end = begin_of(modes[i], block[i] + 1);
      std::vector<PerLetter> longer;
      for (const auto& index : of_block) {
        for (auto at = begin; at < end; ++at) {
          longer.push_back(index);
          longer.back()[modes[i]] = at;
        }
      }
      of_block = std::move(longer);
    }
    all.insert(all.end(), of_block.begin(), of_block.end());
  }
  return all;
}

/// On the device, and as a whole with zeros.
template <class T>
struct Stored {
  std::string modes;
  BlockView<T> view;
  reference::Tensor whole;

  Stored(const std::string& its_modes, const BlockPlaces& blocks, std::uint64_t seed)
      : modes(its_modes) {
    PerLetter extents;
    view.blocks = blocks;
    for (const char mode : modes) {
      view.sections.push_back(kCuts.at(mode));
      extents[mode] = begin_of(mode, std::ssize(kCuts.at(mode)));
    }
    whole = reference::tensor_of(modes, extents);
    const auto drawn = draw<T>(modes, extents, seed);
    std::vector<T> memory;
    for (const auto& index : indices_of(modes, blocks)) {
      whole.at(index) = drawn.at(index);
      memory.push_back(stored_of<T>(drawn.at(index)));
    }
    EXPECT_EQ(std::ssize(memory), tensor::block_elements(view.sections, blocks));
    view.buffer = put(memory);
  }
  [[nodiscard]] auto operator()() const { return view(modes); }
  /// That each stored element is that of `expected`.
  void expect(const reference::Tensor& expected) const {
    const auto memory = device().download(view.buffer);
    const auto indices = indices_of(modes, view.blocks);
    for (std::size_t i = 0; i < indices.size(); ++i)
      EXPECT_EQ(wide_of(memory[i]), expected.at(indices[i])) << i;
  }
};

/// A product of tensors of blocks. `rare`: cuTENSOR need not have it.
struct BlockCase {
  std::string a, b, d;
  BlockPlaces blocks_a, blocks_b, blocks_d;
  bool rare = false;
};
const BlockCase kBlockCases[] = {
    {"mk",
     "kn",
     "mn",
     {{0, 0}, {1, 2}, {1, 0}},
     {{0, 1}, {2, 0}, {1, 1}},
     {{1, 0}, {0, 1}, {0, 0}}},
    {"km",
     "nk",
     "nm",
     {{2, 1}, {0, 0}, {2, 0}},
     {{1, 2}, {0, 0}},
     {{0, 0}, {1, 1}, {1, 0}, {0, 1}}},
    {"mbk",
     "ckn",
     "nmcb",
     {{0, 1, 0}, {1, 0, 2}, {1, 1, 1}},
     {{0, 0, 1}, {0, 2, 0}},
     {{0, 1, 0, 0}, {1, 0, 0, 1}, {0, 0, 0, 0}}},
    {"kc", "ck", "", {{0, 0}, {2, 0}}, {{0, 2}, {0, 1}}, {{}}, true},
    {"bmk",
     "bkn",
     "bmn",
     {{0, 0, 0}, {1, 1, 2}},
     {{0, 0, 1}, {1, 2, 0}},
     {{1, 1, 0}, {0, 0, 1}},
     true},
};

template <class T>
class TensorBlocks : public Typed<T> {
 protected:
  void SetUp() override { skip_unless_tensors(); }
};
TYPED_TEST_SUITE(TensorBlocks, NumberTypes);

TYPED_TEST(TensorBlocks, OfSmallIntegersAreExact) {
  using T = TypeParam;
  auto on_device = tensor::on(device());
  for (const auto& [a, b, d, blocks_a, blocks_b, blocks_d, rare] : kBlockCases) {
    SCOPED_TRACE(a + "," + b + "->" + d);
    const Stored<T> x(a, blocks_a, 1), y(b, blocks_b, 2), z(d, blocks_d, 3);
    const auto product = reference::sum_of_products(d, {x.whole, y.whole});
    const Result<void> first = on_device.contract_block_sparse(T(2), x(), y(), T(-3), z()).wait();
    if (!first.ok()) {
      EXPECT_TRUE(rare && first.code() == Errc::unsupported) << first.error().message;
      (void)device().take_error();
      continue;
    }
    z.expect(sum(2, product, -3, z.whole));
    on_device.contract_block_sparse(x(), y(), z());
    z.expect(product);
  }
  EXPECT_EQ(not_working(device()), "");
}

TYPED_TEST(TensorBlocks, ReadNothingThatIsNotAdded) {
  using T = TypeParam;
  const auto& [a, b, d, blocks_a, blocks_b, blocks_d, rare] = kBlockCases[0];
  const Stored<T> x(a, blocks_a, 1), y(b, blocks_b, 2), z(d, blocks_d, 3);
  const auto nan = stored_of<T>(std::numeric_limits<double>::quiet_NaN());
  device().upload(std::vector<T>(static_cast<std::size_t>(z.view.buffer.length()), nan),
                  z.view.buffer);
  tensor::on(device()).contract_block_sparse(x(), y(), z());
  z.expect(reference::sum_of_products(d, {x.whole, y.whole}));
}

class TensorBlockRefusals : public BadArguments {
 protected:
  void SetUp() override { skip_unless_tensors(); }
  BlockView<double> a{ref, {{1, 2}, {3}}, {{0, 0}, {1, 0}}}, b{ref, {{3}, {2, 2}}, {{0, 1}}},
      d{put(std::vector<double>(16)), {{1, 2}, {2, 2}}, {{0, 1}, {1, 0}}};
};

TEST_F(TensorBlockRefusals, OfCalls) {
  const auto refused = [&](const std::string& why, const auto& left, const auto& right,
                           const auto& result) {
    const auto future = tensor::on(device()).contract_block_sparse(left, right, result);
    ASSERT_TRUE(future.ready()) << why;
    ASSERT_EQ(future.wait().code(), Errc::invalid) << why;
    const auto message = future.wait().error().message;
    EXPECT_TRUE(message.starts_with("tensor.contract_block_sparse: ")) << message;
    EXPECT_NE(message.find(why), std::string::npos) << message;
    (void)device().take_error();
  };
  const auto with = [](BlockView<double> view, const Sections& sections,
                       const BlockPlaces& blocks) {
    view.sections = sections, view.blocks = blocks;
    return view;
  };
  refused("a has 2 dimensions and 1 modes", a("m"), b("kn"), d("mn"));
  refused("other sections", a("mk"), b("nk"), d("mn"));
  refused("a tensor has a mode twice", a("mk"), b("kn"), with(d, {{1, 2}, {1, 2}}, {{0, 0}})("mm"));
  refused("a mode of d is in neither", a("mk"), b("kn"),
          with(d, {{1}, {1, 2}, {2, 2}}, {{0, 0, 1}})("xmn"));
  refused("not in both", a("mk"), with(b, {{2, 2}}, {{0}})("n"), d("mn"));
  const auto bad = with(a, {{1, 2}, {3}}, {{0, 0}, {0, 0}});
  refused("a block stands twice", bad("mk"), b("kn"), d("mn"));
  const auto outside = with(a, {{1, 2}, {3}}, {{0, 1}});
  refused("outside of its sections", outside("mk"), b("kn"), d("mn"));
  const auto negative = with(a, {{1, 2}, {3}}, {{-1, 0}});
  refused("outside of its sections", negative("mk"), b("kn"), d("mn"));
  const auto ragged = with(a, {{1, 2}, {3}}, {{0}});
  refused("a block with 1 places, not 2", ragged("mk"), b("kn"), d("mn"));
  const auto empty = with(a, {{1, 2}, {3}}, {});
  refused("too many blocks or none", empty("mk"), b("kn"), d("mn"));
  auto small = d;
  small.buffer = d.buffer.slice(0, 4);
  refused("d needs 6 elements, has 4", a("mk"), b("kn"), small("mn"));
  refused("overlap", a("mk"), b("kn"), with(a, {{1, 2}, {2, 2}}, {{0, 1}})("mn"));
}

/// What no call makes, but a record may hold.
TEST_F(TensorBlockRefusals, OfRecords) {
  const auto good = *tensor::contraction(a("mk"), b("kn"), d("mn"));
  const auto refused = [&](auto change, Errc code = Errc::invalid) {
    auto product = good;
    change(product.op, product.data);
    Parts parts;
    parts.data = product.data;
    const auto future = detail::submit(device().submitter(), product.op, parts);
    ASSERT_TRUE(future.ready());
    EXPECT_EQ(future.wait().code(), code) << future.wait().error().message;
    (void)device().take_error();
  };
  refused([](auto& op, auto&) { op.dtype = DType::f16; }, Errc::unsupported);
  refused([](auto& op, auto&) { op.modes = 17; });
  refused([](auto& op, auto&) { op.modes = -1; });
  refused([](auto& op, auto&) { op.sections[0] = 5000; });
  refused([](auto& op, auto&) { op.sections[9] = 1; });
  refused([](auto& op, auto&) { op.blocks[0] = 3; });
  refused([](auto& op, auto&) { op.blocks[1] = -1; });
  refused([](auto& op, auto&) { op.elements[2] = 5; });
  refused([](auto& op, auto&) { op.ranks[2] = 9; });
  refused([](auto& op, auto&) { op.its_modes[0][1] = 7; });
  refused([](auto& op, auto&) { op.its_modes[0][9] = 1; });
  refused([](auto&, auto& data) { data.resize(data.size() - 8); });
  refused([](auto&, auto& data) { data[0] = std::byte{0}; });     // an extent
  refused([](auto&, auto& data) { data[7] = std::byte{0x80}; });  // a negative one
  refused([](auto& op, auto&) { op.alpha.device = op.a; });
}

}  // namespace
}  // namespace troupe::test
