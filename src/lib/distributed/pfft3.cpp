#include <troupe/distributed/pfft3.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

#include <troupe/lib/blas.hpp>

// In the comments an array's axes stand in the order of memory, the last one varying fastest: l0
// and l1 are this rank's parts of the array in space, c1 and c2 those of the spectrum.

namespace troupe::distributed {

namespace {

/// Transforms one behind the other, and side by side.
constexpr fft::Storage kPacked{};
constexpr fft::Storage side_by_side(std::int64_t count) {
  return {.distance = 1, .stride = count};
}

}  // namespace

template <Real T>
typename Pfft3<T>::Parts Pfft3<T>::parts_of(std::int64_t extent, int parts) {
  Parts result;
  for (std::int64_t r = 0; r < parts; ++r) {
    result.first.push_back(extent * r / parts);
    result.extent.push_back(extent * (r + 1) / parts - extent * r / parts);
  }
  return result;
}

template <Real T>
std::vector<std::int64_t> Pfft3<T>::lengths(const Parts& parts, std::int64_t each) {
  auto lengths = parts.extent;
  for (auto& length : lengths) length *= each;
  return lengths;
}

template <Real T>
Pfft3<T>::Pfft3(Device& device, Grid& grid, const std::array<std::int64_t, 3>& extents, int pieces)
    : device_(&device), grid_(&grid), n_(extents), pieces_(pieces) {
  constexpr std::int64_t kMostOfOne = (std::int64_t{1} << 31) - 1, kMost = std::int64_t{1} << 48;
  Result<void> outcome;
  std::int64_t volume = 1;
  for (const auto n : extents) {
    if (n < 1 || n > kMostOfOne || volume > kMost / n)
      outcome = Error{Errc::invalid, 0,
                      "pfft3: " + std::to_string(extents[0]) + " x " + std::to_string(extents[1]) +
                          " x " + std::to_string(extents[2]) + " elements"};
    if (!outcome.ok()) break;
    volume *= n;
  }
  if (pieces < 0 || pieces > kMostPieces)
    outcome =
        Error{Errc::invalid, 0, "pfft3: from 0 to " + std::to_string(kMostPieces) + " pieces"};
  const auto all = grid.ranks().gather_values(
      std::array<std::int64_t, 4>{extents[0], extents[1], extents[2], pieces});
  if (std::any_of(all.begin(), all.end(), [&](const auto& other) { return other != all[0]; }))
    outcome = Error{Errc::invalid, 0, "pfft3: the ranks want different transforms"};
  constexpr std::int64_t kPieceBytes = 16 << 20;
  if (outcome.ok() && pieces == 0)
    pieces_ = static_cast<int>(std::clamp<std::int64_t>(
        volume / grid.rows() * static_cast<std::int64_t>(sizeof(Value)) / kPieceBytes, 1, 4));
  if (outcome.ok()) outcome = allocate();
  grid.ranks().agree(outcome);
}

template <Real T>
Result<void> Pfft3<T>::allocate() {
  parts_0_ = parts_of(n_[0], grid_->rows()), parts_1_rows_ = parts_of(n_[1], grid_->rows());
  parts_1_columns_ = parts_of(n_[1], grid_->columns()),
  parts_2_ = parts_of(n_[2], grid_->columns());
  const auto p = static_cast<std::size_t>(grid_->row()),
             q = static_cast<std::size_t>(grid_->column());
  space_box_ = {{parts_0_.first[p], parts_1_columns_.first[q], 0},
                {parts_0_.extent[p], parts_1_columns_.extent[q], n_[2]}};
  spectrum_box_ = {{0, parts_1_rows_.first[p], parts_2_.first[q]},
                   {n_[0], parts_1_rows_.extent[p], parts_2_.extent[q]}};
  const auto between = parts_0_.extent[p] * n_[1] * parts_2_.extent[q];  // with all of axis 1
  const auto largest = std::max({space_box_.volume(), spectrum_box_.volume(), between});
  try {
    space_ = device_->alloc<Value>(space_box_.volume(), "pfft3's space");
    spectrum_ = device_->alloc<Value>(spectrum_box_.volume(), "pfft3's spectrum");
    for (auto& buffer : work_) buffer = device_->alloc<Value>(largest, "pfft3's room");
  } catch (const Exception& e) {
    return e.error();
  }
  return {};
}

template <Real T>
Future<void> Pfft3<T>::forward() {
  return run(spectrum_, &Pfft3::pencils_forward, &Pfft3::slabs_forward, fft::Kind::forward);
}
template <Real T>
Future<void> Pfft3<T>::inverse() {
  return run(space_, &Pfft3::pencils_inverse, &Pfft3::slabs_inverse, fft::Kind::inverse);
}

template <Real T>
Future<void> Pfft3<T>::run(GpuRef<Value>& destination, void (Pfft3::*pencils)(Ends&),
                           void (Pfft3::*slabs)(Ends&), fft::Kind kind) {
  if (!grid_->whole())
    return device_->submitter().refuse({Errc::stale, 0, "pfft3: the grid has lost ranks"});
  for (auto* buffer : {&work_[0], &work_[1], &destination}) {
    if (!buffer->valid()) buffer->renew();
  }
  Ends ends;
  if (grid_->rows() * grid_->columns() == 1) {
    const FftOptions shape{.extents = {n_[0], n_[1], n_[2]}};
    ends.push_back(kind == fft::Kind::forward
                       ? device_->fft().template forward<T>(space_, spectrum_, shape)
                       : device_->fft().template inverse<T>(spectrum_, space_, shape));
  } else {
    (this->*(grid_->columns() == 1 ? slabs : pencils))(ends);
  }
  return when_all(std::move(ends));
}

/// Rows of the array go piece by piece, so that one travels while the next is transformed.
template <Real T>
void Pfft3<T>::slabs_forward(Ends& ends) {
  const auto c1 = spectrum_box_.extent[1], plane = n_[1] * n_[2];
  const auto me = static_cast<std::size_t>(grid_->row());
  for (std::size_t piece = 0; piece < pieces_of(me).first.size(); ++piece) {
    const auto first = pieces_of(me).first[piece], rows = pieces_of(me).extent[piece];
    const auto whole = work_[0].slice(first * plane, rows * plane),
               apart = work_[1].slice(first * plane, rows * plane);
    if (rows > 0)
      ends.push_back(
          device_->fft().template forward<T>(space_.slice(first * plane, rows * plane), whole,
                                             {.extents = {n_[1], n_[2]}, .batch = rows}));
    std::vector<Transfer<Value>> sends, receives;
    for (std::size_t peer = 0; peer < parts_0_.first.size(); ++peer) {
      const auto theirs = pieces_of(peer);
      const auto arrives =
          spectrum_.slice((parts_0_.first[peer] + theirs.first[piece]) * c1 * n_[2],
                          theirs.extent[piece] * c1 * n_[2]);  // of n0 c1 n2
      const auto length = parts_1_rows_.extent[peer] * n_[2],
                 begin = parts_1_rows_.first[peer] * n_[2];
      if (rows * length > 0) {
        const auto to = peer == me ? arrives : apart.slice(rows * begin, rows * length);
        copy(whole.slice(begin, blas::span_of(length, rows, plane)), plane, to, length, length,
             rows, ends);
        if (peer != me) sends.push_back({to, Rank(static_cast<int>(peer))});
      }
      if (peer != me && arrives.length() > 0)
        receives.push_back({arrives, Rank(static_cast<int>(peer))});
    }
    ends.push_back(grid_->along_column().template exchange<Value>(sends, receives));
  }
  transform(fft::Kind::forward, n_[0], c1 * n_[2], spectrum_, side_by_side(c1 * n_[2]), spectrum_,
            side_by_side(c1 * n_[2]), ends);
}

/// Here it is rows of the spectrum, along axis 1, that go piece by piece.
template <Real T>
void Pfft3<T>::slabs_inverse(Ends& ends) {
  const auto l0 = space_box_.extent[0], c1 = spectrum_box_.extent[1], plane = n_[1] * n_[2];
  const auto me = static_cast<std::size_t>(grid_->row());
  const auto place = [&](const GpuRef<Value>& from, std::int64_t row, std::int64_t rows) {
    copy(from, rows * n_[2], space_.slice(row * n_[2], blas::span_of(rows * n_[2], l0, plane)),
         plane, rows * n_[2], l0, ends);
  };
  for (std::size_t piece = 0; piece < pieces_of_spectrum(me).first.size(); ++piece) {
    const auto first = pieces_of_spectrum(me).first[piece],
               count = pieces_of_spectrum(me).extent[piece] * n_[2];
    const auto lines = work_[0].slice(n_[0] * first * n_[2], n_[0] * count);
    transform(fft::Kind::inverse, n_[0], count,
              spectrum_.slice(first * n_[2], blas::span_of(count, n_[0], c1 * n_[2])),
              side_by_side(c1 * n_[2]), lines, side_by_side(count), ends);
    std::vector<Transfer<Value>> sends, receives;
    for (std::size_t peer = 0; peer < parts_0_.first.size(); ++peer) {
      const auto part = lines.slice(parts_0_.first[peer] * count, parts_0_.extent[peer] * count);
      const auto theirs = pieces_of_spectrum(peer);
      const auto row = parts_1_rows_.first[peer] + theirs.first[piece], rows = theirs.extent[piece];
      if (peer != me && part.length() > 0) sends.push_back({part, Rank(static_cast<int>(peer))});
      if (peer != me && l0 * rows > 0)
        receives.push_back(
            {work_[1].slice(l0 * row * n_[2], l0 * rows * n_[2]), Rank(static_cast<int>(peer))});
      if (peer == me && part.length() > 0) place(part, row, rows);
    }
    ends.push_back(grid_->along_column().template exchange<Value>(sends, receives));
    for (const auto& [arrived, peer] : receives) {
      const auto theirs = pieces_of_spectrum(static_cast<std::size_t>(peer.value));
      place(arrived,
            parts_1_rows_.first[static_cast<std::size_t>(peer.value)] + theirs.first[piece],
            theirs.extent[piece]);
    }
  }
  if (l0 > 0)
    ends.push_back(device_->fft().template inverse<T>(space_, space_,
                                                      {.extents = {n_[1], n_[2]}, .batch = l0}));
}

template <Real T>
void Pfft3<T>::pencils_forward(Ends& ends) {
  constexpr auto kForward = fft::Kind::forward;
  const auto l0 = space_box_.extent[0], l1 = space_box_.extent[1], c1 = spectrum_box_.extent[1],
             c2 = spectrum_box_.extent[2];
  const auto in = [](const GpuRef<Value>& buffer, std::int64_t length) {
    return buffer.slice(0, length);
  };
  const auto first = in(work_[0], n_[2] * l0 * l1), first_apart = in(work_[1], c2 * l0 * n_[1]),
             middle = in(work_[0], c2 * l0 * n_[1]), turned = in(work_[1], n_[1] * c2 * l0),
             last_apart = in(work_[0], c1 * c2 * n_[0]), last = in(work_[1], c1 * c2 * n_[0]);
  transform(kForward, n_[2], l0 * l1, space_, kPacked, first, side_by_side(l0 * l1), ends);
  exchange(grid_->along_row(), lengths(parts_2_, l0 * l1), first,
           lengths(parts_1_columns_, c2 * l0), first_apart, ends);
  join(first_apart, parts_1_columns_, c2 * l0, 1, middle, ends);  // c2 l0 n1
  transform(kForward, n_[1], c2 * l0, middle, kPacked, turned, side_by_side(c2 * l0), ends);
  exchange(grid_->along_column(), lengths(parts_1_rows_, c2 * l0), turned,
           lengths(parts_0_, c1 * c2), last_apart, ends);
  join(last_apart, parts_0_, c1 * c2, 1, last, ends);  // c1 c2 n0
  transform(kForward, n_[0], c1 * c2, last, kPacked, spectrum_, side_by_side(c1 * c2), ends);
}

template <Real T>
void Pfft3<T>::pencils_inverse(Ends& ends) {
  constexpr auto kInverse = fft::Kind::inverse;
  const auto l0 = space_box_.extent[0], l1 = space_box_.extent[1], c1 = spectrum_box_.extent[1],
             c2 = spectrum_box_.extent[2];
  const auto in = [](const GpuRef<Value>& buffer, std::int64_t length) {
    return buffer.slice(0, length);
  };
  const auto last = in(work_[0], c1 * c2 * n_[0]), last_apart = in(work_[1], c1 * c2 * n_[0]),
             turned = in(work_[0], n_[1] * c2 * l0), middle = in(work_[1], c2 * l0 * n_[1]),
             first_apart = in(work_[0], c2 * l0 * n_[1]), first = in(work_[1], n_[2] * l0 * l1);
  transform(kInverse, n_[0], c1 * c2, spectrum_, side_by_side(c1 * c2), last, kPacked, ends);
  split(last, parts_0_, c1 * c2, 1, last_apart, ends);
  exchange(grid_->along_column(), lengths(parts_0_, c1 * c2), last_apart,
           lengths(parts_1_rows_, c2 * l0), turned, ends);  // n1 c2 l0
  transform(kInverse, n_[1], c2 * l0, turned, side_by_side(c2 * l0), middle, kPacked, ends);
  split(middle, parts_1_columns_, c2 * l0, 1, first_apart, ends);
  exchange(grid_->along_row(), lengths(parts_1_columns_, c2 * l0), first_apart,
           lengths(parts_2_, l0 * l1), first, ends);  // n2 l0 l1
  transform(kInverse, n_[2], l0 * l1, first, side_by_side(l0 * l1), space_, kPacked, ends);
}

template <Real T>
void Pfft3<T>::transform(fft::Kind kind, std::int64_t extent, std::int64_t count,
                         const GpuRef<Value>& from, const fft::Storage& from_storage,
                         const GpuRef<Value>& to, const fft::Storage& to_storage, Ends& ends) {
  if (count == 0) return;
  const FftOptions shape{{extent}, count, from_storage, to_storage};
  ends.push_back(kind == fft::Kind::forward ? device_->fft().template forward<T>(from, to, shape)
                                            : device_->fft().template inverse<T>(from, to, shape));
}

template <Real T>
void Pfft3<T>::split(const GpuRef<Value>& whole, const Parts& parts, std::int64_t rows,
                     std::int64_t each, const GpuRef<Value>& apart, Ends& ends) {
  const auto leading =
      each * std::accumulate(parts.extent.begin(), parts.extent.end(), std::int64_t{});
  for (std::size_t peer = 0; peer < parts.first.size(); ++peer) {
    const auto length = each * parts.extent[peer], first = each * parts.first[peer];
    if (length == 0 || rows == 0) continue;
    copy(whole.slice(first, blas::span_of(length, rows, leading)), leading,
         apart.slice(rows * first, rows * length), length, length, rows, ends);
  }
}

template <Real T>
void Pfft3<T>::join(const GpuRef<Value>& apart, const Parts& parts, std::int64_t rows,
                    std::int64_t each, const GpuRef<Value>& whole, Ends& ends) {
  const auto leading =
      each * std::accumulate(parts.extent.begin(), parts.extent.end(), std::int64_t{});
  for (std::size_t peer = 0; peer < parts.first.size(); ++peer) {
    const auto length = each * parts.extent[peer], first = each * parts.first[peer];
    if (length == 0 || rows == 0) continue;
    copy(apart.slice(rows * first, rows * length), length,
         whole.slice(first, blas::span_of(length, rows, leading)), leading, length, rows, ends);
  }
}

/// Rows are the columns of BLAS: geam is what copies them with gaps.
template <Real T>
void Pfft3<T>::copy(const GpuRef<Value>& from, std::int64_t from_leading, const GpuRef<Value>& to,
                    std::int64_t to_leading, std::int64_t length, std::int64_t rows, Ends& ends) {
  const MatrixRef source(from, length, rows, from_leading), copied(to, length, rows, to_leading);
  ends.push_back(device_->blas().template geam<Value>(blas::Transpose::no, blas::Transpose::no,
                                                      Value(1), source, Value(0), source, copied));
}

template <Real T>
void Pfft3<T>::exchange(Group& among, const std::vector<std::int64_t>& sent,
                        const GpuRef<Value>& from, const std::vector<std::int64_t>& received,
                        const GpuRef<Value>& to, Ends& ends) {
  ends.push_back(among.size() == 1 ? device_->copy(from, to)
                                   : among.template all_to_all<Value>(from, sent, to, received));
}

template class Pfft3<float>;
template class Pfft3<double>;

}  // namespace troupe::distributed
