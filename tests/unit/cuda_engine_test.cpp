// The CUDA engine against host loops. Skipped where there is no GPU.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <limits>
#include <random>
#include <set>
#include <thread>

#include "device_host/engine/engine.hpp"

namespace troupe::host {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kSlabBytes = std::uint64_t{256} << 20;
constexpr std::uint64_t kPinnedBytes = std::uint64_t{64} << 20;
constexpr std::uint32_t kSlab = 1, kPinned = kPinnedRegion | 1;

template <class T>
double tolerance() {
  return 64 * static_cast<double>(std::numeric_limits<T>::epsilon());
}

template <class T>
void expect_near(const std::vector<T>& got, const std::vector<T>& wanted, double scale = 1) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const auto bound = tolerance<T>() * scale * std::max(1.0, std::abs(double(wanted[i])));
    ASSERT_NEAR(got[i], wanted[i], bound) << "at " << i;
  }
}

template <class T>
std::vector<T> random_values(std::size_t n, std::uint32_t seed, double low = -1, double high = 1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> value(low, high);
  std::vector<T> values(n);
  for (auto& v : values) v = static_cast<T>(value(random));
  return values;
}

/// One engine with all lanes open, one slab, one pinned segment.
class CudaEngine : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (const auto devices = list_devices(); !devices) {
      reason_ = devices.error().to_string();
      return;
    }
    engine_ = make_engine({}).take();
    // Opening lanes at the same time is part of the contract.
    std::vector<std::future<Result<void>>> opened;
    for (std::size_t i = 0; i < kLaneCount; ++i) {
      opened.push_back(
          std::async(std::launch::async, [i] { return engine_->open_lane(static_cast<Lane>(i)); }));
    }
    for (auto& lane : opened) lane.get().take();
    slab_ = new Slab(engine_->make_slab(kSlabBytes).take());
    const int fd = ::memfd_create("troupe-test", MFD_CLOEXEC);
    check(fd >= 0 && ::ftruncate(fd, kPinnedBytes) == 0, "memfd");
    pinned_ = engine_->map_pinned(fd, kPinnedBytes).take();
    ::close(fd);
    addresses_.set(kSlab, slab_->base, kSlabBytes);
    addresses_.set(kPinned, pinned_, kPinnedBytes);
  }
  static void TearDownTestSuite() {
    if (engine_ == nullptr) return;
    engine_->unmap_pinned(pinned_, kPinnedBytes);
    engine_->unmap_slab(slab_->base, kSlabBytes);
    delete slab_;
    engine_.reset();
  }
  void SetUp() override {
    if (engine_ == nullptr) GTEST_SKIP() << "no CUDA engine here: " << reason_;
    used_ = 0;
  }

  template <class Op>
  static Result<void> queue(const Op& op, Lane lane = Op::kLane,
                            std::span<const PeerTransfer> tail = {}) {
    return engine_->run(op, Call(lane, addresses_, tail));
  }
  /// Runs the operation to its end.
  template <class Op>
  static void run(const Op& op, Lane lane = Op::kLane, std::span<const PeerTransfer> tail = {}) {
    queue(op, lane, tail).take();
    engine_->synchronize(lane).take();
  }

  /// Device memory of this test; `skew` bytes off a 256-byte boundary.
  Operand space(std::uint64_t bytes, std::uint64_t skew = 0) {
    const auto offset = (used_ + 255) / 256 * 256 + skew;
    used_ = offset + bytes;
    check(used_ <= kSlabBytes, "the test's slab is too small");
    return {kSlab, 0, 0, 0, offset, bytes};
  }
  template <class T>
  Operand put(const std::vector<T>& values, std::uint64_t skew = 0) {
    const auto where = space(values.size() * sizeof(T), skew);
    write(where, values);
    return where;
  }
  template <class T>
  void write(const Operand& where, const std::vector<T>& values) {
    if (values.empty()) return;
    std::memcpy(pinned_, values.data(), where.bytes);
    run(memory::Copy{DType::u8, {kPinned, 0, 0, 0, 0, where.bytes}, where}, Lane::host_to_device);
  }
  template <class T>
  static std::vector<T> get(const Operand& where) {
    std::vector<T> values(where.bytes / sizeof(T));
    if (values.empty()) return values;
    run(memory::Copy{DType::u8, where, {kPinned, 0, 0, 0, 0, where.bytes}}, Lane::device_to_host);
    std::memcpy(values.data(), pinned_, where.bytes);
    return values;
  }
  /// The factor as a value, or as an element in device memory.
  template <class T>
  Scalar scalar(double value, bool on_device) {
    if (!on_device) return {{}, value};
    return {put(std::vector<T>{static_cast<T>(value)}), 0};
  }
  static void wait_until(Mark mark) {
    for (;;) {
      const auto reached = engine_->reached(mark);
      if (reached.ok() ? *reached : true) {
        EXPECT_TRUE(reached.ok());
        return;
      }
      std::this_thread::yield();
    }
  }

  static inline std::unique_ptr<Engine> engine_;
  static inline std::string reason_;
  static inline Slab* slab_ = nullptr;
  static inline std::byte* pinned_ = nullptr;
  static inline AddressMap addresses_;
  std::uint64_t used_ = 0;
};

