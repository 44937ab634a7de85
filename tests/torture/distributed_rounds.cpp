#include <fmt/format.h>
#include <troupe/distributed.hpp>

#include <array>
#include <thread>

#include "catalogue/random.hpp"
#include "reference/transforms.hpp"
#include "runner.hpp"

// Rounds in which all ranks multiply matrices and transform arrays that are spread over a grid of
// them, and read one another's memory, in steps of World::run, with faults in between.

namespace troupe::torture {
namespace {

using distributed::Box;
using distributed::Grid;
using distributed::Layout;
using distributed::Matrix;
using distributed::Pfft3;
using distributed::Pgemm;

/// Something that is done again in each step.
class Deed {
 public:
  virtual ~Deed() = default;
  virtual void add_to(Checkpoint& state) = 0;
  virtual void step() = 0;
  /// Names what is wrong after so many steps; empty: nothing. All ranks call it.
  [[nodiscard]] virtual std::string damage(std::int64_t steps) = 0;
};

/// S = 2 op(A) op(B) - S of small integers: after two steps S is what it was.
template <class T>
class Product final : public Deed {
 public:
  Product(Random& random, Device& device, Grid& grid)
      : device_(device),
        seed_(random.next()),
        of_a_(reference::kTransposes[random.below(3)]),
        of_b_(reference::kTransposes[random.below(3)]),
        m_(random.between(1, 24)),
        n_(random.between(1, 24)),
        k_(random.between(1, 24)),
        a_(device, grid, layout(random, grid, m_, k_, of_a_)),
        b_(device, grid, layout(random, grid, k_, n_, of_b_)),
        sum_(device, grid, layout(random, grid, m_, n_, blas::Transpose::no)),
        plan_(device, grid, a_.layout(), b_.layout(), sum_.layout(),
              {.transpose_a = of_a_, .transpose_b = of_b_, .panel = random.between(1, 12)}) {
    upload(a_, 0), upload(b_, 1), upload(sum_, 2);
  }

  void add_to(Checkpoint& state) override {
    state.add("a", a_.local()), state.add("b", b_.local()), state.add("sum", sum_.local());
  }
  void step() override { plan_.multiply(T(2), a_, b_, T(-1), sum_); }
  std::string damage(std::int64_t steps) override {
    const auto is = device_.download(sum_.local());
    std::size_t place = 0;
    for (std::int64_t j = 0; j < sum_.local_columns(); ++j) {
      for (std::int64_t i = 0; i < sum_.local_rows(); ++i, ++place) {
        const auto row = sum_.row_at(i), column = sum_.column_at(j);
        auto wanted = element(2, row, column);
        if (steps % 2 != 0) {
          wanted = -wanted;
          for (std::int64_t l = 0; l < k_; ++l)
            wanted += 2.0 * of_op(of_a_, 0, row, l) * of_op(of_b_, 1, l, column);
        }
        if (reference::widen(is[place]) != wanted)
          return fmt::format("element ({}, {}) of a {} x {} product of {}, inner extent {}", row,
                             column, m_, n_, to_string(dtype_of<T>), k_);
      }
    }
    return {};
  }

 private:
  /// The layout of a matrix whose transpose is rows x columns.
  static Layout layout(Random& random, const Grid& grid, std::int64_t rows, std::int64_t columns,
                       blas::Transpose transpose) {
    if (transpose != blas::Transpose::no) std::swap(rows, columns);
    const auto block_rows = random.between(1, 8), block_columns = random.between(1, 8);
    const auto first_row = static_cast<int>(random.below(grid.rows())),
               first_column = static_cast<int>(random.below(grid.columns()));
    return {rows, columns, block_rows, block_columns, first_row, first_column};
  }
  [[nodiscard]] Wide element(int which, std::int64_t i, std::int64_t j) const {
    Random random(derive(seed_, static_cast<std::uint64_t>((which * 1000 + i) * 1000 + j)));
    const auto real = static_cast<double>(random.between(-3, 3));
    return {real, ComplexElement<T> ? static_cast<double>(random.between(-3, 3)) : 0.0};
  }
  [[nodiscard]] Wide of_op(blas::Transpose transpose, int which, std::int64_t i,
                           std::int64_t j) const {
    if (transpose == blas::Transpose::no) return element(which, i, j);
    const auto mirrored = element(which, j, i);
    return transpose == blas::Transpose::conjugate ? std::conj(mirrored) : mirrored;
  }
  void upload(Matrix<T>& matrix, int which) {
    std::vector<T> values;
    for (std::int64_t j = 0; j < matrix.local_columns(); ++j) {
      for (std::int64_t i = 0; i < matrix.local_rows(); ++i)
        values.push_back(
            reference::to_number<T>(element(which, matrix.row_at(i), matrix.column_at(j))));
    }
    device_.upload<T>(values, matrix.local()).get();
  }

