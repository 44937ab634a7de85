// Sparse vectors.
#include <numeric>

#include "random_csr.hpp"

namespace troupe::test::reference {
namespace {

template <class Pair>
class SparseVectorOps : public ::testing::Test {};
TYPED_TEST_SUITE(SparseVectorOps, NumbersAndIndices);

/// Distinct places, in any order.
template <class I>
std::vector<I> random_places(std::int64_t count, std::int64_t length, std::uint64_t seed) {
  std::vector<I> places(static_cast<std::size_t>(length));
  std::iota(places.begin(), places.end(), I{0});
  std::shuffle(places.begin(), places.end(), std::mt19937_64(seed));
  places.resize(static_cast<std::size_t>(count));
  return places;
}

/// A sparse vector and a dense one, on the device and beside it.
template <class T, class I>
struct VectorPair {
  std::vector<I> place;
  std::vector<Wide> x, y;
  GpuRef<I> index;
  GpuRef<T> device_x, device_y;

  VectorPair(std::int64_t count, std::int64_t length, Data data)
      : place(random_places<I>(count, length, 101)),
        x(numbers<T>(count, 102, data)),
        y(numbers<T>(length, 103, data)),
        index(put(place)),
        device_x(put_numbers<T>(x)),
        device_y(put_numbers<T>(y)) {}
  [[nodiscard]] std::size_t at(std::size_t i) const { return static_cast<std::size_t>(place[i]); }
};

template <class T, class I, class Visit>
void for_vector_pairs(Visit&& visit) {
  for (const auto data : kData) {
    for (const auto& [count, length] : {std::pair<std::int64_t, std::int64_t>{1, 1},
                                        {0, 0},
                                        {0, 5},
                                        {3, 7},
                                        {300, 300},
                                        {257, 5000},
                                        {70'000, 100'000}}) {
      SCOPED_TRACE(::testing::Message() << count << " of " << length);
      visit(VectorPair<T, I>(count, length, data), data);
    }
  }
}

TYPED_TEST(SparseVectorOps, ScatterAndGather) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  for_vector_pairs<T, I>([](const VectorPair<T, I>& pair, Data) {
    device().sparse().scatter(pair.device_x, pair.index, pair.device_y);
    auto expected = pair.y;
    for (std::size_t i = 0; i < pair.x.size(); ++i) expected[pair.at(i)] = pair.x[i];
    EXPECT_EQ(got(pair.device_y), expected);
    const auto back = device().template alloc<T>(std::ssize(pair.x));
    device().sparse().gather(pair.device_y, pair.index, back);
    EXPECT_EQ(got(back), pair.x);
  });
}

TYPED_TEST(SparseVectorOps, Axpby) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const T alpha = number<T>(2, -1), beta = number<T>(-1, 1);
  for_vector_pairs<T, I>([&](const VectorPair<T, I>& pair, Data data) {
    for (const auto alpha_at : kPlaces) {
      for (const auto beta_at : kPlaces) {
        const auto y = put_numbers<T>(pair.y);
        device().sparse().axpby(scalar(alpha, alpha_at), pair.device_x, pair.index,
                                scalar(beta, beta_at), y);
        auto expected = pair.y;
        for (auto& element : expected) element *= widen(beta);
        for (std::size_t i = 0; i < pair.x.size(); ++i)
          expected[pair.at(i)] += widen(alpha) * pair.x[i];
        EXPECT_TRUE(agree(device().download(y), expected, data, 2));
      }
    }
  });
}

TYPED_TEST(SparseVectorOps, AxpbyOverNaN) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const auto x = put(std::vector<T>{T(2), T(3)});
  const auto index = put(std::vector<I>{3, 1});
  for (const auto beta_at : kPlaces) {
    const auto y = put(std::vector<T>(5, T(std::numeric_limits<RealOf<T>>::quiet_NaN())));
    device().sparse().axpby(T(2), x, index, scalar(T(0), beta_at), y);
    EXPECT_EQ(device().download(y), (std::vector<T>{T(0), T(6), T(0), T(4), T(0)}));
  }
}

TYPED_TEST(SparseVectorOps, Rotations) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  using R = RealOf<T>;
  const R c = R(3);
  const T s = number<T>(2, -1);
  for_vector_pairs<T, I>([&](const VectorPair<T, I>& pair, Data data) {
    for (const auto c_at : kPlaces) {
      for (const auto s_at : kPlaces) {
        const auto x = put_numbers<T>(pair.x), y = put_numbers<T>(pair.y);
        device().sparse().rot(x, pair.index, y, scalar(c, c_at), scalar(s, s_at));
        auto rotated_x = pair.x, rotated_y = pair.y;
        for (std::size_t i = 0; i < pair.x.size(); ++i) {
          auto& element = rotated_y[pair.at(i)];
          rotated_x[i] = double{c} * pair.x[i] + widen(s) * element;
          element = double{c} * element - std::conj(widen(s)) * pair.x[i];
        }
        EXPECT_TRUE(agree(device().download(x), rotated_x, data, 2));
        EXPECT_TRUE(agree(device().download(y), rotated_y, data, 2));
      }
    }
  });
}