template <class T>
class CudaReals : public CudaEngine {};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(CudaReals, Reals);

TEST_F(CudaEngine, DescribesItsDevice) {
  const auto& description = engine_->description();
  EXPECT_EQ(description.engine, "cuda");
  EXPECT_EQ(description.uuid.size(), 40u);
  EXPECT_EQ(description.uuid.substr(0, 4), "GPU-");
  EXPECT_GT(description.memory_bytes, kSlabBytes);
  EXPECT_FALSE(description.bus_id.empty());
  EXPECT_EQ(description.libraries.size(), 6u);
  EXPECT_EQ(list_devices().take().at(0).uuid, description.uuid);
}

TEST_F(CudaEngine, FillsEveryElementSizeAndAlignment) {
  for (const auto dtype : {DType::u8, DType::f16, DType::f32, DType::f64, DType::c128}) {
    const auto size = size_of(dtype);
    for (const std::uint64_t skew : {0, 8, 16, 24}) {
      for (const std::uint64_t count : {1u, 2u, 3u, 17u, 1000u, 100003u}) {
        used_ = 0;
        const auto all = space(count * size + 512);
        run(memory::Fill{DType::u8, all.bytes, {0xEE}, all});
        memory::Fill fill{dtype, count, {}, all};
        for (std::size_t i = 0; i < size; ++i) fill.pattern[i] = static_cast<std::uint8_t>(i + 1);
        fill.destination.offset += 256 + skew;
        fill.destination.bytes = count * size;
        run(fill);
        const auto bytes = get<std::uint8_t>(all);
        for (std::uint64_t i = 0; i < bytes.size(); ++i) {
          const auto first = 256 + skew;
          const bool inside = i >= first && i < first + count * size;
          ASSERT_EQ(bytes[i], inside ? (i - first) % size + 1 : 0xEE)
              << to_string(dtype) << " skew " << skew << " count " << count << " byte " << i;
        }
      }
    }
  }
}

TYPED_TEST(CudaReals, MultipliesAndDivides) {
  using T = TypeParam;
  for (const std::size_t n : {0u, 1u, 3u, 1000u, 1000003u}) {
    for (const std::uint64_t skew : {std::size_t{0}, sizeof(T)}) {
      this->used_ = 0;
      const auto x = random_values<T>(n, 1), y = random_values<T>(n, 2, 0.5, 2);
      std::vector<T> product(n), quotient(n);
      for (std::size_t i = 0; i < n; ++i) {
        product[i] = x[i] * y[i];
        quotient[i] = x[i] / y[i];
      }
      const auto dx = this->put(x, skew), dy = this->put(y);
      const auto dz = this->space(n * sizeof(T));
      const auto length = static_cast<std::int64_t>(n);
      this->run(vector::Multiply{dtype_of<T>, length, dx, dy, dz});
      EXPECT_EQ(this->template get<T>(dz), product);
      this->run(vector::Divide{dtype_of<T>, length, dx, dy, dx});  // in place
      EXPECT_EQ(this->template get<T>(dx), quotient);
    }
  }
}

TYPED_TEST(CudaReals, AxpbyTakesFactorsFromEverywhere) {
  using T = TypeParam;
  constexpr std::size_t kLength = 10001;
  const auto x = random_values<T>(kLength, 1), y = random_values<T>(kLength, 2);
  for (const bool alpha_there : {false, true}) {
    for (const bool beta_there : {false, true}) {
      this->used_ = 0;
      std::vector<T> wanted(kLength);
      for (std::size_t i = 0; i < kLength; ++i) wanted[i] = T(1.5) * x[i] + T(-0.25) * y[i];
      const auto dx = this->put(x), dy = this->put(y);
      this->run(vector::Axpby{dtype_of<T>, kLength, this->template scalar<T>(1.5, alpha_there),
                              this->template scalar<T>(-0.25, beta_there), dx, dy});
      expect_near(this->template get<T>(dy), wanted);
    }
  }
  // beta = 0 by value: y is not read.
  const auto dx = this->put(x);
  const auto dy = this->put(std::vector<T>(kLength, std::numeric_limits<T>::quiet_NaN()));
  this->run(vector::Axpby{dtype_of<T>, kLength, {{}, 1}, {{}, 0}, dx, dy});
  EXPECT_EQ(this->template get<T>(dy), x);
}

