#include <troupe/distributed/pfft3.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

#include <troupe/lib/blas.hpp>

// One class is all of it, longer than other files: slabs by reads and by messages, pencils, there
// and back, share the layouts and the buffers.
//
// In the comments an array's axes stand in the order of memory, the last one varying fastest: l0
// and l1 are this rank's parts of the array in space, c1 and c2 those of the spectrum, m2 its
// extent along axis 2.

namespace troupe::distributed {

namespace {

/// Transforms one behind the other, and side by side.
constexpr fft::Storage kPacked{};
constexpr fft::Storage side_by_side(std::int64_t count) {
  return {.distance = 1, .stride = count};
}

}  // namespace

template <FieldElement E>
typename Pfft3<E>::Parts Pfft3<E>::parts_of(std::int64_t extent, int parts, std::int64_t multiple) {
  const auto begin = [&](std::int64_t r) {
    return r == parts ? extent : extent * r / parts / multiple * multiple;
  };
  Parts result;
  for (std::int64_t r = 0; r < parts; ++r) {
    result.first.push_back(begin(r));
    result.extent.push_back(begin(r + 1) - begin(r));
  }
  return result;
}

template <FieldElement E>
std::vector<std::int64_t> Pfft3<E>::lengths(const Parts& parts, std::int64_t each) {
  auto lengths = parts.extent;
  for (auto& length : lengths) length *= each;
  return lengths;
}

template <FieldElement E>
Pfft3<E>::Pfft3(Device& device, Grid& grid, const std::array<std::int64_t, 3>& extents, int pieces)
    : device_(&device),
      grid_(&grid),
      n_(extents),
      m2_(kReal ? extents[2] / 2 + 1 : extents[2]),
      pieces_(pieces) {
  constexpr std::int64_t kMostOfOne = (std::int64_t{1} << 31) - 1, kMost = std::int64_t{1} << 48;
  Result<void> outcome;
  std::int64_t volume = 1;
  for (const auto n : extents) {
    if (n < 1 || n > kMostOfOne || volume > kMost / n)
      outcome = Error{Errc::invalid, 0,
                      "pfft3: " + std::to_string(extents[0]) + " x " + std::to_string(extents[1]) +
                          " x " + std::to_string(extents[2]) +
                          " elements: an extent has 1 to 2^31 - 1, all of it at most 2^48"};
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
  if (outcome.ok()) outcome = allocate();
  grid.ranks().agree(outcome);
  connect();
  if (pieces_ == 0) pieces_ = pieces_by_size(volume);
}

/// More messages gain nothing: NCCL's kernels get in when those of a transform end. Reads from each
/// peer are of 32 MiB or more: smaller ones are slower (bench/results, of two and four H200s).
template <FieldElement E>
int Pfft3<E>::pieces_by_size(std::int64_t volume) const {
  const auto bytes = volume / grid_->rows() * static_cast<std::int64_t>(sizeof(Value));
  const auto pieces = reads_others() ? std::min<std::int64_t>(bytes / grid_->rows() >> 25, 4)
                                     : std::min<std::int64_t>(bytes >> 24, 2);
  return static_cast<int>(std::max<std::int64_t>(pieces, 1));
}

template <FieldElement E>
Result<void> Pfft3<E>::allocate() {
  parts_0_ = parts_of(n_[0], grid_->rows()), parts_1_rows_ = parts_of(n_[1], grid_->rows());
  parts_1_columns_ = parts_of(n_[1], grid_->columns()), parts_2_ = parts_of(m2_, grid_->columns());
  const auto p = static_cast<std::size_t>(grid_->row()),
             q = static_cast<std::size_t>(grid_->column());
  space_box_ = {{parts_0_.first[p], parts_1_columns_.first[q], 0},
                {parts_0_.extent[p], parts_1_columns_.extent[q], n_[2]}};
  spectrum_box_ = {{0, parts_1_rows_.first[p], parts_2_.first[q]},
                   {n_[0], parts_1_rows_.extent[p], parts_2_.extent[q]}};
  const auto between = parts_0_.extent[p] * n_[1] * parts_2_.extent[q];  // with all of axis 1
  const auto rows = space_box_.extent[0] * space_box_.extent[1];         // transformed along axis 2
  const auto largest = std::max({rows * m2_, spectrum_box_.volume(), between});
  try {
    space_ = device_->alloc<E>(space_box_.volume(), "pfft3's space");
    spectrum_ = device_->alloc<Value>(spectrum_box_.volume(), "pfft3's spectrum");
    for (auto* buffer : {&work_[0], &work_[1]})
      *buffer = device_->alloc<Value>(largest, "pfft3's room");
    work_[2] =
        device_->alloc<Value>(kReal && grid_->columns() == 1 ? rows * m2_ : 0, "pfft3's room");
  } catch (const Exception& e) {
    return e.error();
  }
  return {};
}

template <FieldElement E>
Future<void> Pfft3<E>::forward() {
  if (const auto ready = make_ready(spectrum_); !ready.ok())
    return device_->submitter().refuse(ready.error());
  Ends ends;
  if (grid_->rows() * grid_->columns() == 1)
    from_space(space_, spectrum_, {.extents = {n_[0], n_[1], n_[2]}}, ends);
  else
    grid_->columns() == 1 ? slabs_forward(ends) : pencils_forward(ends);
  return when_all(std::move(ends));
}

template <FieldElement E>
Future<void> Pfft3<E>::inverse() {
  if (const auto ready = make_ready(space_); !ready.ok())
    return device_->submitter().refuse(ready.error());
  Ends ends;
  if (grid_->rows() * grid_->columns() == 1) {
    auto from = spectrum_;
    if constexpr (kReal) {  // it would be destroyed
      from = work_[0].slice(0, spectrum_.length());
      ends.push_back(device_->copy(spectrum_, from));
    }
    into_space(from, space_, {.extents = {n_[0], n_[1], n_[2]}}, ends);
  } else {
    grid_->columns() == 1 ? slabs_inverse(ends) : pencils_inverse(ends);
  }
  return when_all(std::move(ends));
}

template <FieldElement E>
template <class Ref>
Result<void> Pfft3<E>::make_ready(Ref& destination) {
  if (!grid_->whole()) return Error{Errc::stale, 0, "pfft3: the grid has lost ranks"};
  if (!destination.valid()) destination.renew();
  for (auto& buffer : work_) {
    if (!buffer.valid()) buffer.renew();
  }
  connect();
  return {};
}

/// Ranks that were in different epochs have agreed on nothing, and all of them try again.
template <FieldElement E>
void Pfft3<E>::connect() {
  auto& ranks = grid_->along_column();
  if (grid_->columns() != 1 || grid_->rows() == 1 || connected_in_ == ranks.epoch().value) return;
  mapped_.clear();
  try {
    mapped_ = ranks.map_all(work_[0]);
  } catch (const CollectiveException& e) {
    if (e.code() == Errc::world_reformed) return;
  }
  connected_in_ = ranks.epoch().value;
}

template <FieldElement E>
void Pfft3<E>::from_space(const GpuRef<E>& space, const GpuRef<Value>& to, const FftOptions& shape,
                          Ends& ends) {
  if constexpr (kReal)
    ends.push_back(device_->fft().template real_to_complex<T>(space, to, shape));
  else
    ends.push_back(device_->fft().template forward<T>(space, to, shape));
}
template <FieldElement E>
void Pfft3<E>::into_space(const GpuRef<Value>& from, const GpuRef<E>& space,
                          const FftOptions& shape, Ends& ends) {
  if constexpr (kReal)
    ends.push_back(device_->fft().template complex_to_real<T>(from, space, shape));
  else
    ends.push_back(device_->fft().template inverse<T>(from, space, shape));
}

/// Rows of the array go piece by piece, so that one travels while the next is transformed.
template <FieldElement E>
void Pfft3<E>::slabs_forward(Ends& ends) {
  const auto c1 = spectrum_box_.extent[1], plane = n_[1] * m2_;
  const auto mine = pieces_of(static_cast<std::size_t>(grid_->row()));
  for (std::size_t piece = 0; piece < mine.first.size(); ++piece) {
    const auto first = mine.first[piece], rows = mine.extent[piece];
    if (rows > 0)
      from_space(space_.slice(first * n_[1] * n_[2], rows * n_[1] * n_[2]),
                 work_[0].slice(first * plane, rows * plane),
                 {.extents = {n_[1], n_[2]}, .batch = rows}, ends);
    reads_others() ? read_piece(piece, ends) : exchange_piece(piece, ends);
  }
  if (reads_others()) keep_own(ends), end_reads(ends);
  transform(fft::Kind::forward, n_[0], c1 * m2_, spectrum_, side_by_side(c1 * m2_), spectrum_,
            side_by_side(c1 * m2_), ends);
}

template <FieldElement E>
void Pfft3<E>::exchange_piece(std::size_t piece, Ends& ends) {
  const auto c1 = spectrum_box_.extent[1], plane = n_[1] * m2_;
  const auto me = static_cast<std::size_t>(grid_->row());
  const auto first = pieces_of(me).first[piece], rows = pieces_of(me).extent[piece];
  const auto whole = work_[0].slice(first * plane, rows * plane),
             apart = work_[1].slice(first * plane, rows * plane);
  std::vector<Transfer<Value>> sends, receives;
  const auto place = [&](std::size_t peer, const GpuRef<Value>& to) {
    const auto length = parts_1_rows_.extent[peer] * m2_, begin = parts_1_rows_.first[peer] * m2_;
    copy(whole.slice(begin, blas::span_of(length, rows, plane)), plane, to, length, length, rows,
         ends);
  };
  const auto arrives = [&](std::size_t peer) {  // of n0 c1 n2
    const auto theirs = pieces_of(peer);
    return spectrum_.slice((parts_0_.first[peer] + theirs.first[piece]) * c1 * m2_,
                           theirs.extent[piece] * c1 * m2_);
  };
  for (std::size_t peer = 0; peer < parts_0_.first.size(); ++peer) {
    if (peer == me) continue;
    const auto begin = parts_1_rows_.first[peer] * m2_, length = parts_1_rows_.extent[peer] * m2_;
    if (rows * length > 0) {
      const auto part = apart.slice(rows * begin, rows * length);
      place(peer, part);
      sends.push_back({part, Rank(static_cast<int>(peer))});
    }
    if (const auto part = arrives(peer); part.length() > 0)
      receives.push_back({part, Rank(static_cast<int>(peer))});
  }
  ends.push_back(grid_->along_column().template exchange<Value>(sends, receives));
  if (arrives(me).length() > 0) place(me, arrives(me));
}

/// From the next rank on, lest all read from the same one.
template <FieldElement E>
void Pfft3<E>::read_piece(std::size_t piece, Ends& ends) {
  const auto length = spectrum_box_.extent[1] * m2_, plane = n_[1] * m2_;
  const auto ranks = parts_0_.first.size(), me = static_cast<std::size_t>(grid_->row());
  const auto begin = parts_1_rows_.first[me] * m2_;  // of each plane
  std::vector<BarrierRange> ranges;
  for (std::size_t peer = 0; peer < ranks; ++peer) {
    const auto first = pieces_of(peer).first[piece] * plane,
               count = pieces_of(peer).extent[piece] * plane;
    if (peer == me)
      ranges.emplace_back(work_[0].slice(first, count));
    else
      ranges.emplace_back(mapped_[peer].slice(first, count));
  }
  ends.push_back(grid_->along_column().device_barrier(ranges));
  for (std::size_t i = 1; i < ranks; ++i) {
    const auto peer = (me + i) % ranks;
    const auto first = pieces_of(peer).first[piece], rows = pieces_of(peer).extent[piece];
    if (rows * length == 0) continue;
    ends.push_back(device_->copy_rows(
        mapped_[peer].slice(first * plane + begin, blas::span_of(length, rows, plane)),
        spectrum_.slice((parts_0_.first[peer] + first) * length, rows * length),
        {.rows = rows, .length = length, .source_leading = plane}));
  }
}

/// Behind all pieces: beside the transforms it would hold them up, and with them the reads.
template <FieldElement E>
void Pfft3<E>::keep_own(Ends& ends) {
  const auto length = spectrum_box_.extent[1] * m2_, plane = n_[1] * m2_;
  const auto me = static_cast<std::size_t>(grid_->row());
  const auto rows = parts_0_.extent[me];
  if (rows * length == 0) return;
  copy(work_[0].slice(parts_1_rows_.first[me] * m2_, blas::span_of(length, rows, plane)), plane,
       spectrum_.slice(parts_0_.first[me] * length, rows * length), length, length, rows, ends);
}

template <FieldElement E>
void Pfft3<E>::end_reads(Ends& ends) {
  std::vector<BarrierRange> ranges{work_[0]};
  for (std::size_t peer = 0; peer < mapped_.size(); ++peer) {
    if (peer != static_cast<std::size_t>(grid_->row())) ranges.emplace_back(mapped_[peer]);
  }
  ends.push_back(grid_->along_column().device_barrier(ranges));
}

template <FieldElement E>
void Pfft3<E>::slabs_inverse(Ends& ends) {
  const auto l0 = space_box_.extent[0];
  const GpuRef<Value> whole = [this] {  // l0 n1 m2
    if constexpr (kReal)
      return work_[2];
    else
      return space_;
  }();
  if (reads_others()) return read_spectrum(whole, ends);
  exchange_spectrum(whole, ends);
  if (l0 > 0) into_space(whole, space_, {.extents = {n_[1], n_[2]}, .batch = l0}, ends);
}

/// Here it is rows of the spectrum, along axis 1, that go piece by piece.
template <FieldElement E>
void Pfft3<E>::exchange_spectrum(const GpuRef<Value>& whole, Ends& ends) {
  const auto l0 = space_box_.extent[0], c1 = spectrum_box_.extent[1], plane = n_[1] * m2_;
  const auto me = static_cast<std::size_t>(grid_->row());
  const auto place = [&](const GpuRef<Value>& from, std::int64_t row, std::int64_t rows) {
    copy(from, rows * m2_, whole.slice(row * m2_, blas::span_of(rows * m2_, l0, plane)), plane,
         rows * m2_, l0, ends);
  };
  for (std::size_t piece = 0; piece < pieces_of_spectrum(me).first.size(); ++piece) {
    const auto first = pieces_of_spectrum(me).first[piece],
               count = pieces_of_spectrum(me).extent[piece] * m2_;
    const auto lines = work_[0].slice(n_[0] * first * m2_, n_[0] * count);
    transform(fft::Kind::inverse, n_[0], count,
              spectrum_.slice(first * m2_, blas::span_of(count, n_[0], c1 * m2_)),
              side_by_side(c1 * m2_), lines, side_by_side(count), ends);
    std::vector<Transfer<Value>> sends, receives;
    for (std::size_t peer = 0; peer < parts_0_.first.size(); ++peer) {
      const auto part = lines.slice(parts_0_.first[peer] * count, parts_0_.extent[peer] * count);
      const auto theirs = pieces_of_spectrum(peer);
      const auto row = parts_1_rows_.first[peer] + theirs.first[piece], rows = theirs.extent[piece];
      if (peer != me && part.length() > 0) sends.push_back({part, Rank(static_cast<int>(peer))});
      if (peer != me && l0 * rows > 0)
        receives.push_back(
            {work_[1].slice(l0 * row * m2_, l0 * rows * m2_), Rank(static_cast<int>(peer))});
    }
    ends.push_back(grid_->along_column().template exchange<Value>(sends, receives));
    if (const auto rows = pieces_of_spectrum(me).extent[piece]; l0 * rows > 0)
      place(lines.slice(parts_0_.first[me] * count, l0 * count),
            parts_1_rows_.first[me] + pieces_of_spectrum(me).first[piece], rows);
    for (const auto& [arrived, peer] : receives) {
      const auto theirs = pieces_of_spectrum(static_cast<std::size_t>(peer.value));
      place(arrived,
            parts_1_rows_.first[static_cast<std::size_t>(peer.value)] + theirs.first[piece],
            theirs.extent[piece]);
    }
  }
}

/// Ranges with gaps count as a whole, so that this rank's own rows of a piece and those that are
/// read wait for one another. So its own go first, but for the first piece, whose reads shall begin
/// at once.
template <FieldElement E>
void Pfft3<E>::read_spectrum(const GpuRef<Value>& whole, Ends& ends) {
  const auto plane = n_[1] * m2_, width = spectrum_box_.extent[1] * m2_;
  const auto ranks = parts_0_.first.size(), me = static_cast<std::size_t>(grid_->row());
  const auto lines = work_[0].slice(0, n_[0] * width);
  transform(fft::Kind::inverse, n_[0], width, spectrum_, side_by_side(width), lines,
            side_by_side(width), ends);
  // A rank has a row for each index of axis 0, and in it its part of axis 1.
  const auto row_of = [&](std::size_t peer) { return parts_1_rows_.extent[peer] * m2_; };
  std::vector<BarrierRange> ranges{lines};
  for (std::size_t peer = 0; peer < ranks; ++peer) {
    if (peer != me)
      ranges.emplace_back(mapped_[peer].slice(parts_0_.first[me] * row_of(peer),
                                              parts_0_.extent[me] * row_of(peer)));
  }
  ends.push_back(grid_->along_column().device_barrier(ranges));
  const auto mine = pieces_of(me);
  const auto place = [&](std::size_t piece, std::size_t peer) {
    const auto first = mine.first[piece], rows = mine.extent[piece], length = row_of(peer);
    if (rows * length == 0) return;
    const auto at = (parts_0_.first[me] + first) * length;
    const auto to = whole.slice(first * plane + parts_1_rows_.first[peer] * m2_,
                                blas::span_of(length, rows, plane));
    if (peer == me)
      copy(lines.slice(at, rows * length), length, to, plane, length, rows, ends);
    else
      ends.push_back(
          device_->copy_rows(mapped_[peer].slice(at, rows * length), to,
                             {.rows = rows, .length = length, .destination_leading = plane}));
  };
  for (std::size_t piece = 1; piece < mine.first.size(); ++piece) place(piece, me);
  for (std::size_t piece = 0; piece < mine.first.size(); ++piece) {
    for (std::size_t i = 1; i < ranks; ++i) place(piece, (me + i) % ranks);
    if (piece == 0) place(piece, me);
    const auto first = mine.first[piece], rows = mine.extent[piece];
    if (rows > 0)
      into_space(whole.slice(first * plane, rows * plane),
                 space_.slice(first * n_[1] * n_[2], rows * n_[1] * n_[2]),
                 {.extents = {n_[1], n_[2]}, .batch = rows}, ends);
  }
  end_reads(ends);
}

template <FieldElement E>
void Pfft3<E>::pencils_forward(Ends& ends) {
  constexpr auto kForward = fft::Kind::forward;
  const auto l0 = space_box_.extent[0], l1 = space_box_.extent[1], c1 = spectrum_box_.extent[1],
             c2 = spectrum_box_.extent[2];
  const auto in = [](const GpuRef<Value>& buffer, std::int64_t length) {
    return buffer.slice(0, length);
  };
  const auto first = in(work_[0], m2_ * l0 * l1), first_apart = in(work_[1], c2 * l0 * n_[1]),
             middle = in(work_[0], c2 * l0 * n_[1]), turned = in(work_[1], n_[1] * c2 * l0),
             last_apart = in(work_[0], c1 * c2 * n_[0]), last = in(work_[1], c1 * c2 * n_[0]);
  if (l0 * l1 > 0)
    from_space(space_, first,
               {.extents = {n_[2]}, .batch = l0 * l1, .output = side_by_side(l0 * l1)}, ends);
  exchange(grid_->along_row(), lengths(parts_2_, l0 * l1), first,
           lengths(parts_1_columns_, c2 * l0), first_apart, ends);
  join(first_apart, parts_1_columns_, c2 * l0, 1, middle, ends);  // c2 l0 n1
  transform(kForward, n_[1], c2 * l0, middle, kPacked, turned, side_by_side(c2 * l0), ends);
  exchange(grid_->along_column(), lengths(parts_1_rows_, c2 * l0), turned,
           lengths(parts_0_, c1 * c2), last_apart, ends);
  join(last_apart, parts_0_, c1 * c2, 1, last, ends);  // c1 c2 n0
  transform(kForward, n_[0], c1 * c2, last, kPacked, spectrum_, side_by_side(c1 * c2), ends);
}

template <FieldElement E>
void Pfft3<E>::pencils_inverse(Ends& ends) {
  constexpr auto kInverse = fft::Kind::inverse;
  const auto l0 = space_box_.extent[0], l1 = space_box_.extent[1], c1 = spectrum_box_.extent[1],
             c2 = spectrum_box_.extent[2];
  const auto in = [](const GpuRef<Value>& buffer, std::int64_t length) {
    return buffer.slice(0, length);
  };
  const auto last = in(work_[0], c1 * c2 * n_[0]), last_apart = in(work_[1], c1 * c2 * n_[0]),
             turned = in(work_[0], n_[1] * c2 * l0), middle = in(work_[1], c2 * l0 * n_[1]),
             first_apart = in(work_[0], c2 * l0 * n_[1]), first = in(work_[1], m2_ * l0 * l1);
  transform(kInverse, n_[0], c1 * c2, spectrum_, side_by_side(c1 * c2), last, kPacked, ends);
  split(last, parts_0_, c1 * c2, 1, last_apart, ends);
  exchange(grid_->along_column(), lengths(parts_0_, c1 * c2), last_apart,
           lengths(parts_1_rows_, c2 * l0), turned, ends);  // n1 c2 l0
  transform(kInverse, n_[1], c2 * l0, turned, side_by_side(c2 * l0), middle, kPacked, ends);
  split(middle, parts_1_columns_, c2 * l0, 1, first_apart, ends);
  exchange(grid_->along_row(), lengths(parts_1_columns_, c2 * l0), first_apart,
           lengths(parts_2_, l0 * l1), first, ends);  // m2 l0 l1
  if (l0 * l1 > 0)
    into_space(first, space_,
               {.extents = {n_[2]}, .batch = l0 * l1, .input = side_by_side(l0 * l1)}, ends);
}

template <FieldElement E>
void Pfft3<E>::transform(fft::Kind kind, std::int64_t extent, std::int64_t count,
                         const GpuRef<Value>& from, const fft::Storage& from_storage,
                         const GpuRef<Value>& to, const fft::Storage& to_storage, Ends& ends) {
  if (count == 0) return;
  const FftOptions shape{{extent}, count, from_storage, to_storage};
  ends.push_back(kind == fft::Kind::forward ? device_->fft().template forward<T>(from, to, shape)
                                            : device_->fft().template inverse<T>(from, to, shape));
}

template <FieldElement E>
void Pfft3<E>::split(const GpuRef<Value>& whole, const Parts& parts, std::int64_t rows,
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

template <FieldElement E>
void Pfft3<E>::join(const GpuRef<Value>& apart, const Parts& parts, std::int64_t rows,
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
template <FieldElement E>
void Pfft3<E>::copy(const GpuRef<Value>& from, std::int64_t from_leading, const GpuRef<Value>& to,
                    std::int64_t to_leading, std::int64_t length, std::int64_t rows, Ends& ends) {
  const MatrixRef source(from, length, rows, from_leading), copied(to, length, rows, to_leading);
  ends.push_back(device_->blas().template geam<Value>(blas::Transpose::no, blas::Transpose::no,
                                                      Value(1), source, Value(0), source, copied));
}

template <FieldElement E>
void Pfft3<E>::exchange(Collectives& among, const std::vector<std::int64_t>& sent,
                        const GpuRef<Value>& from, const std::vector<std::int64_t>& received,
                        const GpuRef<Value>& to, Ends& ends) {
  ends.push_back(among.size() == 1 ? device_->copy(from, to)
                                   : among.template all_to_all<Value>(from, sent, to, received));
}

template class Pfft3<float>;
template class Pfft3<double>;
template class Pfft3<std::complex<float>>;
template class Pfft3<std::complex<double>>;

}  // namespace troupe::distributed
