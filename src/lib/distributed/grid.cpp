#include <troupe/distributed/grid.hpp>

#include <algorithm>
#include <array>
#include <string>

namespace troupe::distributed {

Grid::Grid(Collectives& ranks, int rows, int columns)
    : ranks_(&ranks), rows_(rows), columns_(columns) {
  const std::array wanted{rows, columns};
  const auto all = ranks.gather_values(wanted);
  const std::string text = std::to_string(rows) + " x " + std::to_string(columns);
  if (std::any_of(all.begin(), all.end(), [&](const auto& other) { return other != all[0]; }))
    throw CollectiveException({Errc::invalid, 0, "the ranks want grids of different extents"});
  if (rows < 1 || columns < 1 || std::int64_t{rows} * columns != ranks.size())
    throw CollectiveException(
        {Errc::invalid, 0,
         "a grid of " + text + " does not fit " + std::to_string(ranks.size()) + " ranks"});
  place_ = ranks.rank();
  if (rows != 1) along_row_ = ranks.split(row(), column());
  if (columns != 1) along_column_ = ranks.split(column(), row());
}

}  // namespace troupe::distributed