TYPED_TEST(CudaReals, BlasLevelOne) {
  using T = TypeParam;
  constexpr std::size_t kLength = 5001;
  const auto x = random_values<T>(kLength, 3), y = random_values<T>(kLength, 4);
  double dot = 0, square = 0;
  for (std::size_t i = 0; i < kLength; ++i) {
    dot += double(x[i]) * double(y[i]);
    square += double(x[i]) * double(x[i]);
  }
  const auto dx = this->put(x), dy = this->put(y), result = this->space(sizeof(T));
  this->run(blas::Dot{dtype_of<T>, kLength, 1, 1, dx, dy, result});
  EXPECT_NEAR(this->template get<T>(result)[0], dot, tolerance<T>() * 100);
  this->run(blas::Nrm2{dtype_of<T>, kLength, 1, dx, result});
  EXPECT_NEAR(this->template get<T>(result)[0], std::sqrt(square), tolerance<T>() * 100);
  this->run(blas::Dot{dtype_of<T>, 0, 1, 1, dx, dy, result});
  EXPECT_EQ(this->template get<T>(result)[0], T(0));

  for (const bool there : {true, false, true}) {
    const auto target = this->put(y);
    std::vector<T> wanted(kLength);
    for (std::size_t i = 0; i < kLength; ++i) wanted[i] = T(0.75) * x[i] + y[i];
    this->run(
        blas::Axpy{dtype_of<T>, kLength, 1, 1, this->template scalar<T>(0.75, there), dx, target});
    expect_near(this->template get<T>(target), wanted);
    for (auto& v : wanted) v *= T(-2);
    this->run(blas::Scal{dtype_of<T>, kLength, 1, this->template scalar<T>(-2, there), target});
    expect_near(this->template get<T>(target), wanted);
  }
  const auto strided = this->put(std::vector<T>(2 * kLength, T(7)));
  this->run(blas::Copy{dtype_of<T>, kLength, 1, 2, dx, strided});
  const auto copied = this->template get<T>(strided);
  for (std::size_t i = 0; i < kLength; ++i) {
    ASSERT_EQ(copied[2 * i], x[i]);
    ASSERT_EQ(copied[2 * i + 1], T(7));
  }
}

TYPED_TEST(CudaReals, GemvAndGemmWithMixedFactors) {
  using T = TypeParam;
  constexpr std::size_t kM = 37, kN = 29, kK = 41;
  const auto at = [](const std::vector<T>& a, std::size_t rows, blas::Transpose t, std::size_t i,
                     std::size_t j) {
    return double(t == blas::Transpose::no ? a[i + j * rows] : a[j + i * rows]);
  };
  const auto no = blas::Transpose::no, yes = blas::Transpose::yes;
  for (int mix = 0; mix < 4; ++mix) {
    const bool alpha_there = mix & 1, beta_there = mix & 2;
    for (const auto ta : {no, yes}) {
      this->used_ = 0;
      const auto a = random_values<T>(kM * kN, 5);
      const std::size_t in = ta == no ? kN : kM, out = ta == no ? kM : kN;
      const auto x = random_values<T>(in, 6), y = random_values<T>(out, 7);
      std::vector<T> wanted(out);
      for (std::size_t i = 0; i < out; ++i) {
        double sum = 0;
        for (std::size_t j = 0; j < in; ++j) sum += at(a, kM, ta, i, j) * double(x[j]);
        wanted[i] = static_cast<T>(1.5 * sum - 0.5 * double(y[i]));
      }
      const auto da = this->put(a), dx = this->put(x), dy = this->put(y);
      this->run(blas::Gemv{dtype_of<T>, ta, 0, kM, kN, kM, 1, 1,
                           this->template scalar<T>(1.5, alpha_there),
                           this->template scalar<T>(-0.5, beta_there), da, dx, dy});
      expect_near(this->template get<T>(dy), wanted);

      for (const auto tb : {no, yes}) {
        this->used_ = 0;
        const std::size_t lda = ta == no ? kM : kK, ldb = tb == no ? kK : kN;
        const auto ga = random_values<T>(kM * kK, 8), gb = random_values<T>(kK * kN, 9),
                   gc = random_values<T>(kM * kN, 10);
        std::vector<T> product(kM * kN);
        for (std::size_t i = 0; i < kM; ++i) {
          for (std::size_t j = 0; j < kN; ++j) {
            double sum = 0;
            for (std::size_t k = 0; k < kK; ++k) {
              sum += at(ga, lda, ta, i, k) * at(gb, ldb, tb, k, j);
            }
            product[i + j * kM] = static_cast<T>(1.5 * sum - 0.5 * double(gc[i + j * kM]));
          }
        }
        const auto dga = this->put(ga), dgb = this->put(gb), dgc = this->put(gc);
        this->run(blas::Gemm{dtype_of<T>, ta, tb, kM, kN, kK, static_cast<std::int64_t>(lda),
                             static_cast<std::int64_t>(ldb), kM,
                             this->template scalar<T>(1.5, alpha_there),
                             this->template scalar<T>(-0.5, beta_there), dga, dgb, dgc});
        expect_near(this->template get<T>(dgc), product);
      }
    }
  }
  // Empty matrices do nothing; an empty inner dimension scales.
  const auto c = this->put(std::vector<T>{1, 2, 3, 4});
  this->run(blas::Gemm{dtype_of<T>, no, no, 0, 0, 0, 0, 0, 0, {{}, 1}, {{}, 0}, c, c, c});
  this->run(blas::Gemm{dtype_of<T>, no, no, 2, 2, 0, 2, 0, 2, {{}, 1}, {{}, 3}, c, c, c});
  EXPECT_EQ(this->template get<T>(c), (std::vector<T>{3, 6, 9, 12}));
}

