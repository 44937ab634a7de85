// Whether indices are what operations demand of them.
#include "bad_arguments.hpp"
#include "sparse_formats.hpp"

namespace troupe::test::reference {
namespace {

template <class I>
class SparseExamineOps : public ::testing::Test {};
using ExaminedIndices = ::testing::Types<std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(SparseExamineOps, ExaminedIndices);

template <class I>
constexpr I kFarAway = std::numeric_limits<I>::max();

/// What a matrix is refused with; empty: it is sound.
template <class Matrix>
std::string fault_of(const Matrix& a, bool sorted = false) {
  const auto future = device().sparse().examine(a, {.sorted = sorted});
  const auto& outcome = future.wait();
  if (outcome.ok()) return {};
  EXPECT_EQ(outcome.code(), Errc::invalid) << outcome.error().message;
  EXPECT_EQ(device().take_error().code(), Errc::invalid);
  const std::string name = "sparse.examine: ";
  EXPECT_EQ(outcome.error().message.substr(0, name.size()), name);
  return outcome.error().message.substr(name.size());
}

GpuRef<float> values_for(std::int64_t count) {
  return put(std::vector<float>(static_cast<std::size_t>(count), 1.0f));
}

/// The offsets and columns of a matrix of 3 x 4 with five elements, of which some are changed.
template <class I>
struct SmallMatrix {
  std::vector<I> begin{0, 2, 3, 5}, place{1, 3, 0, 1, 2};

