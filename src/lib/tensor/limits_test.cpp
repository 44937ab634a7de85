#include <cmath>
#include <limits>

#include "tensor_values.hpp"

// Numbers that are not finite, and modes without elements, as docs/libraries.md has them.

namespace troupe::test {
namespace {

using tensor::Binary;
using tensor::Unary;
using tensor::View;

template <class T>
class TensorLimits : public Typed<T> {
 protected:
  void SetUp() override { skip_unless_tensors(); }
};
TYPED_TEST_SUITE(TensorLimits, Reals);

template <class T>
constexpr T kInf = std::numeric_limits<T>::infinity();
template <class T>
constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();

/// NaN equals NaN.
template <class T>
void expect_equal(const GpuRef<T>& ref, const std::vector<T>& expected, const std::string& what) {
  const auto actual = device().download(ref);
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const bool same =
        actual[i] == expected[i] || (std::isnan(actual[i]) && std::isnan(expected[i]));
    EXPECT_TRUE(same) << what << " at " << i << " is " << actual[i] << ", not " << expected[i];
  }
}

TYPED_TEST(TensorLimits, NaNIsTheLargestAndTheSmallest) {
  using T = TypeParam;
  if (device().info().engine != "cpu") GTEST_SKIP() << "cuTENSOR may leave it out";
  const T nan = kNaN<T>;
  const auto x = put(std::vector<T>{1, nan, 2, nan, nan, nan, nan, 1, 2, 1, 2, nan});
  const auto y = put(std::vector<T>{nan, 1, nan, 4}), z = put(std::vector<T>{1, nan, nan, 3}),
             to = device().template alloc<T>(4);
  for (const auto which : {Binary::max, Binary::min}) {
    const View of_x(x, {4, 3}), rows(to, {4}), a(y, {4}), b(z, {4});
    tensor::on(device()).reduce(which, of_x("ij"), rows("i"));
    expect_equal(to, {nan, nan, nan, nan}, "rows");
    tensor::on(device()).template elementwise<T>(which, 1, a("i"), 1, b("i"), rows("i"));
    expect_equal(to, {nan, nan, nan, T(which == Binary::max ? 4 : 3)}, "elements");
  }
}

TYPED_TEST(TensorLimits, FunctionsHaveTheirs) {
  using T = TypeParam;
  if (device().info().engine != "cpu") GTEST_SKIP() << "cuTENSOR has formulas of its own";
  const T inf = kInf<T>, nan = kNaN<T>, most = std::numeric_limits<T>::max();
  const auto x = put(std::vector<T>{-inf, -most, most, inf, nan});
  const auto y = device().template alloc<T>(5);
  const View from(x, {5}), to(y, {5});
  const auto check = [&](Unary f, const std::vector<T>& expected) {
    tensor::on(device()).permute(from("i", f), to("i"));
    expect_equal(y, expected, "function " + std::to_string(static_cast<int>(f)));
  };
  check(Unary::relu, {0, 0, most, inf, nan});
  check(Unary::swish, {0, 0, most, inf, nan});
  check(Unary::mish, {0, 0, most, inf, nan});
  check(Unary::soft_sign, {-1, -1, 1, 1, nan});
  check(Unary::soft_plus, {0, 0, most, inf, nan});
  check(Unary::sigmoid, {0, 0, 1, 1, nan});
  check(Unary::tanh, {-1, -1, 1, 1, nan});
  check(Unary::rcp, {-T(0), -1 / most, 1 / most, 0, nan});
}

TYPED_TEST(TensorLimits, SumsOfNoElements) {
  using T = TypeParam;
  const auto none = device().template alloc<T>(0);
  const auto sevens = [](std::int64_t n) {
    return put(std::vector<T>(static_cast<std::size_t>(n), 7));
  };
  const View a(none, {2, 0}), b(none, {0, 3});
  auto on = tensor::on(device());
  const auto y = sevens(6);
  const View d(y, {2, 3});
  on.contract(a("mk"), b("kn"), d("mn"));
  expect_equal(y, std::vector<T>(6, 0), "a product");
  const auto z = sevens(6);
  const View e(z, {2, 3});
  on.template contract<T>(2, a("mk"), b("kn"), 3, e("mn"));
  expect_equal(z, std::vector<T>(6, 21), "a product beside 3 d");
  const auto with_gaps = sevens(8);
  const View f(with_gaps, {2, 3}, {4, 1});
  on.contract(a("mk"), b("kn"), f("mn"));
  expect_equal(with_gaps, {0, 0, 0, 7, 0, 0, 0, 7}, "a product with gaps");
  const auto w = sevens(4);
  const View c(none, {0, 0}), g(w, {2, 2}), ten(none, {2, 0, 0});
  on.contract_trinary(a("mk"), c("kl"), View<T>(none, {0, 2})("ln"), g("mn"));
  expect_equal(w, std::vector<T>(4, 0), "a product of three");

  const auto rows = sevens(2), one = sevens(1);
  const View of_rows(rows, {2}), number(one, {});
  on.reduce(Binary::add, a("mk"), of_rows("m"));
  expect_equal(rows, {0, 0}, "sums");
  on.reduce(Binary::mul, a("mk"), of_rows("m"));
  expect_equal(rows, {1, 1}, "products");
  on.template reduce<T>(Binary::mul, 2, a("mk"), 5, of_rows("m"), of_rows("m"));
  expect_equal(rows, {7, 7}, "products beside 5 d");
  on.reduce(Binary::add, ten("mkl"), number(""));
  expect_equal(one, {0}, "a sum");
  for (const auto which : {Binary::max, Binary::min}) {
    const auto refused = on.reduce(which, a("mk"), of_rows("m")).wait();
    EXPECT_EQ(refused.code(), Errc::invalid);
    EXPECT_NE(refused.error().message.find("no elements have a largest or a smallest one"),
              std::string::npos);
    // There is no result that would have none.
    EXPECT_TRUE(on.reduce(which, c("kl"), View<T>(none, {0})("k")).wait().ok());
  }
  expect_equal(rows, {7, 7}, "what was refused");
  (void)device().take_error();
  while (!device().take_error().ok()) {
  }
}

TYPED_TEST(TensorLimits, TensorsWithoutElements) {
  using T = TypeParam;
  const auto none = device().template alloc<T>(0), three = put(std::vector<T>{1, 2, 3});
  // Strides do not matter where there is nothing.
  const View a(none, {0, 3}), b(none, {3, 0}), c(three, {3}), odd(none, {0, 3}, {0, -5});
  auto on = tensor::on(device());
  on.permute(a("mk"), b("km"));
  on.permute(odd("mk"), b("km"));
  on.permute(c("k"), a("mk"));
  on.contract(a("mk"), c("k"), View<T>(none, {0})("m"));
  on.template elementwise<T>(Binary::add, 1, c("k"), 1, a("mk"), a("mk"));
  on.template elementwise<T>(Binary::add, Binary::mul, 1, c("k"), 1, a("mk"), 1, a("mk"), a("mk"));
  on.reduce(Binary::add, View<T>(none, {0, 3, 2})("mkl"), a("mk"));
  (void)on.tune_contract(a("mk"), c("k"), View<T>(none, {0})("m")).get();
  EXPECT_EQ(not_working(device()), "");
  expect_equal(three, {1, 2, 3}, "what was read");
  EXPECT_EQ(on.permute(View<T>(none, {-1})("m"), b("km")).wait().code(), Errc::invalid);
  EXPECT_EQ(on.permute(View<T>(none, {2, 2})("mk"), View<T>(three, {2, 2})("mk")).wait().code(),
            Errc::invalid);
  while (!device().take_error().ok()) {
  }
}

TYPED_TEST(TensorLimits, EinsumOfNoElements) {
  using T = TypeParam;
  const auto none = device().template alloc<T>(0), two = put(std::vector<T>{1, 2});
  const View a(none, {2, 0}), b(none, {0, 2}), v(none, {0}), w(two, {2}), one(two, {1});
  const auto four = put(std::vector<T>(4, 7)), number = put(std::vector<T>{7}), scratch = number;
  const View matrix(four, {2, 2}), scalar(number, {});
  auto on = tensor::on(device());
  on.einsum("ij,jk->ik", {a, b}, matrix);
  expect_equal(four, std::vector<T>(4, 0), "ij,jk->ik");
  const auto check = [&](const char* expression, std::initializer_list<View<T>> operands) {
    device().fill(number, T(7));
    on.einsum(expression, operands, scalar, put(std::vector<T>(256, 7)));
    expect_equal(number, {0}, expression);
  };
  check("i,i->", {v, v});
  check("i,i->", {v, one});
  check("i->", {v});
  check("ij->", {a});
  check("ij,k->", {a, w});
  check("i,j->", {w, v});
  check("ij,jk,kl->", {a, View<T>(none, {0, 0}), b});
  // The sum has no elements, so none of what it would multiply counts.
  const View spoilt(put(std::vector<T>{kNaN<T>, 2}), {2});
  check("i,j->", {spoilt, v});
  check("i,ij->", {spoilt, a});
  check("i,jk,k->", {spoilt, a, v});
  on.einsum("ij,k->j", {a, w}, v, put(std::vector<T>(256, 7)));
  on.einsum("ij->j", {a}, v);
  on.einsum("ij->ji", {a}, b);
  on.einsum("...j,j->...", {b, w}, v);
  EXPECT_EQ(not_working(device()), "");
}

}  // namespace
}  // namespace troupe::test