/// A random CSR matrix and its product with a vector.
template <class T, class I>
struct Csr {
  std::int64_t rows, columns;
  std::vector<I> row_begin{0};
  std::vector<I> column;
  std::vector<T> value;

  Csr(std::int64_t rows_, std::int64_t columns_, std::uint32_t seed)
      : rows(rows_), columns(columns_) {
    std::mt19937 random(seed);
    std::uniform_int_distribution<std::int64_t> pick(0, columns - 1), length(0, 12);
    std::uniform_real_distribution<double> number(-1, 1);
    for (std::int64_t row = 0; row < rows; ++row) {
      std::set<std::int64_t> chosen;
      // A few rows are empty, one is long.
      const auto wanted = row == rows / 2 ? columns / 2 : length(random);
      while (static_cast<std::int64_t>(chosen.size()) < wanted) chosen.insert(pick(random));
      for (const auto j : chosen) {
        column.push_back(static_cast<I>(j));
        value.push_back(static_cast<T>(number(random)));
      }
      row_begin.push_back(static_cast<I>(column.size()));
    }
  }
  [[nodiscard]] std::vector<T> times(const std::vector<T>& x, const std::vector<T>& y, double alpha,
                                     double beta) const {
    std::vector<T> result(y.size());
    for (std::size_t row = 0; row < y.size(); ++row) {
      double sum = 0;
      for (auto k = static_cast<std::size_t>(row_begin[row]);
           k < static_cast<std::size_t>(row_begin[row + 1]); ++k) {
        sum += double(value[k]) * double(x[static_cast<std::size_t>(column[k])]);
      }
      result[row] = static_cast<T>(alpha * sum + beta * double(y[row]));
    }
    return result;
  }
};

template <class Types>
class CudaSparse : public CudaEngine {};
template <class T_, class I_>
struct ValueAndIndex {
  using T = T_;
  using I = I_;
};
using SparseTypes =
    testing::Types<ValueAndIndex<float, std::int32_t>, ValueAndIndex<float, std::int64_t>,
                   ValueAndIndex<double, std::int32_t>, ValueAndIndex<double, std::int64_t>>;
TYPED_TEST_SUITE(CudaSparse, SparseTypes);

TYPED_TEST(CudaSparse, SpmvWithMixedFactorsRepeatsBitForBit) {
  using T = typename TypeParam::T;
  using I = typename TypeParam::I;
  Csr<T, I> a(2000, 1500, 11);
  const auto x = random_values<T>(1500, 12), y = random_values<T>(2000, 13);
  const auto nonzeros = static_cast<std::int64_t>(a.value.size());
  const auto rows = this->put(a.row_begin), columns = this->put(a.column),
             values = this->put(a.value);
  const auto dx = this->put(x);
  for (int mix = 0; mix < 4; ++mix) {
    const auto dy = this->put(y);  // elsewhere each time, so that the cached vectors are set anew
    const sparse::Spmv op{dtype_of<T>,
                          dtype_of<I>,
                          2000,
                          1500,
                          nonzeros,
                          this->template scalar<T>(1.25, (mix & 1) != 0),
                          this->template scalar<T>(-0.5, (mix & 2) != 0),
                          rows,
                          columns,
                          values,
                          dx,
                          dy};
    this->run(op);
    const auto first = this->template get<T>(dy);
    expect_near(first, a.times(x, y, 1.25, -0.5), 10);
    this->write(dy, y);
    this->run(op);
    const auto second = this->template get<T>(dy);
    EXPECT_EQ(std::memcmp(first.data(), second.data(), first.size() * sizeof(T)), 0);
  }
  // New values, same pattern.
  a.value = random_values<T>(a.value.size(), 14);
  this->write(values, a.value);
  const auto dy = this->put(y);
  this->run(sparse::Spmv{dtype_of<T>,
                         dtype_of<I>,
                         2000,
                         1500,
                         nonzeros,
                         {{}, 1},
                         {{}, 0},
                         rows,
                         columns,
                         values,
                         dx,
                         dy});
  expect_near(this->template get<T>(dy), a.times(x, y, 1, 0), 10);
}

