#include <troupe/distributed/pgemm.hpp>

#include <algorithm>
#include <utility>

#include <troupe/distributed/redistribution.hpp>
#include <troupe/lib/blas.hpp>

namespace troupe::distributed {
namespace {

using blas::Transpose;

/// The extents of op(matrix).
std::pair<std::int64_t, std::int64_t> extents_of(const Layout& layout, Transpose transpose) {
  return transpose == Transpose::no ? std::pair(layout.rows, layout.columns)
                                    : std::pair(layout.columns, layout.rows);
}

/// What all ranks must have said alike.
struct Arguments {
  std::array<Layout, 3> layouts;
  PgemmOptions options;
  [[nodiscard]] bool operator==(const Arguments& other) const {
    return layouts == other.layouts && options.transpose_a == other.options.transpose_a &&
           options.transpose_b == other.options.transpose_b && options.panel == other.options.panel;
  }
};

}  // namespace

template <FieldElement T>
Pgemm<T>::Pgemm(Device& device, Grid& grid, const Layout& a, const Layout& b, const Layout& c,
                const PgemmOptions& options)
    : device_(&device), grid_(&grid), given_{a, b, c}, options_(options) {
  const auto all = grid.ranks().gather_values(Arguments{given_, options});
  auto outcome = check();
  if (std::any_of(all.begin(), all.end(), [&](const Arguments& one) { return !(one == all[0]); }))
    outcome = Error{Errc::invalid, 0, "pgemm: the ranks want different products"};
  if (outcome.ok()) outcome = allocate();
  grid.ranks().agree(outcome);
}
template <FieldElement T>
Pgemm<T>::~Pgemm() = default;

template <FieldElement T>
Result<void> Pgemm<T>::check() const {
  for (const auto& layout : given_) {
    if (auto fits = layout.check(grid_->rows(), grid_->columns()); !fits.ok()) return fits;
  }
  const auto [m, k] = extents_of(given_[0], options_.transpose_a);
  const auto [k_of_b, n] = extents_of(given_[1], options_.transpose_b);
  if (m != given_[2].rows || n != given_[2].columns || k != k_of_b) {
    const auto text = [](std::int64_t rows, std::int64_t columns) {
      return std::to_string(rows) + " x " + std::to_string(columns);
    };
    return Error{Errc::invalid, 0,
                 "pgemm: op(a) is " + text(m, k) + ", op(b) " + text(k_of_b, n) + ", c " +
                     text(given_[2].rows, given_[2].columns)};
  }
  if (options_.panel < 1) return Error{Errc::invalid, 0, "pgemm: a panel has at least 1 column"};
  return {};
}

template <FieldElement T>
Result<void> Pgemm<T>::allocate() {
  plan();
  std::int64_t widest = 0;
  for (const auto& panel : panels_) widest = std::max(widest, panel.width);
  try {
    if (a_ != given_[0] || options_.transpose_a != Transpose::no) {
      copy_a_ = device_->alloc<T>(m_ * a_.column_axis(grid_->columns()).extent_of(grid_->column()),
                                  "pgemm's A");
      bring_a_ = std::make_unique<Redistribution<T>>(*device_, *grid_, given_[0], a_,
                                                     options_.transpose_a);
    }
    if (b_ != given_[1] || options_.transpose_b != Transpose::no) {
      copy_b_ = device_->alloc<T>(k_of_b_ * n_, "pgemm's B");
      bring_b_ = std::make_unique<Redistribution<T>>(*device_, *grid_, given_[1], b_,
                                                     options_.transpose_b);
    }
    for (auto& panel : panels_a_)
      panel = device_->alloc<T>(grid_->columns() > 1 ? m_ * widest : 0, "pgemm's panel of A");
    for (auto& panel : panels_b_)
      panel = device_->alloc<T>(grid_->rows() > 1 ? n_ * widest : 0, "pgemm's panel of B");
  } catch (const Exception& e) {
    return e.error();
  }
  return {};
}

/// op(A) gets the rows of C, op(B) its columns; along k they stay as they are where they can, and
/// are otherwise dealt out in equal blocks.
template <FieldElement T>
void Pgemm<T>::plan() {
  const auto& c = given_[2];
  a_ = given_[0], b_ = given_[1];
  const auto k = extents_of(given_[0], options_.transpose_a).second;
  if (options_.transpose_a != Transpose::no)
    a_ = Layout::blocks(c.rows, k, grid_->rows(), grid_->columns());
  if (options_.transpose_b != Transpose::no)
    b_ = Layout::blocks(k, c.columns, grid_->rows(), grid_->columns());
  a_.block_rows = c.block_rows, a_.first_row = c.first_row;
  b_.block_columns = c.block_columns, b_.first_column = c.first_column;
  m_ = c.row_axis(grid_->rows()).extent_of(grid_->row());
  n_ = c.column_axis(grid_->columns()).extent_of(grid_->column());
  const auto of_a = a_.column_axis(grid_->columns()), of_b = b_.row_axis(grid_->rows());
  k_of_b_ = of_b.extent_of(grid_->row());
  for (std::int64_t i = 0; i < k;) {
    const auto width =
        std::min({options_.panel, of_a.block - i % of_a.block, of_b.block - i % of_b.block, k - i});
    panels_.push_back(
        {width, of_a.owner_of(i), of_b.owner_of(i), of_a.place_of(i), of_b.place_of(i)});
    i += width;
  }
}

template <FieldElement T>
Result<void> Pgemm<T>::check_arguments(const Matrix<T>& a, const Matrix<T>& b,
                                       const Matrix<T>& c) const {
  const std::array matrices{&a, &b, &c};
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    if (&matrices[i]->grid() != grid_)
      return Error{Errc::invalid, 0, "pgemm: a matrix is on another grid"};
    if (matrices[i]->layout() != given_[i])
      return Error{Errc::invalid, 0,
                   "pgemm: a matrix is " + matrices[i]->layout().to_string() + ", the plan's " +
                       given_[i].to_string()};
  }
  if (&c == &a || &c == &b) return Error{Errc::invalid, 0, "pgemm: c is a or b"};
  if (!grid_->whole()) return Error{Errc::stale, 0, "pgemm: the grid has lost ranks"};
  return {};
}