TYPED_TEST(SparseVectorOps, SpvvIsTheSameEachTime) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  for_vector_pairs<T, I>([&](const VectorPair<T, I>& pair, Data data) {
    for (const auto conjugate : {blas::Conjugate::no, blas::Conjugate::yes}) {
      Wide sum = 0;
      for (std::size_t i = 0; i < pair.x.size(); ++i) {
        sum += (conjugate == blas::Conjugate::yes ? std::conj(pair.x[i]) : pair.x[i]) *
               pair.y[pair.at(i)];
      }
      std::vector<T> first;
      for (int run = 0; run < 3; ++run) {
        const auto result = put(std::vector<T>{T(-7)});
        device().sparse().spvv(pair.device_x, pair.index, pair.device_y, result, conjugate);
        const auto value = device().download(result);
        EXPECT_TRUE(agree(value, {sum}, data, static_cast<double>(pair.x.size())));
        if (run == 0) first = value;
        EXPECT_EQ(value, first);
      }
    }
  });
}

/// The cuda engine does not look.
TYPED_TEST(SparseVectorOps, ElementsOutOfRangeAreLeftOut) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  if (on_cuda()) GTEST_SKIP() << "what the indices say is checked by the cpu engine only";
  const auto index = put(std::vector<I>{1, 3, -1, std::numeric_limits<I>::max()});
  const auto x = put(std::vector<T>{T(1), T(2), T(3), T(4)});
  const auto y = put(std::vector<T>{T(5), T(6), T(7)});
  const auto result = device().template alloc<T>(1);
  device().sparse().spvv(x, index, y, result);
  EXPECT_EQ(device().download(result), std::vector<T>{T(6)});
  device().sparse().axpby(T(2), x, index, T(1), y);
  EXPECT_EQ(device().download(y), (std::vector<T>{T(5), T(8), T(7)}));
  device().sparse().scatter(x, index, y);
  EXPECT_EQ(device().download(y), (std::vector<T>{T(5), T(1), T(7)}));
  device().sparse().rot(x, index, y, RealOf<T>(2), T(1));
  EXPECT_EQ(device().download(x), (std::vector<T>{T(3), T(2), T(3), T(4)}));
  EXPECT_EQ(device().download(y), (std::vector<T>{T(5), T(1), T(7)}));
}

TYPED_TEST(SparseVectorOps, OfVectorsThatDoNotFit) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const auto x = put(std::vector<T>(3)), y = put(std::vector<T>(5)), two = put(std::vector<T>(2));
  const auto index = put(std::vector<I>{1, 3, 2});
  const auto refused = [&](const Future<void>& future) {
    ASSERT_TRUE(future.ready());
    EXPECT_EQ(future.wait().code(), Errc::invalid);
    EXPECT_EQ(device().take_error().code(), Errc::invalid);
  };
  refused(device().sparse().scatter(two, index, y));
  refused(device().sparse().axpby(T(1), two, index, T(1), y));
  refused(device().sparse().rot(two, index, y, RealOf<T>(1), T(1)));
  refused(device().sparse().spvv(two, index, y, x.slice(0, 1)));
  refused(device().sparse().spvv(two, index.slice(0, 2), y, x));
  refused(device().sparse().rot(x, index, x, RealOf<T>(1), T(1)));
}

TEST_F(BadArguments, OfSparseVectors) {
  using namespace sparse;
  const auto out = put(std::vector<double>(8));
  const auto y = out.operand();
  const auto wrong = [&]<class Op>(const Op& good) {
    const auto with = [&](auto change, Errc code = Errc::invalid) {
      auto bad = good;
      change(bad);
      expect_refused(bad, code);
    };
    with([](auto& bad) { bad.count = -1; });
    with([](auto& bad) { bad.count = 17; });
    with([](auto& bad) { bad.length = -1; });
    with([](auto& bad) { bad.length = 17; });
    with([](auto& bad) { bad.index_dtype = DType::u32; });
    with([&](auto& bad) { bad.index = absent; });
    with([&](auto& bad) { bad.x = unaligned; });
    with([&](auto& bad) { bad.y = absent; });
    with([](auto& bad) { bad.dtype = DType::bf16; }, Errc::unsupported);
  };
  const Scatter scatter{DType::f64, DType::i32, 4, 8, i, x, y};
  const Axpby axpby{DType::f64, DType::i32, 4, 8, one, one, i, x, y};
  const Rot rot{DType::f64,
                DType::i32,
                2,
                4,
                one,
                one,
                i,
                out.slice(0, 4).operand(),
                out.slice(4, 4).operand()};
  const Spvv spvv{DType::f64, DType::i32, blas::Conjugate::no, 0, 4, 8, i, x, x, y};
  wrong(scatter);
  wrong(axpby);
  wrong(rot);
  wrong(spvv);
  const auto with = [&](auto op, auto change) {
    change(op);
    expect_refused(op);
  };
  with(scatter, [&](auto& bad) { bad.y = x; });  // which is read as well
  with(axpby, [&](auto& bad) { bad.y = x; });
  with(axpby, [&](auto& bad) { bad.alpha = short_scalar; });
  with(axpby, [&](auto& bad) { bad.beta = short_scalar; });
  with(rot, [&](auto& bad) { bad.y = bad.x; });
  with(rot, [&](auto& bad) { bad.c = short_scalar; });
  with(rot, [&](auto& bad) { bad.s = short_scalar; });
  with(spvv, [&](auto& bad) { bad.result = absent; });
  with(spvv, [&](auto& bad) { bad.result = x; });
  with(spvv, [](auto& bad) { bad.conjugate = static_cast<blas::Conjugate>(2); });
}

}  // namespace
}  // namespace troupe::test::reference