TYPED_TEST(CudaSparse, AnotherMatrixAtTheSameAddressIsAnother) {
  using T = typename TypeParam::T;
  using I = typename TypeParam::I;
  // The same shape and number of nonzeros, but all of them in one row: first, then last.
  constexpr std::int64_t kRows = 3000, kNonzeros = 2500;
  std::vector<I> column(kNonzeros);
  for (std::size_t k = 0; k < column.size(); ++k) column[k] = static_cast<I>(k);
  const std::vector<T> ones(kNonzeros, 1);
  auto rows = this->space((kRows + 1) * sizeof(I));
  const auto columns = this->put(column), values = this->put(ones), dx = this->put(ones);
  const auto dy = this->space(kRows * sizeof(T));
  for (std::uint32_t generation = 1; generation <= 2; ++generation) {
    std::vector<I> row_begin(kRows + 1, generation == 1 ? I(kNonzeros) : I(0));
    row_begin.front() = 0;
    row_begin.back() = I(kNonzeros);
    this->write(rows, row_begin);
    rows.generation = generation;
    this->run(sparse::Spmv{dtype_of<T>,
                           dtype_of<I>,
                           kRows,
                           kNonzeros,
                           kNonzeros,
                           {{}, 1},
                           {{}, 0},
                           rows,
                           columns,
                           values,
                           dx,
                           dy});
    std::vector<T> wanted(kRows, 0);
    (generation == 1 ? wanted.front() : wanted.back()) = T(kNonzeros);
    EXPECT_EQ(this->template get<T>(dy), wanted);
  }
}

/// A CSR matrix in sliced ELL form.
template <class T, class I>
struct Sell {
  std::vector<I> slice_begin{0};
  std::vector<I> column;
  std::vector<T> value;

  Sell(const Csr<T, I>& a, std::int64_t slice_rows) {
    for (std::int64_t first = 0; first < a.rows; first += slice_rows) {
      I longest = 0;
      for (std::int64_t i = 0; i < slice_rows; ++i)
        longest = std::max(longest, length(a, first + i));
      for (I k = 0; k < longest; ++k) {
        for (std::int64_t i = 0; i < slice_rows; ++i) {
          const bool there = k < length(a, first + i);
          const auto from =
              there ? static_cast<std::size_t>(a.row_begin[static_cast<std::size_t>(first + i)] + k)
                    : 0;
          column.push_back(there ? a.column[from] : I(-1));
          value.push_back(there ? a.value[from] : T(0));
        }
      }
      slice_begin.push_back(static_cast<I>(column.size()));
    }
  }
  static I length(const Csr<T, I>& a, std::int64_t row) {
    if (row >= a.rows) return 0;
    const auto i = static_cast<std::size_t>(row);
    return a.row_begin[i + 1] - a.row_begin[i];
  }
};

TYPED_TEST(CudaSparse, SlicedEllWithMixedFactorsRepeatsBitForBit) {
  using T = typename TypeParam::T;
  using I = typename TypeParam::I;
  constexpr std::int64_t kColumns = 1500;
  for (const std::int64_t rows : {2000, 1984, 20}) {  // the last slice is partial in the first
    for (const std::int64_t slice_rows : {32, 16}) {
      SCOPED_TRACE(std::to_string(rows) + " rows, slices of " + std::to_string(slice_rows));
      this->used_ = 0;
      const Csr<T, I> a(rows, kColumns, 19);
      const Sell<T, I> sell(a, slice_rows);
      const auto x = random_values<T>(kColumns, 12);
      const auto y = random_values<T>(static_cast<std::size_t>(rows), 13);
      sparse::SpmvSell op{dtype_of<T>,
                          dtype_of<I>,
                          rows,
                          kColumns,
                          static_cast<std::int64_t>(a.value.size()),
                          static_cast<std::int64_t>(sell.value.size()),
                          slice_rows,
                          {},
                          {},
                          this->put(sell.slice_begin),
                          this->put(sell.column),
                          this->put(sell.value),
                          this->put(x),
                          {}};
      // Another matrix than the one that was prepared at this address before.
      op.slice_begin.generation = static_cast<std::uint32_t>(rows * 100 + slice_rows);
      for (int mix = 0; mix < 4; ++mix) {
        op.alpha = this->template scalar<T>(1.25, (mix & 1) != 0);
        op.beta = this->template scalar<T>(-0.5, (mix & 2) != 0);
        op.y = this->put(y);
        ASSERT_TRUE(op.check().ok());
        this->run(op);
        const auto first = this->template get<T>(op.y);
        expect_near(first, a.times(x, y, 1.25, -0.5), 10);
        this->write(op.y, y);
        this->run(op);
        const auto second = this->template get<T>(op.y);
        EXPECT_EQ(std::memcmp(first.data(), second.data(), first.size() * sizeof(T)), 0);
      }
      // beta = 0 by value: y is not read.
      op.alpha = {{}, 1};
      op.beta = {{}, 0};
      op.y = this->put(std::vector<T>(y.size(), std::numeric_limits<T>::quiet_NaN()));
      this->run(op);
      expect_near(this->template get<T>(op.y), a.times(x, y, 1, 0), 10);
    }
  }
}

