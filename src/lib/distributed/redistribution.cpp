#include <troupe/distributed/redistribution.hpp>

#include <algorithm>
#include <map>
#include <utility>

#include <troupe/lib/blas.hpp>

namespace troupe::distributed {
namespace {

/// Indices of an axis that lie one behind the other with the owner before and with the one after.
struct Run {
  int from = 0, to = 0;
  std::int64_t place_from = 0, place_to = 0, length = 0;
};

/// In an order that all ranks find alike.
std::vector<Run> runs_of(const Axis& before, const Axis& after) {
  std::map<std::pair<int, int>, std::vector<Run>> runs;
  for (std::int64_t i = 0; i < before.extent;) {
    const auto length = std::min(
        {before.block - i % before.block, after.block - i % after.block, before.extent - i});
    const Run run{before.owner_of(i), after.owner_of(i), before.place_of(i), after.place_of(i),
                  length};
    auto& known = runs[{run.from, run.to}];
    if (!known.empty() && known.back().place_from + known.back().length == run.place_from &&
        known.back().place_to + known.back().length == run.place_to)
      known.back().length += length;
    else
      known.push_back(run);
    i += length;
  }
  std::vector<Run> all;
  for (const auto& [owners, some] : runs) all.insert(all.end(), some.begin(), some.end());
  return all;
}

/// Places them one behind the other, by peer; gives how much each peer has.
template <class Piece>
std::vector<std::int64_t> pack(std::vector<Piece>& pieces, int ranks) {
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const Piece& a, const Piece& b) { return a.peer < b.peer; });
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(ranks), 0);
  std::int64_t first = 0;
  for (auto& piece : pieces) {
    piece.packed = first;
    first += piece.rows * piece.columns;
    lengths[static_cast<std::size_t>(piece.peer)] += piece.rows * piece.columns;
  }
  return lengths;
}

std::int64_t leading_of(std::int64_t rows) {
  return std::max<std::int64_t>(1, rows);
}

}  // namespace

template <FieldElement T>
Redistribution<T>::Redistribution(Device& device, Grid& grid, const Layout& source,
                                  const Layout& destination, blas::Transpose transpose)
    : device_(&device), grid_(&grid), transpose_(transpose) {
  const bool plain = transpose == blas::Transpose::no;
  const auto source_rows = source.row_axis(grid.rows()),
             source_columns = source.column_axis(grid.columns()),
             rows = destination.row_axis(grid.rows()),
             columns = destination.column_axis(grid.columns());
  source_leading_ = leading_of(source_rows.extent_of(grid.row()));
  destination_leading_ = leading_of(rows.extent_of(grid.row()));
  const int me = grid.rank_at(grid.row(), grid.column());
  // With a transpose the source's columns become rows.
  const auto row_runs = runs_of(plain ? source_rows : source_columns, rows),
             column_runs = runs_of(plain ? source_columns : source_rows, columns);
  for (const auto& column : column_runs) {
    for (const auto& row : row_runs) {
      const auto& [from_row, from_column] = plain ? std::tie(row, column) : std::tie(column, row);
      const int from = grid.rank_at(from_row.from, from_column.from),
                to = grid.rank_at(row.to, column.to);
      const auto leaves = from_column.place_from * source_leading_ + from_row.place_from,
                 arrives = column.place_to * destination_leading_ + row.place_to;
      exchanges_ = exchanges_ || from != to;
      if (from == me && to == me)
        stays_.push_back({me, row.length, column.length, leaves, 0, arrives});
      else if (from == me)
        sent_.push_back({to, row.length, column.length, leaves});
      else if (to == me)
        received_.push_back({from, row.length, column.length, arrives});
    }
  }
  const int ranks = grid.rows() * grid.columns();
  sent_lengths_ = pack(sent_, ranks), received_lengths_ = pack(received_, ranks);
  const auto total = [](const std::vector<Piece>& pieces) {
    return pieces.empty() ? 0 : pieces.back().packed + pieces.back().rows * pieces.back().columns;
  };
  outgoing_ = device.alloc<T>(total(sent_));
  incoming_ = device.alloc<T>(total(received_));
}

template <FieldElement T>
Future<void> Redistribution<T>::copy(blas::Transpose transpose, const Piece& piece,
                                     const GpuRef<T>& from, std::int64_t first,
                                     std::int64_t leading, const GpuRef<T>& to,
                                     std::int64_t to_first, std::int64_t to_leading) {
  const bool plain = transpose == blas::Transpose::no;
  const auto rows = plain ? piece.rows : piece.columns,
             columns = plain ? piece.columns : piece.rows;
  const MatrixRef source(from.slice(first, blas::span_of(rows, columns, leading)), rows, columns,
                         leading),
      result(to.slice(to_first, blas::span_of(piece.rows, piece.columns, to_leading)), piece.rows,
             piece.columns, to_leading);
  return device_->blas().template geam<T>(transpose, transpose, T(1), source, T(0), source, result);
}

template <FieldElement T>
Future<void> Redistribution<T>::run(const GpuRef<T>& source, const GpuRef<T>& destination) {
  for (auto* buffer : {&outgoing_, &incoming_}) {
    if (!buffer->valid()) buffer->renew();
  }
  std::vector<Future<void>> ends;
  for (const auto& piece : sent_)
    ends.push_back(copy(transpose_, piece, source, piece.local, source_leading_, outgoing_,
                        piece.packed, piece.rows));
  if (exchanges_)
    ends.push_back(grid_->ranks().template all_to_all<T>(outgoing_, sent_lengths_, incoming_,
                                                         received_lengths_));
  for (const auto& piece : stays_)
    ends.push_back(copy(transpose_, piece, source, piece.local, source_leading_, destination,
                        piece.arrives, destination_leading_));
  for (const auto& piece : received_)
    ends.push_back(copy(blas::Transpose::no, piece, incoming_, piece.packed, piece.rows,
                        destination, piece.local, destination_leading_));
  return when_all(std::move(ends));
}

template class Redistribution<float>;
template class Redistribution<double>;
template class Redistribution<std::complex<float>>;
template class Redistribution<std::complex<double>>;

}  // namespace troupe::distributed