  [[nodiscard]] CsrMatrix<float, I> csr() const {
    return {3, 4, put(begin), put(place), values_for(5)};
  }
  [[nodiscard]] CscMatrix<float, I> csc() const {
    return {4, 3, put(begin), put(place), values_for(5)};
  }
  [[nodiscard]] BsrMatrix<float, I> bsr() const {
    return {3, 4, 2, BlockOrder::column, put(begin), put(place), values_for(20)};
  }
};
template <class I>
SmallMatrix<I> with_begin(std::size_t at, I value) {
  SmallMatrix<I> a;
  a.begin[at] = value;
  return a;
}
template <class I>
SmallMatrix<I> with_place(std::size_t at, I value) {
  SmallMatrix<I> a;
  a.place[at] = value;
  return a;
}

TYPED_TEST(SparseExamineOps, OfSoundMatricesInEveryFormat) {
  using I = TypeParam;
  using sparse::Format;
  for (const auto& [rows, columns] :
       {std::pair<std::int64_t, std::int64_t>{37, 23}, {1, 1}, {300, 2}, {2, 300}}) {
    for (const auto& [name, a, dense] :
         in_formats<float, I>(rows, columns, 191, Data::integers,
                              {Format::csr, Format::csc, Format::coo, Format::bsr, Format::sell,
                               Format::blocked_ell}))
      EXPECT_EQ(fault_of(a), "") << name << " of " << rows << "x" << columns;
  }
}

TYPED_TEST(SparseExamineOps, OfEmptyMatrices) {
  using I = TypeParam;
  const auto none = device().template alloc<I>(0), one = put(std::vector<I>{0});
  const auto three = put(std::vector<I>{0, 0, 0});
  const auto value = device().template alloc<float>(0);
  EXPECT_EQ(fault_of(CsrMatrix<float, I>{0, 5, one, none, value}, true), "");
  EXPECT_EQ(fault_of(CsrMatrix<float, I>{2, 0, three, none, value}, true), "");
  EXPECT_EQ(fault_of(CscMatrix<float, I>{5, 0, one, none, value}, true), "");
  EXPECT_EQ(fault_of(CooMatrix<float, I>{5, 0, none, none, value}, true), "");
  EXPECT_EQ(fault_of(SellMatrix<float, I>{5, 2, 0, 3, three, none, value}), "");
  EXPECT_EQ(fault_of(BlockedEllMatrix<float, I>{0, 4, 2, 3, none, value}), "");
  EXPECT_EQ(fault_of(CsrMatrix<float, I>{0, 5, put(std::vector<I>{1}), none, value}),
            "row_begin[0] is 1, not 0");
}

TYPED_TEST(SparseExamineOps, OfOffsets) {
  using I = TypeParam;
  const auto far = std::to_string(kFarAway<I>);
  const auto begin = [](std::size_t at, I value) { return with_begin<I>(at, value).csr(); };
  EXPECT_EQ(fault_of(SmallMatrix<I>().csr(), true), "");
  EXPECT_EQ(fault_of(begin(0, 1)), "row_begin[0] is 1, not 0");
  EXPECT_EQ(fault_of(begin(0, -1)), "row_begin[0] is -1, not 0");
  EXPECT_EQ(fault_of(begin(1, 4)), "row_begin[2] is 3, below its predecessor 4");
  EXPECT_EQ(fault_of(begin(1, kFarAway<I>)), "row_begin[2] is 3, below its predecessor " + far);
  EXPECT_EQ(fault_of(begin(2, -5)), "row_begin[2] is -5, below its predecessor 2");
  EXPECT_EQ(fault_of(begin(3, 4)), "row_begin[3] is 4, not 5");
  EXPECT_EQ(fault_of(begin(3, kFarAway<I>)), "row_begin[3] is " + far + ", not 5");
  EXPECT_EQ(fault_of(with_begin<I>(2, 6).csc()), "column_begin[3] is 5, below its predecessor 6");
  EXPECT_EQ(fault_of(with_begin<I>(3, 6).bsr()), "row_begin[3] is 6, not 5");
}

TYPED_TEST(SparseExamineOps, OfPlaces) {
  using I = TypeParam;
  const auto far = std::to_string(kFarAway<I>);
  const auto place = [](std::size_t at, I value) { return with_place<I>(at, value); };
  EXPECT_EQ(fault_of(place(4, 4).csr()), "column[4] is 4, outside of [0, 4)");
  EXPECT_EQ(fault_of(place(0, -1).csr()), "column[0] is -1, outside of [0, 4)");
  EXPECT_EQ(fault_of(place(2, kFarAway<I>).csr()), "column[2] is " + far + ", outside of [0, 4)");
  EXPECT_EQ(fault_of(place(3, 4).csc()), "row[3] is 4, outside of [0, 4)");
  EXPECT_EQ(fault_of(place(1, 4).bsr()), "column[1] is 4, outside of [0, 4)");
  EXPECT_EQ(fault_of(SparseRef<float, I>(place(1, 4).bsr())), "column[1] is 4, outside of [0, 4)");
}

TYPED_TEST(SparseExamineOps, OfTheOrderWithinRows) {
  using I = TypeParam;
  const auto place = [](std::size_t at, I value) { return with_place<I>(at, value); };
  const std::string fault = "column[4] is 1, not above its predecessor 1 in the same row";
  EXPECT_EQ(fault_of(place(4, 1).csr()), "");  // in any order
  EXPECT_EQ(fault_of(place(4, 1).csr(), true), fault);
  EXPECT_EQ(fault_of(place(4, 1).bsr(), true), fault);
  EXPECT_EQ(fault_of(place(1, 0).csc(), true),
            "row[1] is 0, not above its predecessor 1 in the same column");
  EXPECT_EQ(fault_of(place(3, 0).csr(), true), "");  // where a row begins
  // Empty rows at the front, in the middle and at the end.
  const CsrMatrix<float, I> gaps{6, 4, put(std::vector<I>{0, 0, 2, 2, 2, 4, 4}),
                                 put(std::vector<I>{2, 3, 0, 1}), values_for(4)};
  EXPECT_EQ(fault_of(gaps, true), "");
}

TYPED_TEST(SparseExamineOps, OfCoordinates) {
  using I = TypeParam;
  const auto coo = [](const std::vector<I>& row, const std::vector<I>& column) {
    return CooMatrix<float, I>{3, 4, put(row), put(column), values_for(std::ssize(row))};
  };
  EXPECT_EQ(fault_of(coo({0, 0, 2, 2}, {1, 0, 3, 2})), "");
  EXPECT_EQ(fault_of(coo({0, 0, 2, 2}, {0, 1, 0, 3}), true), "");
  EXPECT_EQ(fault_of(coo({0, 2, 1, 2}, {0, 1, 2, 3})), "row[2] is 1, below its predecessor 2");
  EXPECT_EQ(fault_of(coo({0, 1, 2, 3}, {0, 1, 2, 3})), "row[3] is 3, outside of [0, 3)");
  EXPECT_EQ(fault_of(coo({-1, 1, 2, 2}, {0, 1, 2, 3})), "row[0] is -1, outside of [0, 3)");
  EXPECT_EQ(fault_of(coo({0, 1, 2, 2}, {0, 4, 2, 3})), "column[1] is 4, outside of [0, 4)");
  EXPECT_EQ(fault_of(coo({0, 2, 2, 2}, {0, 1, 1, 3}), true),
            "column[2] is 1, not above its predecessor 1 in the same row");
}

TYPED_TEST(SparseExamineOps, OfPaddedMatrices) {
  using I = TypeParam;
  const auto sell = [](const std::vector<I>& begin, const std::vector<I>& column) {
    return SellMatrix<float, I>{
        4, 4, 3, 2, put(begin), put(column), values_for(std::ssize(column))};
  };
  const std::vector<I> columns{1, -1, 3, 2, -1, -1};
  EXPECT_EQ(fault_of(sell({0, 2, 6}, columns)), "");
  EXPECT_EQ(fault_of(sell({0, 3, 6}, columns)), "slice_begin[1] is 3, no multiple of 2");
  EXPECT_EQ(fault_of(sell({0, 2, 4}, columns)), "slice_begin[2] is 4, not 6");
  EXPECT_EQ(fault_of(sell({0, 2, 6}, {1, -2, 3, 2, -1, -1})),
            "column[1] is -2, neither -1 nor in [0, 4)");
  EXPECT_EQ(fault_of(sell({0, 2, 6}, {1, -1, 3, 2, 4, -1})),
            "column[4] is 4, neither -1 nor in [0, 4)");
  const auto ell = [](const std::vector<I>& column) {
    return BlockedEllMatrix<float, I>{4, 6, 2, 2, put(column), values_for(16)};
  };
  EXPECT_EQ(fault_of(ell({2, 0, -1, 1})), "");
  EXPECT_EQ(fault_of(ell({2, 0, -1, 3})), "column[3] is 3, neither -1 nor in [0, 3)");
  EXPECT_EQ(fault_of(ell({-2, 0, -1, 3})), "column[0] is -2, neither -1 nor in [0, 3)");
}

/// Of many faults the same is found every time, wherever threads come to them.
TYPED_TEST(SparseExamineOps, TheFirstFaultIsFound) {
  using I = TypeParam;
  constexpr std::int64_t kRows = 100'000, kInRow = 5, kCount = kRows * kInRow;
  std::vector<I> begin, column;
  for (std::int64_t row = 0; row <= kRows; ++row) begin.push_back(static_cast<I>(row * kInRow));
  for (std::int64_t k = 0; k < kCount; ++k) column.push_back(static_cast<I>(k % kInRow));
  const auto matrix = [&] {
    return CsrMatrix<float, I>{kRows, kInRow, put(begin), put(column), values_for(kCount)};
  };
  EXPECT_EQ(fault_of(matrix(), true), "");
  for (const std::size_t k : {499'996u, 250'003u, 123'457u}) {
    column[k] = column[k - 1];
    EXPECT_EQ(fault_of(matrix()), "");
    EXPECT_EQ(fault_of(matrix(), true),
              "column[" + std::to_string(k) + "] is " + std::to_string(column[k]) +
                  ", not above its predecessor " + std::to_string(column[k]) + " in the same row");
  }
  for (const std::size_t k : {499'999u, 400'000u, 200'001u}) {
    column[k] = 99;
    EXPECT_EQ(fault_of(matrix(), true),
              "column[" + std::to_string(k) + "] is 99, outside of [0, 5)");
  }
  for (const std::size_t row : {99'999u, 70'000u, 50'001u}) {
    begin[row] = 7;
    EXPECT_EQ(fault_of(matrix(), true), "row_begin[" + std::to_string(row) +
                                            "] is 7, below its predecessor " +
                                            std::to_string(begin[row - 1]));
  }
  begin[0] = 3;
  EXPECT_EQ(fault_of(matrix(), true), "row_begin[0] is 3, not 0");
}

/// Whatever stands in the arrays, nothing but the finding is written, and it is one.
TYPED_TEST(SparseExamineOps, ArraysOfAnything) {
  using I = TypeParam;
  std::mt19937_64 random(192);
  for (int i = 0; i < 50; ++i) {
    std::vector<I> begin(40), place(300);
    for (auto* array : {&begin, &place})
      for (auto& value : *array) value = static_cast<I>(random());
    const CsrMatrix<float, I> a{39, 1000, put(begin), put(place), values_for(300)};
    EXPECT_NE(fault_of(a, true), "");
    EXPECT_EQ(device().download(a.row_begin), begin);
    EXPECT_EQ(device().download(a.column), place);
  }
}

TYPED_TEST(SparseExamineOps, WithoutFailing) {
  using I = TypeParam;
  const auto a = with_place<I>(3, 9).csr();
  const auto examination = sparse::examination_of(
      sparse::rule_of(sparse::form_of(a), a.row_begin.operand(), a.column.operand(), false),
      OnFailure::report);
  const auto finding =
      detail::submit_for_value<sparse::Finding>(device().submitter(), examination).get();
  EXPECT_EQ(finding.fault, sparse::Fault::inner_outside);
  EXPECT_EQ(finding.place, 3);
  EXPECT_EQ(finding.value, 9);
}

TYPED_TEST(SparseExamineOps, OfBuffersThatDoNotFit) {
  using I = TypeParam;
  const auto refused = [](const auto& a, const std::string& words) {
    const auto future = device().sparse().examine(a);
    ASSERT_TRUE(future.ready()) << words;
    EXPECT_EQ(future.wait().error().message, "sparse.examine: " + words);
    EXPECT_EQ(device().take_error().code(), Errc::invalid);
  };
  auto a = SmallMatrix<I>().csr();
  a.row_begin = a.row_begin.slice(0, 3);
  refused(a, "row_begin has 3 elements, not 4");
  a = SmallMatrix<I>().csr();
  a.column = a.column.slice(0, 4);
  refused(a, "column has 4 elements, not 5");
  a = SmallMatrix<I>().csr();
  a.columns = -1;
  refused(a, "a negative extent");
}

TEST_F(BadArguments, OfExaminations) {
  const auto pin = device().pinned<std::int64_t>(4);
  sparse::Examine good;
  good.dtype = DType::i32, good.demands = IndexRule::offsets | IndexRule::sorted;
  good.outer_length = 4, good.outer_bound = 8, good.inner_length = 8, good.inner_bound = 5;
  good.outer = good.inner = i, good.found = pin.operand();
  EXPECT_TRUE(good.check().ok());
  const auto with = [&](auto change, Errc code = Errc::invalid) {
    auto bad = good;
    change(bad);
    expect_refused(bad, code);
  };
  with([](auto& bad) { bad.demands = 16; });
  with([](auto& bad) { bad.demands |= IndexRule::ordered; });
  with([](auto& bad) { bad.demands = IndexRule::sorted; });  // 4 rows of 8 places
  with([](auto& bad) { bad.on_failure = static_cast<OnFailure>(2); });
  with([](auto& bad) { bad.step = 0; });
  with([](auto& bad) { bad.outer_length = 0; });
  with([](auto& bad) { bad.outer_length = -1; });
  with([](auto& bad) { bad.outer_length = 17; });
  with([](auto& bad) { bad.inner_length = -1; });
  with([](auto& bad) { bad.inner_length = 17; });
  with([](auto& bad) { bad.outer_bound = -1; });
  with([](auto& bad) { bad.inner_bound = -1; });
  with([&](auto& bad) { bad.outer = absent; });
  with([&](auto& bad) { bad.inner = absent; });
  with([&](auto& bad) { bad.found = absent; });
  with([&](auto& bad) { bad.found = x; });  // no result cell
  with([](auto& bad) { bad.dtype = DType::u32; }, Errc::unsupported);
}

}  // namespace
}  // namespace troupe::test::reference