TYPED_TEST(CudaSparse, SlicedEllWithoutEntriesScales) {
  using T = typename TypeParam::T;
  using I = typename TypeParam::I;
  // One slice of padding alone, then no matrix at all.
  sparse::SpmvSell op{dtype_of<T>,
                      dtype_of<I>,
                      20,
                      300,
                      0,
                      32,
                      32,
                      {{}, 1},
                      this->template scalar<T>(1.5, true),
                      this->put(std::vector<I>{0, 32}),
                      this->put(std::vector<I>(32, -1)),
                      this->put(std::vector<T>(32, 0)),
                      this->put(std::vector<T>(300, 1)),
                      this->put(std::vector<T>(20, 2))};
  ASSERT_TRUE(op.check().ok());
  this->run(op);
  EXPECT_EQ(this->template get<T>(op.y), std::vector<T>(20, T(3)));
  op.rows = op.stored = 0;
  ASSERT_TRUE(op.check().ok());
  this->run(op);
  EXPECT_EQ(this->template get<T>(op.y), std::vector<T>(20, T(3)));
}

TYPED_TEST(CudaSparse, EmptyAndManyMatrices) {
  using T = typename TypeParam::T;
  using I = typename TypeParam::I;
  const auto zeros = this->put(std::vector<I>(101, 0));
  const auto dy = this->put(std::vector<T>(100, 2)), dx = this->put(std::vector<T>(300, 1));
  const auto nothing = this->space(0);
  for (const bool there : {false, true}) {
    this->run(sparse::Spmv{dtype_of<T>,
                           dtype_of<I>,
                           100,
                           300,
                           0,
                           {{}, 1},
                           this->template scalar<T>(1.5, there),
                           zeros,
                           nothing,
                           nothing,
                           dx,
                           dy});
  }
  EXPECT_EQ(this->template get<T>(dy), std::vector<T>(100, T(4.5)));
  this->run(sparse::Spmv{
      dtype_of<T>, dtype_of<I>, 0, 300, 0, {{}, 1}, {{}, 0}, zeros, nothing, nothing, dx, nothing});

  // More shapes than are cached, twice over.
  const Csr<T, I> a(100, 200, 15);
  const auto rows = this->put(a.row_begin), columns = this->put(a.column),
             values = this->put(a.value);
  const auto x = std::vector<T>(300, 1), y = std::vector<T>(100, 0);
  for (int round = 0; round < 2; ++round) {
    for (std::int64_t width = 200; width < 300; ++width) {
      ASSERT_TRUE(this->queue(sparse::Spmv{dtype_of<T>,
                                           dtype_of<I>,
                                           100,
                                           width,
                                           static_cast<std::int64_t>(a.value.size()),
                                           {{}, 1},
                                           {{}, 0},
                                           rows,
                                           columns,
                                           values,
                                           dx,
                                           dy})
                      .ok());
    }
    this->engine_->synchronize(Lane::sparse).take();
    expect_near(this->template get<T>(dy), a.times(x, y, 1, 0), 10);
  }
}

TYPED_TEST(CudaSparse, GathersAlsoRepeatedIndices) {
  using T = typename TypeParam::T;
  using I = typename TypeParam::I;
  const auto source = random_values<T>(100, 16);
  for (const std::size_t count : {0u, 1u, 99u, 5000u}) {
    std::mt19937 random(17);
    std::vector<I> index(count);
    std::vector<T> wanted(count);
    for (std::size_t i = 0; i < count; ++i) {
      index[i] = static_cast<I>(random() % source.size());
      wanted[i] = source[static_cast<std::size_t>(index[i])];
    }
    const auto result = this->space(count * sizeof(T));
    this->run(sparse::Gather{dtype_of<T>, dtype_of<I>, static_cast<std::int64_t>(count), 100,
                             this->put(index), this->put(source), result});
    EXPECT_EQ(this->template get<T>(result), wanted);
  }
}

TYPED_TEST(CudaReals, RandomNumbersAreAFunctionOfTheirPlace) {
  using T = TypeParam;
  constexpr std::size_t kLength = 200000;
  const auto out = this->space(kLength * sizeof(T));
  const auto uniform = [&](std::uint64_t seed, std::uint64_t subsequence, std::uint64_t offset) {
    this->run(rng::Uniform{dtype_of<T>, kLength, seed, subsequence, offset, out});
    return this->template get<T>(out);
  };
  const auto first = uniform(1, 0, 0);
  double sum = 0, square = 0;
  for (const auto v : first) {
    ASSERT_TRUE(v > 0 && v <= 1);
    sum += double(v);
    square += double(v) * double(v);
  }
  EXPECT_NEAR(sum / kLength, 0.5, 0.005);
  EXPECT_NEAR(square / kLength, 1.0 / 3, 0.005);
  EXPECT_NE(uniform(1, 1, 0), first);
  EXPECT_NE(uniform(2, 0, 0), first);
  EXPECT_NE(uniform(1, 0, 4), first);
  // Whatever was generated in between, and in pieces of any length.
  this->run(rng::Uniform{dtype_of<T>, 13, 1, 0, 0, out});
  EXPECT_EQ(uniform(1, 0, 0), first);
  this->run(rng::Uniform{dtype_of<T>, 1000, 1, 0, 0, out});
  const auto shorter = this->template get<T>(out);
  EXPECT_TRUE(std::equal(shorter.begin(), shorter.begin() + 1000, first.begin()));

  const auto normal = [&] {
    this->run(rng::Normal{dtype_of<T>, kLength, 3, 2, 0, 2, 0.5, out});
    return this->template get<T>(out);
  };
  const auto numbers = normal();
  sum = square = 0;
  for (const auto v : numbers) sum += double(v);
  for (const auto v : numbers) square += (double(v) - 2) * (double(v) - 2);
  EXPECT_NEAR(sum / kLength, 2, 0.01);
  EXPECT_NEAR(square / kLength, 0.25, 0.01);
  EXPECT_EQ(normal(), numbers);
}

