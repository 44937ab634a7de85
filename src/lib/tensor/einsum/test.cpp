#include "tensor_values.hpp"

// Sums of products in Einstein's notation, and calls that are refused.

namespace troupe::test {
namespace {

using tensor::Binary;
using tensor::Compute;
using tensor::Unary;
using tensor::View;

const PerLetter kLetters{{'a', 2}, {'b', 3}, {'c', 4}, {'d', 2}, {'i', 3}, {'j', 3},
                         {'k', 4}, {'l', 2}, {'m', 5}, {'n', 4}, {'x', 1}, {'y', 1}};

template <class T>
class TensorEinsum : public Typed<T> {
 protected:
  void SetUp() override { skip_unless_tensors(); }

  /// That the expression gives what the sum over all of its letters does. `output`: what an
  /// expression without an arrow means.
  static void check(const std::string& operands, const std::string& output, bool arrow = true) {
    check_as(arrow ? operands + "->" + output : operands, operands, output);
  }
  /// The same of another expression that means this one for such operands.
  static void check_as(const std::string& subscripts, const std::string& operands,
                       const std::string& output) {
    SCOPED_TRACE(subscripts + " of " + operands);
    std::vector<reference::Tensor> tensors;
    std::vector<Placed<T>> placed;
    std::string letters;
    for (const char c : operands + ",") {
      if (c != ',') {
        letters += c == ' ' ? "" : std::string{c};
        continue;
      }
      tensors.push_back(draw<T>(letters, kLetters, tensors.size() + 1));
      placed.push_back(in_memory(tensors.back()));
      letters.clear();
    }
    const auto to = place<T>(reference::tensor_of(output, kLetters));
    const auto scratch = device().alloc<T>(1024);
    auto einsum = tensor::on(device());
    const auto& p = placed;
    if (p.size() == 1)
      einsum.einsum(subscripts, {p[0].view}, to.view);
    else if (p.size() == 2)
      einsum.einsum(subscripts, {p[0].view, p[1].view}, to.view, scratch);
    else
      einsum.einsum(subscripts, {p[0].view, p[1].view, p[2].view}, to.view, scratch);
    EXPECT_TRUE(holds(to, reference::sum_of_products(output, tensors)));
    EXPECT_EQ(not_working(device()), "");
  }

