#include <troupe/distributed/matrix.hpp>

#include <algorithm>
#include <string>

namespace troupe::distributed {
namespace {

/// All ranks say the same root, and there is such a rank in the grid.
Result<void> check_root(const char* what, Grid& grid, int root) {
  auto& ranks = grid.ranks();
  const auto all = ranks.gather_values(root);
  const bool alike = std::all_of(all.begin(), all.end(), [&](int other) { return other == root; });
  if (!grid.whole())
    return Error{Errc::invalid, 0,
                 std::string(what) + ": the grid was made of other ranks than there are now"};
  if (alike && root >= 0 && root < ranks.size()) return {};
  return Error{Errc::invalid, 0,
               std::string(what) + (alike ? ": there is no rank " + std::to_string(root) + " of " +
                                                std::to_string(ranks.size())
                                          : std::string(": the ranks name different roots"))};
}

}  // namespace

template <FieldElement T>
Matrix<T>::Matrix(Device& device, Grid& grid, const Layout& layout, std::string_view name)
    : device_(&device),
      grid_(&grid),
      layout_(layout),
      rows_(layout.row_axis(grid.rows())),
      columns_(layout.column_axis(grid.columns())) {
  auto outcome = layout.check(grid.rows(), grid.columns());
  if (outcome.ok()) {
    auto made = device.try_alloc<T>(local_rows() * local_columns(), name);
    if (made.ok()) local_ = std::move(*made);
    if (!made.ok()) outcome = made.error();
  }
  const auto all = grid.ranks().gather_values(layout);
  if (std::any_of(all.begin(), all.end(), [&](const Layout& other) { return other != all[0]; }))
    outcome = Error{Errc::invalid, 0, "the ranks want matrices of different layouts"};
  grid.ranks().agree(outcome);
}

template <FieldElement T>
void Matrix<T>::scatter(std::span<const T> whole, int root) {
  auto& ranks = grid_->ranks();
  const bool here = ranks.rank() == root;
  auto outcome = check_root("scatter", *grid_, root);
  if (outcome.ok() && here && std::ssize(whole) != layout_.rows * layout_.columns)
    outcome =
        Error{Errc::invalid, 0,
              "scatter: " + std::to_string(whole.size()) + " elements for " + layout_.to_string()};
  ranks.agree(outcome);
  std::vector<std::vector<T>> parts(static_cast<std::size_t>(ranks.size()));
  for (std::int64_t j = 0; here && j < layout_.columns; ++j) {
    for (std::int64_t i = 0; i < layout_.rows; ++i) {
      const int owner = grid_->rank_at(rows_.owner_of(i), columns_.owner_of(j));
      parts[static_cast<std::size_t>(owner)].push_back(
          whole[static_cast<std::size_t>(j * layout_.rows + i)]);
    }
  }
  const auto mine = ranks.exchange_values(parts);
  device_->upload<T>(mine[static_cast<std::size_t>(root)], local_).get();
}

template <FieldElement T>
std::vector<T> Matrix<T>::gather(int root) const {
  auto& ranks = grid_->ranks();
  ranks.agree(check_root("gather", *grid_, root));
  std::vector<std::vector<T>> parts(static_cast<std::size_t>(ranks.size()));
  parts[static_cast<std::size_t>(root)] = device_->download(local_);
  const auto all = ranks.exchange_values(parts);
  if (ranks.rank() != root) return {};
  std::vector<T> whole;
  whole.reserve(static_cast<std::size_t>(layout_.rows * layout_.columns));
  for (std::int64_t j = 0; j < layout_.columns; ++j) {
    for (std::int64_t i = 0; i < layout_.rows; ++i) {
      const int row = rows_.owner_of(i), column = columns_.owner_of(j);
      const auto place = columns_.place_of(j) * rows_.extent_of(row) + rows_.place_of(i);
      whole.push_back(all[static_cast<std::size_t>(grid_->rank_at(row, column))]
                         [static_cast<std::size_t>(place)]);
    }
  }
  return whole;
}

template class Matrix<float>;
template class Matrix<double>;
template class Matrix<std::complex<float>>;
template class Matrix<std::complex<double>>;

}  // namespace troupe::distributed