TEST_F(CudaEngine, OffsetSkipsNumbersOfTheSequence) {
  const auto out = space(1000 * sizeof(float));
  run(rng::Uniform{DType::f32, 1000, 5, 0, 0, out});
  const auto whole = get<float>(out);
  run(rng::Uniform{DType::f32, 900, 5, 0, 100, out});
  const auto rest = get<float>(out);
  EXPECT_TRUE(std::equal(whole.begin() + 100, whole.end(), rest.begin()));
}

TEST_F(CudaEngine, SlabsLiveAsLongAsTheirDescriptor) {
  constexpr std::uint64_t kBytes = std::uint64_t{4} << 20;
  auto slab = engine_->make_slab(kBytes).take();
  auto* second = engine_->map_slab(slab.fd.get(), kBytes).take();
  ASSERT_NE(second, slab.base);
  AddressMap map = addresses_;
  map.set(2, slab.base, kBytes);
  map.set(3, second, kBytes);
  const Operand in_first{2, 0, 0, 0, 0, kBytes}, in_second{3, 0, 0, 0, 0, kBytes};
  memory::Fill fill{DType::u32, kBytes / 4, {0x78, 0x56, 0x34, 0x12}, in_first};
  engine_->run(fill, Call(Lane::memory, map, {})).take();
  engine_->synchronize(Lane::memory).take();
  engine_->unmap_slab(slab.base, kBytes);
  engine_
      ->run(memory::Copy{DType::u8, in_second, {kPinned, 0, 0, 0, 0, kBytes}},
            Call(Lane::device_to_host, map, {}))
      .take();
  engine_->synchronize(Lane::device_to_host).take();
  std::vector<std::uint32_t> words(kBytes / 4);
  std::memcpy(words.data(), pinned_, kBytes);
  EXPECT_EQ(words, std::vector<std::uint32_t>(kBytes / 4, 0x12345678));
  engine_->unmap_slab(second, kBytes);
  auto* third = engine_->map_slab(slab.fd.get(), kBytes).take();
  engine_->unmap_slab(third, kBytes);
}

TEST_F(CudaEngine, MemoryHasLimits) {
  const auto limited = make_engine({0, std::uint64_t{8} << 20, 1}).take();
  auto slab = limited->make_slab(std::uint64_t{6} << 20).take();
  EXPECT_EQ(limited->make_slab(std::uint64_t{4} << 20).code(), Errc::out_of_memory);
  limited->unmap_slab(slab.base, std::uint64_t{6} << 20);
  const auto huge = engine_->make_slab(std::uint64_t{1} << 42);
  ASSERT_EQ(huge.code(), Errc::out_of_memory);
  EXPECT_NE(huge.error().message.find("asked for"), std::string::npos) << huge.error().message;
  EXPECT_EQ(engine_->make_slab(1).code(), Errc::invalid);
}

TEST_F(CudaEngine, MarksOrderLanes) {
  constexpr std::int64_t kLength = 8 << 20;
  const auto x = space(kLength * sizeof(double)), y = space(kLength * sizeof(double));
  const std::vector<double> one{1};
  memory::Fill fill{DType::f64, kLength, {}, x};
  std::memcpy(fill.pattern, one.data(), sizeof(double));
  run(fill);
  run(memory::Fill{DType::f64, kLength, {}, y});
  constexpr int kRounds = 300;
  for (int i = 0; i < kRounds; ++i) {
    queue(vector::Axpby{DType::f64, kLength, {{}, 1}, {{}, 1}, x, y}).take();
  }
  const auto computed = engine_->mark(Lane::vector).take();
  engine_->wait(Lane::device_to_host, computed).take();
  const Operand host{kPinned, 0, 0, 0, 0, sizeof(double)};
  auto last = y;
  last.offset += (kLength - 1) * sizeof(double);
  last.bytes = sizeof(double);
  queue(memory::Copy{DType::f64, last, host}, Lane::device_to_host).take();
  const auto copied = engine_->mark(Lane::device_to_host).take();
  EXPECT_FALSE(engine_->reached(computed).take());  // 300 passes over 128 MiB take a while
  engine_->release(computed);                       // while the other lane waits for it
  for (int i = 0; i < 1000; ++i) {                  // and its event is used again meanwhile
    engine_->release(engine_->mark(Lane::memory).take());
  }
  wait_until(copied);
  engine_->release(copied);
  double value = 0;
  std::memcpy(&value, pinned_, sizeof(value));
  EXPECT_EQ(value, kRounds);

  std::atomic<int> called{0};
  engine_
      ->call_when_reached(
          Lane::vector, [](void* argument) { ++*static_cast<std::atomic<int>*>(argument); },
          &called)
      .take();
  engine_->synchronize(Lane::vector).take();
  EXPECT_EQ(called, 1);
  EXPECT_EQ(engine_->suffer(memory::FaultKind::kill, Lane::memory).code(), Errc::unsupported);
}