  Device& device_;
  const std::uint64_t seed_;
  const blas::Transpose of_a_, of_b_;
  const std::int64_t m_, n_, k_;
  Matrix<T> a_, b_, sum_;
  Pgemm<T> plan_;
};

/// Rows of integers that go from rank to rank, each reading the next one's memory: after as many
/// steps as there are ranks each has its own again.
class GoingRound final : public Deed {
 public:
  GoingRound(Random& random, Device& device, Grid& grid)
      : device_(device),
        ranks_(grid.ranks()),
        rows_(random.between(1, 40)),
        length_(random.between(1, 300)),
        leading_(length_ + random.below(20)),
        seed_(random.next()),
        mine_(device.alloc<std::int64_t>(rows_ * leading_)),
        come_(device.alloc<std::int64_t>(rows_ * length_)) {
    device.upload<std::int64_t>(of(ranks_.rank()), come_);
    device.fill(mine_, std::int64_t{-1});
    put_back().get();
  }

  void add_to(Checkpoint& state) override {
    state.add("going round", mine_);
    state.add_scratch(come_);
  }
  void step() override {
    const auto next = static_cast<std::size_t>((ranks_.rank() + 1) % ranks_.size());
    if (all_.empty() || !all_[next].valid()) all_ = ranks_.map_all(mine_);
    const auto& theirs = all_[next];
    ranks_.device_barrier({mine_, theirs});
    device_.copy_rows(theirs, come_,
                      {.rows = rows_, .length = length_, .source_leading = leading_});
    ranks_.device_barrier({mine_, theirs});
    put_back();
  }
  std::string damage(std::int64_t steps) override {
    const auto is = device_.download(mine_);
    const auto wanted = of(static_cast<int>((ranks_.rank() + steps) % ranks_.size()));
    for (std::int64_t i = 0; i < rows_ * leading_; ++i) {
      const auto row = i / leading_, column = i % leading_;
      const auto its =
          column < length_ ? wanted[static_cast<std::size_t>(row * length_ + column)] : -1;
      if (is[static_cast<std::size_t>(i)] != its)
        return fmt::format("row {}, element {} of {} rows of {} that went round", row, column,
                           rows_, length_);
    }
    return {};
  }

 private:
  [[nodiscard]] std::vector<std::int64_t> of(int rank) const {
    Random random(derive(seed_, static_cast<std::uint64_t>(rank)));
    std::vector<std::int64_t> values;
    for (std::int64_t i = 0; i < rows_ * length_; ++i)
      values.push_back(random.between(0, std::int64_t{1} << 40));
    return values;
  }
  Future<void> put_back() {
    return device_.copy_rows(come_, mine_,
                             {.rows = rows_, .length = length_, .destination_leading = leading_});
  }

  Device& device_;
  Collectives& ranks_;
  const std::int64_t rows_, length_, leading_;
  const std::uint64_t seed_;
  GpuRef<std::int64_t> mine_, come_;
  std::vector<MappedRef<std::int64_t>> all_;
};

/// There and back, which multiplies by the number of elements: divided by it, it is what it was.
template <class E>
class Transform final : public Deed {
  using Value = typename Pfft3<E>::Value;

 public:
  Transform(Random& random, Device& device, Grid& grid)
      : device_(device),
        n_{random.between(1, 12), random.between(1, 12), random.between(1, 12)},
        volume_(n_[0] * n_[1] * n_[2]),
        plan_(device, grid, n_, static_cast<int>(random.below(4))) {
    for (std::int64_t i = 0; i < volume_; ++i) {
      const auto real = static_cast<double>(random.between(-3, 3));
      whole_.emplace_back(real,
                          ComplexElement<E> ? static_cast<double>(random.between(-3, 3)) : 0.0);
    }
    device
        .upload<E>(reference::to_numbers<E>(part_of(whole_, n_[2], plan_.space_box())),
                   plan_.space())
        .get();
    device.fill(plan_.spectrum(), Value()).get();
  }

  void add_to(Checkpoint& state) override {
    state.add("space", plan_.space());
    state.add_scratch(plan_.spectrum());
  }
  void step() override {
    plan_.forward();
    plan_.inverse();
    device_.blas().scal(E(static_cast<RealOf<E>>(1.0 / static_cast<double>(volume_))),
                        plan_.space());
  }
  std::string damage(std::int64_t steps) override {
    const auto volume = static_cast<double>(volume_), roundings = 16 * std::log2(volume + 2);
    const auto after = static_cast<double>(steps + 1);
    if (!near(device_.download(plan_.space()), part_of(whole_, n_[2], plan_.space_box()),
              roundings * after))
      return name("array");
    plan_.forward().get();
    const fft::Extents extents{n_[0], n_[1], n_[2]};
    auto kept = test::naive_dft(whole_, extents, -1);
    if (RealElement<E>) kept = test::half_spectrum(kept, extents);
    const auto stored = RealElement<E> ? n_[2] / 2 + 1 : n_[2];
    if (!near(device_.download(plan_.spectrum()), part_of(kept, stored, plan_.spectrum_box()),
              roundings * after * std::sqrt(volume)))
      return name("spectrum");
    return {};
  }