 private:
  /// Row-major, whatever its letters are; the reference has one place for letters that stand twice.
  static Placed<T> in_memory(const reference::Tensor& x) {
    std::vector<T> values;
    for (const auto& value : x.values) values.push_back(stored_of<T>(value));
    return {x, {}, {put(values), tensor::Numbers(std::span(x.extents))}};
  }
};
using EinsumTypes = ::testing::Types<float, std::complex<double>, BFloat16>;
TYPED_TEST_SUITE(TensorEinsum, EinsumTypes);

TYPED_TEST(TensorEinsum, OfOneOperand) {
  for (const auto& [operand, output] : {std::pair<std::string, std::string>{"ij", "ji"},
                                        {"ij", "ij"},
                                        {"ij", "i"},
                                        {"ij", "j"},
                                        {"ij", ""},
                                        {"ii", "i"},
                                        {"ii", ""},
                                        {"iji", "j"},
                                        {"iji", "ij"},
                                        {"abcd", "db"},
                                        {"iijj", "ij"},
                                        {"i", "i"}}) {
    this->check(operand, output);
  }
}

TYPED_TEST(TensorEinsum, OfTwoOperands) {
  for (const auto& [operands, output] : {std::pair<std::string, std::string>{"mk,kn", "mn"},
                                         {"mk,nk", "nm"},
                                         {"i,i", ""},
                                         {"i,j", "ij"},
                                         {"i,i", "i"},
                                         {"ij,ij", "ij"},
                                         {"ij,ji", "ij"},
                                         {"ij,ij", ""},
                                         {"amk,akn", "amn"},
                                         {"abcd,cdn", "abn"},
                                         {"ijk,k", "ij"},
                                         {"ii,ik", "k"},
                                         {"ii,ik", "ik"},
                                         {"mk,mk", "m"},
                                         {"m k , k n", "mn"}}) {
    this->check(operands, output);
  }
}

TYPED_TEST(TensorEinsum, SumsFirstWhatOneOperandAloneHas) {
  for (const auto& [operands, output] : {std::pair<std::string, std::string>{"ij,k", "ik"},
                                         {"ij,kl", ""},
                                         {"mk,knl", "mn"},
                                         {"iic,i", "i"},
                                         {"abc,cdl,dmn", "abm"}}) {
    this->check(operands, output);
  }
}

/// NumPy's tests of it among them
/// (https://github.com/numpy/numpy/blob/main/numpy/_core/tests/test_einsum.py).
TYPED_TEST(TensorEinsum, WithAnEllipsis) {
  struct Case {
    std::string subscripts, operands, output;
  };
  for (const auto& [subscripts, operands, output] :
       {Case{"...mk,...kn->...mn", "amk,akn", "amn"},
        {"...mk,kn->...mn", "abmk,kn", "abmn"},
        {"...mk,...kn", "mk,kn", "mn"},
        {"i...->...", "ijk", "jk"},
        {"...i->...", "jki", "jk"},
        {"...ii->...i", "kii", "ki"},
        {"...ii", "kii", "k"},
        {"...->...", "abc", "abc"},
        {"i...j->j...i", "iabj", "jabi"},
        {"j...i", "jki", "kij"},
        {"..., ...", "ab,", "ab"},
        {"...,...", "ab,b", "ab"},
        {"i,...", "i,", "i"},
        {"ij...,j...->ij...", "ijk,j", "ijk"},
        {"ij...,...j->ij...", "ijk,j", "ijk"},
        {"ij...,j->ij...", "ijk,j", "ijk"},
        {"ik...,k...->i...", "ik,kl", "il"},
        {"ik...,...kj->i...j", "ik,kj", "ij"},
        {"...k,kj", "ik,kj", "ij"},
        {"ik,k...->i...", "ik,kj", "ij"},
        {"...kl,k", "ijkl,k", "ijl"},
        {"...kl,k...", "ijkl,k", "ijl"},
        {"...lmn,...lmno->...o", "lmn,lmnc", "c"},
        {"...lmn,lmno->...o", "lmn,lmnc", "c"},
        {"i...,...j,...->...ij", "ia,bcaj,ca", "bcaij"}}) {
    this->check_as(subscripts, operands, output);
  }
}

/// x and y have one element, and stand where others have a letter of more.
TYPED_TEST(TensorEinsum, RepeatsWhatHasOneElement) {
  struct Case {
    std::string subscripts, operands, output;
  };
  for (const auto& [subscripts, operands, output] :
       {Case{"...mk,...kn->...mn", "xmk,akn", "amn"}, Case{"...,...", "ax,yb", "ab"},
        Case{"ij,ij->j", "ij,xj", "j"}, Case{"ij,jk->ik", "ix,jk", "ik"},
        Case{"...i,...i->...", "xbi,abi", "ab"}, Case{"...,...,...->...", "ab,xb,ay", "ab"},
        Case{"...->...", "xa", "xa"}}) {
    this->check_as(subscripts, operands, output);
  }
}

TYPED_TEST(TensorEinsum, OfThreeOperands) {
  for (const auto& [operands, output] : {std::pair<std::string, std::string>{"ab,bc,cd", "ad"},
                                         {"ab,bc,cd", "da"},
                                         {"ia,jb,ab", "ij"},
                                         {"i,ij,j", ""},
                                         {"ai,ai,ak", "ik"}}) {
    this->check(operands, output);
  }
}

/// The letters that stand once, in alphabetical order.
TYPED_TEST(TensorEinsum, WithoutAnArrow) {
  for (const auto& [operands, output] : {std::pair<std::string, std::string>{"ij,jk", "ik"},
                                         {"ba", "ab"},
                                         {"ii", ""},
                                         {"nk,km", "mn"},
                                         {"i,i", ""},
                                         {"ij,ij", ""},
                                         {"b,a", "ab"},
                                         {"ab,bc,ck", "ak"}}) {
    this->check(operands, output, false);
  }
}

/// Each refusal says what is wrong, and nothing is launched.
class TensorRefusals : public BadArguments {
 protected:
  template <class F>
  void refused(const std::string& why, const F& call) {
    const Future<void> future = call(tensor::on(device()));
    ASSERT_TRUE(future.ready()) << why;
    ASSERT_EQ(future.wait().code(), Errc::invalid) << why;
    EXPECT_NE(future.wait().error().message.find(why), std::string::npos)
        << future.wait().error().message;
    (void)device().take_error();
  }
  View<double> view(const tensor::Numbers& extents, const tensor::Numbers& strides = {}) {
    return {x_, extents, strides};
  }
  const GpuRef<double> x_ = ref;
  const GpuRef<double> y_ = put(std::vector<double>(16));
  const View<double> a = view({2, 3}), b = view({3, 4}), d{y_, {2, 4}};
};

TEST_F(TensorRefusals, OfModes) {
  refused("mode 'k' has extents 3 and 4",
          [&](auto on) { return on.contract(a("mk"), b("nk"), d("mn")); });
  refused("a has 2 extents and 3 modes",
          [&](auto on) { return on.contract(a("mkl"), b("kn"), d("mn")); });
  refused("a mode of d is in neither a nor b",
          [&](auto on) { return on.contract(a("mk"), view({3})("k"), d("mn")); });
  refused("a mode that d does not have is not in both a and b", [&](auto on) {
    return on.contract(a("mk"), view({2, 4})("mn"), d("mn"));
  });
  refused("d has mode 'm' twice", [&](auto on) {
    return on.contract(a("mk"), a("mk"), View<double>(y_, {2, 2})("mm"));
  });
  refused("c does not lie as the result does", [&](auto on) {
    return on.template contract<double>(1.0, a("mk"), b("kn"), 1.0, view({4, 2})("nm"), d("mn"));
  });
  refused("more than 16 dimensions", [&](auto on) {
    return on.permute(
        view({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1})("abcdefghijklmnopq"), d("ab"));
  });
  refused("more than 16 modes", [&](auto on) {
    const View<double> twos(y_, {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2});
    return on.permute(twos("abcdefghijklmnop"), View<double>(y_, {2})("q"));
  });
  refused("a mode is not in a", [&](auto on) { return on.reduce(Binary::add, a("mk"), d("mn")); });
  refused("a mode is not in b",
          [&](auto on) { return on.permute(a("mk"), View<double>(y_, {3})("k")); });
  refused("a mode is not in d", [&](auto on) {
    return on.template elementwise<double>(Binary::add, 1.0, a("mk"), 1.0, d("mn"), d("mn"));
  });
  refused("a mode of e is in none of a, b and c",
          [&](auto on) { return on.contract_trinary(a("mk"), a("mk"), a("mk"), d("mn")); });
  refused("a mode that e does not have is not in two of a, b and c", [&](auto on) {
    return on.contract_trinary(a("mk"), view({2})("m"), view({4})("n"), d("mn"));
  });
}

TEST_F(TensorRefusals, OfLayouts) {
  refused("d: elements of it lie in one place", [&](auto on) {
    return on.contract(a("mk"), b("kn"), View<double>(y_, {2, 4}, {3, 1})("mn"));
  });
  refused("a negative extent", [&](auto on) {
    return on.permute(view({-1, 3})("mk"), view({-1, 3})("mk"));
  });
  refused("a stride that is not positive", [&](auto on) {
    return on.permute(view({2, 3}, {0, 1})("mk"), d("mk"));
  });
  refused("not as many strides as extents", [&](auto on) {
    return on.permute(view({2, 3}, {1})("mk"), d("mk"));
  });
  refused("a needs 24 elements, has 16", [&](auto on) {
    return on.permute(view({6, 4})("mn"), View<double>(y_, {6, 4})("mn"));
  });
  refused("is too large", [&](auto on) {
    const tensor::Numbers huge{std::int64_t{1} << 40, std::int64_t{1} << 40};
    return on.permute(view(huge)("mn"), View<double>(y_, huge)("mn"));
  });
  refused("overlap", [&](auto on) { return on.permute(a("mk"), a("mk")); });
}

TEST_F(TensorRefusals, OfOperations) {
  const auto element = put(std::vector<double>{1});
  refused("alpha is an element of device memory", [&](auto on) {
    return on.template contract<double>(element, a("mk"), b("kn"), 0.0, d("mn"));
  });
  refused("beta is an element of device memory", [&](auto on) {
    return on.template contract<double>(1.0, a("mk"), b("kn"), element, d("mn"));
  });
  refused("products of f64 are not computed so", [&](auto on) {
    return on.contract(a("mk"), b("kn"), d("mn"), {.compute = Compute::tf32});
  });
  refused("its unary operators are identity and conj",
          [&](auto on) { return on.contract(a("mk", Unary::sqrt), b("kn"), d("mn")); });
  const auto z = put(std::vector<std::complex<float>>(8)),
             w = put(std::vector<std::complex<float>>(8));
  const View<std::complex<float>> from(z, {2, 4}), to(w, {2, 4}), sums(w, {2});
  refused("complex numbers have identity and conj alone",
          [&](auto on) { return on.permute(from("mn", Unary::sqrt), to("mn")); });
  refused("complex numbers are neither large nor small",
          [&](auto on) { return on.reduce(Binary::max, from("mn"), sums("m")); });
}

/// What no call makes, but a record may hold.
TEST_F(TensorRefusals, OfRecords) {
  const auto good = *tensor::contraction(a("mk"), b("kn"), d("mn"), d("mn"));
  const auto with = [&](const auto& change) {
    auto op = good;
    change(op);
    return op;
  };
  expect_refused(with([](auto& op) { op.loops.count = 17; }));
  expect_refused(with([](auto& op) { op.loops.count = -1; }));
  expect_refused(with([](auto& op) { op.loops.extents[0] = -1; }));
  expect_refused(with([](auto& op) { op.loops.extents[5] = 1; }));
  expect_refused(with([](auto& op) { op.loops.strides[1][0] = -1; }));
  expect_refused(with([](auto& op) { op.loops.strides[1][9] = 1; }));
  expect_refused(with([](auto& op) { op.compute = static_cast<Compute>(9); }));
  expect_refused(with([](auto& op) { op.unary_b = static_cast<Unary>(99); }));
  expect_refused(with([](auto& op) { op.real = tensor::RealFactor::a; }));  // of f64
  expect_refused(with([](auto& op) { op.real = static_cast<tensor::RealFactor>(3); }));
  expect_refused(with([&](auto& op) { op.a = absent; }));
  expect_refused(with([&](auto& op) { op.d = absent; }));
  expect_refused(with([](auto& op) { op.beta = Scalar::of(1.0), op.c = {}; }));
  expect_refused(with([](auto& op) { op.a.offset += 4, op.a.bytes -= 8; }));
  expect_refused(with([](auto& op) { op.dtype = DType::i32; }), Errc::unsupported);
  expect_refused(with([](auto& op) { op.dtype = static_cast<DType>(77); }), Errc::unsupported);
  auto permute = *tensor::permutation(a("mk"), View<double>(y_, {2, 3})("mk"));
  permute.b_dtype = DType::f16;
  expect_refused(permute);
  auto sum =
      *tensor::elementwise(a("mk"), View<double>(y_, {2, 3})("mk"), View<double>(y_, {2, 3})("mk"));
  sum.d_dtype = DType::f16;
  expect_refused(sum);
  while (!device().take_error().ok()) {
  }
}

TEST_F(TensorRefusals, OfEinsum) {
  const auto refuse = [&](const std::string& why, const std::string& subscripts,
                          std::initializer_list<View<double>> operands, const View<double>& to) {
    refused(why, [&](auto on) { return on.einsum(subscripts, operands, to); });
  };
  refuse("the output has none", "...k,kn->n", {a, b}, d);
  refuse("an ellipsis is three dots", "..k,kn->n", {a, b}, d);
  refuse("an ellipsis is three dots", "...m...,kn->mn", {a, b}, d);
  refuse("an ellipsis is three dots", "....m,kn->mn", {a, b}, d);
  refuse("'mnk...' has more letters than its operand dimensions", "mnk...,kn->mn...", {a, b}, d);
  refuse("mode 2 has extents 2 and 3", "...,...->...", {a, b}, d);
  refuse("'1' is no letter", "m1,kn->mn", {a, b}, d);
  refuse("'>' is no letter", "mk,kn>mn", {a, b}, d);
  refuse("no operand has the output's 'x'", "mk,kn->mx", {a, b}, d);
  refuse("the output has 'm' twice", "mk,kn->mm", {a, b}, d);
  refuse("has 2 operands, the call 1", "mk,kn->mn", {a}, d);
  refuse("more than three operands", "m,m,m,m->m", {a, a, a, a}, d);
  refuse("mode 'k' has extents 3 and 2", "mk,kn->mn", {a, a}, d);
  refuse("mode 'm' has extents 2 and 3", "mm->m", {a}, d);
  refuse("d has 1 extents and 2 modes", "mk,kn->mn", {a, b}, View<double>(y_, {2}));
  refuse("'kn' is summed to 'k' first, which needs 3 elements of scratch memory", "mk,kn->m",
         {a, b}, View<double>(y_, {2}));
}

}  // namespace
}  // namespace troupe::test