TEST_F(CudaEngine, CommunicatorOfOne) {
  const auto values = random_values<float>(1000, 18);
  const auto source = put(values), destination = space(source.bytes);
  const collective::AllReduce all_reduce{DType::f32, ReduceOp::sum, 0, 1000, source, destination};
  EXPECT_EQ(queue(all_reduce).code(), Errc::peer_lost);

  for (int round = 0; round < 2; ++round) {
    engine_->connect(0, 1, {engine_->contribute(0, 1).take()}).take();
    EXPECT_EQ(engine_->connect(0, 1, {engine_->contribute(0, 1).take()}).code(), Errc::invalid);
    const auto expect_copy = [&] {
      EXPECT_EQ(get<float>(destination), values);
      run(memory::Fill{DType::u8, destination.bytes, {}, destination});
    };
    run(all_reduce);
    expect_copy();
    run(collective::Reduce{DType::f32, ReduceOp::avg, 0, 1000, source, destination});
    expect_copy();
    run(collective::AllGather{DType::c64, 500, source, destination});
    expect_copy();
    run(collective::ReduceScatter{DType::f32, ReduceOp::max, 0, 1000, source, destination});
    expect_copy();
    run(collective::AllToAll{DType::f32, 1000, source, destination});
    expect_copy();
    const PeerTransfer self[] = {{source, 0, 0}, {destination, 0, 1}};
    run(collective::Exchange{DType::f32}, Lane::collective, self);
    expect_copy();
    run(collective::Broadcast{DType::f32, 0, 0, 1000, source});
    EXPECT_EQ(get<float>(source), values);
    EXPECT_EQ(
        queue(collective::AllReduce{DType::c64, ReduceOp::sum, 0, 1, source, destination}).code(),
        Errc::unsupported);

    const auto mark = engine_->mark(Lane::collective).take();
    engine_->abort_communicator();
    engine_->abort_communicator();
    EXPECT_EQ(queue(all_reduce).code(), Errc::peer_lost);
    wait_until(mark);
    engine_->release(mark);
  }
}

/// Makes the engine suffer; ends the process with 0 if the error is of the expected class.
[[noreturn]] void end_by(Engine& engine, memory::FaultKind kind) {
  engine.suffer(kind, Lane::vector).take();
  const auto mark = engine.mark(Lane::vector);
  auto error = mark.ok() ? Result<bool>(false) : Result<bool>(mark.error());
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  while (error.ok() && !*error && std::chrono::steady_clock::now() < deadline) {
    error = engine.reached(*mark);
  }
  const bool lost = error.code() == Errc::device_lost && error.error().native != 0;
  // From now on every call says so.
  const bool sticky = engine.synchronize(Lane::memory).code() == Errc::device_lost;
  if (!error.ok()) std::fprintf(stderr, "%s\n", error.error().to_string().c_str());
  std::_Exit(lost && sticky ? 0 : 1);
}

using CudaEngineDeathTest = CudaEngine;

TEST_F(CudaEngineDeathTest, FaultsLoseTheDevice) {
  // A fresh process each: a fork of this one could not use CUDA.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const auto kind : {memory::FaultKind::illegal_address, memory::FaultKind::trap,
                          memory::FaultKind::assertion, memory::FaultKind::misaligned}) {
    SCOPED_TRACE(to_string(kind));
    EXPECT_EXIT(end_by(*engine_, kind), testing::ExitedWithCode(0), "device_lost");
  }
}

/// A peer that never comes: NCCL would wait for it for ever. In a process of its own, which the
/// stuck thread ends with.
TEST_F(CudaEngineDeathTest, FormingCanBeGivenUp) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto give_up = [] {
    auto forming = std::async(std::launch::async, [] {
      return engine_->connect(0, 2, {engine_->contribute(0, 2).take(), {}}).code();
    });
    std::this_thread::sleep_for(500ms);
    const auto start = std::chrono::steady_clock::now();
    engine_->abort_communicator();
    const bool given_up = forming.get() == Errc::peer_lost;
    const bool at_once = std::chrono::steady_clock::now() - start < 100ms;
    // The next one is not hindered.
    const bool next = engine_->connect(0, 1, {engine_->contribute(0, 1).take()}).ok();
    std::_Exit(given_up && at_once && next ? 0 : 1);
  };
  EXPECT_EXIT(give_up(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace troupe::host