template <FieldElement T>
MatrixRef<GpuRef<T>> Pgemm<T>::panel_a(std::size_t number, const GpuRef<T>& a) const {
  const auto& panel = panels_[number];
  const auto length = m_ * panel.width;
  return {grid_->columns() > 1 ? panels_a_[number % 2].slice(0, length)
                               : a.slice(panel.place_a * m_, length),
          m_, panel.width};
}
template <FieldElement T>
MatrixRef<GpuRef<T>> Pgemm<T>::panel_b(std::size_t number, const GpuRef<T>& b) const {
  const auto& panel = panels_[number];
  if (grid_->rows() > 1) return {panels_b_[number % 2].slice(0, panel.width * n_), panel.width, n_};
  return {b.slice(panel.place_b, blas::span_of(panel.width, n_, k_of_b_)), panel.width, n_,
          k_of_b_};
}

template <FieldElement T>
void Pgemm<T>::send(std::size_t number, const GpuRef<T>& a, const GpuRef<T>& b,
                    std::vector<Future<void>>& ends) {
  const auto& panel = panels_[number];
  if (grid_->columns() > 1 && m_ > 0) {  // columns of a column-major matrix: no gaps
    const bool mine = grid_->column() == panel.column;
    const auto source = mine ? a.slice(panel.place_a * m_, m_ * panel.width) : GpuRef<T>();
    ends.push_back(
        grid_->along_row().broadcast(source, panel_a(number, a).buffer, Rank(panel.column)));
  }
  if (grid_->rows() > 1 && n_ > 0) {
    const auto to = panel_b(number, b);
    if (grid_->row() == panel.row) {
      const MatrixRef<GpuRef<T>> rows(
          b.slice(panel.place_b, blas::span_of(panel.width, n_, k_of_b_)), panel.width, n_,
          k_of_b_);
      ends.push_back(device_->blas().template geam<T>(Transpose::no, Transpose::no, T(1), rows,
                                                      T(0), rows, to));
    }
    ends.push_back(grid_->along_column().broadcast(to.buffer, Rank(panel.row)));
  }
}

template <FieldElement T>
Future<void> Pgemm<T>::multiply(const ScalarOf<GpuRef<T>>& alpha, const Matrix<T>& a,
                                const Matrix<T>& b, const ScalarOf<GpuRef<T>>& beta,
                                const Matrix<T>& c) {
  if (const auto fits = check_arguments(a, b, c); !fits.ok())
    return device_->submitter().refuse(fits.error());
  const auto usable = [](GpuRef<T>& buffer) {
    if (buffer && !buffer.valid()) buffer.renew();
  };
  for (auto* pair : {&panels_a_, &panels_b_}) std::for_each(pair->begin(), pair->end(), usable);
  usable(copy_a_), usable(copy_b_);

  std::vector<Future<void>> ends;
  if (bring_a_) ends.push_back(bring_a_->run(a.local(), copy_a_));
  if (bring_b_) ends.push_back(bring_b_->run(b.local(), copy_b_));
  const auto& of_a = bring_a_ ? copy_a_ : a.local();
  const auto& of_b = bring_b_ ? copy_b_ : b.local();
  const MatrixRef<GpuRef<T>> result(c.local(), m_, n_);
  const bool any = m_ > 0 && n_ > 0;
  auto blas = device_->blas();
  if (panels_.empty() && any) {  // k = 0: C = beta C
    const MatrixRef<GpuRef<T>> nothing_a(copy_a_, m_, 0), nothing_b(copy_b_, 0, n_);
    ends.push_back(blas.template gemm<T>(Transpose::no, Transpose::no, alpha, nothing_a, nothing_b,
                                         beta, result));
  }
  // The panels after these are on their way before these are multiplied.
  if (!panels_.empty()) send(0, of_a, of_b, ends);
  for (std::size_t i = 0; i < panels_.size(); ++i) {
    if (i + 1 < panels_.size()) send(i + 1, of_a, of_b, ends);
    if (!any) continue;
    ends.push_back(blas.template gemm<T>(Transpose::no, Transpose::no, alpha, panel_a(i, of_a),
                                         panel_b(i, of_b),
                                         i == 0 ? beta : ScalarOf<GpuRef<T>>(T(1)), result));
  }
  return when_all(std::move(ends));
}

template <FieldElement T>
void Pgemm<T>::add_scratch(Checkpoint& state) {
  for (auto* buffer :
       {&copy_a_, &copy_b_, &panels_a_[0], &panels_a_[1], &panels_b_[0], &panels_b_[1]}) {
    if (*buffer) state.add_scratch(*buffer);
  }
  for (auto* bring : {bring_a_.get(), bring_b_.get()}) {
    if (bring != nullptr) bring->add_scratch(state);
  }
}

template class Pgemm<float>;
template class Pgemm<double>;
template class Pgemm<std::complex<float>>;
template class Pgemm<std::complex<double>>;

}  // namespace troupe::distributed