 private:
  [[nodiscard]] std::string name(std::string_view what) const {
    return fmt::format("the {} of {} x {} x {} of {}", what, n_[0], n_[1], n_[2],
                       to_string(dtype_of<E>));
  }
  /// The part of an array whose last extent is `last`.
  [[nodiscard]] std::vector<Wide> part_of(const std::vector<Wide>& whole, std::int64_t last,
                                          const Box& box) const {
    std::vector<Wide> part;
    for (std::int64_t i = 0; i < box.volume(); ++i) {
      const auto row = i / box.extent[2];
      const auto at =
          ((box.first[0] + row / box.extent[1]) * n_[1] + box.first[1] + row % box.extent[1]) *
              last +
          box.first[2] + i % box.extent[2];
      part.push_back(whole[static_cast<std::size_t>(at)]);
    }
    return part;
  }
  template <class N>
  static bool near(const std::vector<N>& is, const std::vector<Wide>& wanted, double roundings) {
    if (is.size() != wanted.size()) return false;
    const double tolerance = 4 * roundings * Trial::epsilon<N>();
    for (std::size_t i = 0; i < is.size(); ++i) {
      if (!(std::abs(reference::widen(is[i]) - wanted[i]) <= tolerance)) return false;
    }
    return true;
  }

  Device& device_;
  const std::array<std::int64_t, 3> n_;
  const std::int64_t volume_;
  Pfft3<E> plan_;
  std::vector<Wide> whole_;
};

constexpr std::int64_t kDeeds = 3;  ///< of a step, at most

template <template <class> class Kind>
std::unique_ptr<Deed> deed_of(Random& random, Device& device, Grid& grid) {
  switch (random.below(4)) {
    case 0: return std::make_unique<Kind<float>>(random, device, grid);
    case 1: return std::make_unique<Kind<double>>(random, device, grid);
    case 2: return std::make_unique<Kind<std::complex<float>>>(random, device, grid);
    default: return std::make_unique<Kind<std::complex<double>>>(random, device, grid);
  }
}

}  // namespace

void Runner::play_distributed(const Round& round) {
  Random random(derive(program_->seed, round_));
  const std::int64_t steps = round.special, every = random.between(1, 6);
  const auto path = runtime_.config().text("token-path");
  const bool maps = path != "network" && path != "nccl" && world_.local_size() == ranks_;
  std::vector<int> divisors;
  for (int rows = 1; rows <= ranks_; ++rows) {
    if (ranks_ % rows == 0) divisors.push_back(rows);
  }
  const int rows = random.of(divisors);
  // Where faults strike: a step, before which of its deeds, and on which rank.
  std::set<std::array<std::int64_t, 3>> strikes;
  for (auto left = program_->stormy ? random.between(1, 3) : 0; left > 0; --left)
    strikes.insert({random.below(steps), random.below(kDeeds + 1), random.below(ranks_)});
  {
    Grid grid(world_, rows, ranks_ / rows);
    const auto product = deed_of<Product>(random, device_, grid);
    const auto transform = deed_of<Transform>(random, device_, grid);
    const auto going_round = maps ? std::make_unique<GoingRound>(random, device_, grid) : nullptr;
    std::vector<Deed*> deeds{product.get(), transform.get()};
    if (going_round) deeds.push_back(going_round.get());
    Checkpoint state(device_);
    for (auto* deed : deeds) deed->add_to(state);
    world_.barrier();
    const auto strike = [&](std::int64_t step, std::int64_t deed) {
      if (strikes.erase({step, deed, rank_}) != 0) (void)device_.inject(memory::FaultKind::kill);
    };
    try {
      world_.run(state,
                 [&](std::int64_t step) {
                   account_.advance();
                   account_.count_operations(std::ssize(deeds));
                   for (std::size_t i = 0; i < deeds.size(); ++i) {
                     strike(step, static_cast<std::int64_t>(i));
                     deeds[i]->step();
                   }
                   strike(step, kDeeds);
                   return step + 1 == steps ? Step::done : Step::again;
                 },
                 {.commit_every = every, .save = SaveOptions{}});
    } catch (const Exception& e) {
      if (e.code() == Errc::budget_exhausted || e.code() == Errc::device_failed) throw;
      throw Finding(std::string("run() of products, transforms and reads fails: ") + e.what());
    }
    if (stormy_) settle();
    for (auto* deed : deeds) {
      if (const auto wrong = deed->damage(steps); !wrong.empty())
        throw Finding(fmt::format("WRONG CONTENTS: {} after {} steps on {} x {} ranks", wrong,
                                  steps, rows, ranks_ / rows));
    }
    world_.barrier();
  }
  (void)world_.split(-1);  // frees the communicators of the grid
}

}  // namespace troupe::torture
