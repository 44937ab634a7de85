#pragma once

#include <array>
#include <complex>
#include <span>
#include <vector>

#include <troupe/checkpoint.hpp>
#include <troupe/device.hpp>
#include <troupe/distributed/grid.hpp>
#include <troupe/lib/fft.hpp>
#include <troupe/lib/matrix.hpp>

namespace troupe::distributed {

/// A part of a three-dimensional array, row-major without gaps: the last dimension varies fastest.
struct Box {
  std::array<std::int64_t, 3> first{}, extent{};
  [[nodiscard]] std::int64_t volume() const noexcept { return extent[0] * extent[1] * extent[2]; }
};

/// Fourier transforms of a three-dimensional array of n0 x n1 x n2 elements that is spread over a
/// grid of P rows and Q columns: slabs with Q = 1, pencils otherwise. As fft::Kind defines
/// them: not normalised, forward and then inverse multiplies by n0 n1 n2.
///
/// The rank in row p and column q of the grid has of the array in space
///     i0 in part p of n0 over P, i1 in part q of n1 over Q, all i2
/// and of its spectrum
///     all k0, k1 in part p of n1 over P, k2 in part q of m2 over Q,
/// m2 being n2, or n2 / 2 + 1 for a real array, whose other elements are the conjugates of these;
/// part r of n over R being the indices from floor(n r / R) to below floor(n (r + 1) / R). A part
/// may be empty.
///
/// It owns the buffers of both sides and two, of slabs of real arrays three, of the size of the
/// larger one. Slabs exchange data once, among the ranks of a column, pencils a second time among
/// those of a row. Where all ranks of a column can map one another's memory (Collectives::map_all),
/// slabs send no messages: each rank reads what it needs from where it lies in the others' memory
/// to where it belongs, piece by piece, while other pieces are transformed. One thread at a time.
/// E, the elements in space: float, double and their complex types.
template <FieldElement E>
class Pfft3 {
 public:
  using T = RealOf<E>;
  using Value = std::complex<T>;  ///< of the spectrum
  static constexpr bool kReal = RealElement<E>;
  static constexpr int kMostPieces = 64;

  /// All ranks of the grid call it, with the same extents, each 1 to 2^31 - 1 and their product at
  /// most 2^48. Throws CollectiveException on all of them: invalid, out_of_memory.
  /// `pieces`: slabs are exchanged in so many, up to kMostPieces, one while another is
  /// transformed; 0: as many as their size suggests.
  Pfft3(Device& device, Grid& grid, const std::array<std::int64_t, 3>& extents, int pieces = 0);
  Pfft3(const Pfft3&) = delete;
  Pfft3& operator=(const Pfft3&) = delete;

  /// What this rank has, of the whole.
  [[nodiscard]] const Box& space_box() const noexcept { return space_box_; }
  [[nodiscard]] const Box& spectrum_box() const noexcept { return spectrum_box_; }
  /// The elements of these boxes, for the program to write and read, and for a Checkpoint.
  [[nodiscard]] GpuRef<E>& space() noexcept { return space_; }
  [[nodiscard]] GpuRef<Value>& spectrum() noexcept { return spectrum_; }

  // Collectives of the whole grid, in program order with others; all ranks call the same. May be
  // called within World::run. A sequence has one communicator: they can be part of one on a grid of
  // one row or one column, and are to be recorded anew after a fault. The source is left as it is.
  // A destination that was lost with a device host becomes valid. The first call in an epoch agrees
  // on how slabs go, by host collectives, and so belongs to the program's thread. The future is
  // that of all of this rank's part. Errors: stale, on all ranks alike and with nothing launched
  // (the grid has lost ranks); then those of the transforms and exchanges.

  /// spectrum = the transform of space
  Future<void> forward();
  /// space = the inverse transform of spectrum
  Future<void> inverse();

  /// True if slabs go by reads of the other ranks' memory in this epoch; false: by messages.
  [[nodiscard]] bool reads_others() const noexcept { return !mapped_.empty(); }

  /// Names the buffers between the two sides as scratch of a run whose steps transform: a rehearsal
  /// (--rehearse) wants to know of all that a step writes. The plan must outlive the checkpoint.
  void add_scratch(Checkpoint& state) {
    for (auto& buffer : work_) state.add_scratch(buffer);
  }

 private:
  using Ends = std::vector<Future<void>>;
  /// Parts of an axis, one for each rank of a group.
  struct Parts {
    std::vector<std::int64_t> first, extent;
  };
  /// All begin at a multiple of `multiple`.
  static Parts parts_of(std::int64_t extent, int parts, std::int64_t multiple = 1);
  /// How many elements each peer has, if each has `each` for every index of its part.
  static std::vector<std::int64_t> lengths(const Parts& parts, std::int64_t each);

  [[nodiscard]] Result<void> allocate();
  [[nodiscard]] int pieces_by_size(std::int64_t volume) const;
  /// Agrees with the others on how slabs go in this epoch, unless that is done.
  void connect();
  /// Checks the grid, makes valid what is written first, and connects. Errors: stale.
  template <class Ref>
  [[nodiscard]] Result<void> make_ready(Ref& destination);
  /// The first transform, and the last one, which destroys its source if the array is real.
  void from_space(const GpuRef<E>& space, const GpuRef<Value>& to, const FftOptions& shape,
                  Ends& ends);
  void into_space(const GpuRef<Value>& from, const GpuRef<E>& space, const FftOptions& shape,
                  Ends& ends);
  void slabs_forward(Ends& ends);
  void slabs_inverse(Ends& ends);
  /// A piece of work_[0], of this rank's part of axis 0 and all of axis 1, and of the other ranks,
  /// goes to the spectrum: by messages, and by reads.
  void exchange_piece(std::size_t piece, Ends& ends);
  void read_piece(std::size_t piece, Ends& ends);
  /// Copies this rank's own part of the pieces to the spectrum.
  void keep_own(Ends& ends);
  /// From the spectrum to `whole`, of this rank's part of axis 0 and all of axis 1, piece by piece
  /// along axis 1.
  void exchange_spectrum(const GpuRef<Value>& whole, Ends& ends);
  /// The spectrum to space by way of `whole`, piece by piece along axis 0.
  void read_spectrum(const GpuRef<Value>& whole, Ends& ends);
  /// Ends the reads of what is mapped: its owner may write it again.
  void end_reads(Ends& ends);
  void pencils_forward(Ends& ends);
  void pencils_inverse(Ends& ends);

  /// `count` transforms of one axis, of `extent` elements each.
  void transform(fft::Kind kind, std::int64_t extent, std::int64_t count, const GpuRef<Value>& from,
                 const fft::Storage& from_storage, const GpuRef<Value>& to,
                 const fft::Storage& to_storage, Ends& ends);
  /// The pieces of the part that a row of the grid has of axis 0, and in the spectrum of axis 1.
  /// What is transformed begins where a complex element may.
  [[nodiscard]] Parts pieces_of(std::size_t row) const {
    return parts_of(parts_0_.extent[row], pieces_, kReal ? 2 : 1);
  }
  [[nodiscard]] Parts pieces_of_spectrum(std::size_t row) const {
    return parts_of(parts_1_rows_.extent[row], pieces_);
  }
  /// Between an array of `rows` rows with all of an axis, `each` elements for every index, and the
  /// parts that peers have, one part behind the other.
  void split(const GpuRef<Value>& whole, const Parts& parts, std::int64_t rows, std::int64_t each,
             const GpuRef<Value>& apart, Ends& ends);
  void join(const GpuRef<Value>& apart, const Parts& parts, std::int64_t rows, std::int64_t each,
            const GpuRef<Value>& whole, Ends& ends);
  void copy(const GpuRef<Value>& from, std::int64_t from_leading, const GpuRef<Value>& to,
            std::int64_t to_leading, std::int64_t length, std::int64_t rows, Ends& ends);
  void exchange(Collectives& among, const std::vector<std::int64_t>& sent,
                const GpuRef<Value>& from, const std::vector<std::int64_t>& received,
                const GpuRef<Value>& to, Ends& ends);

  Device* device_;
  Grid* grid_;
  std::array<std::int64_t, 3> n_;
  std::int64_t m2_;
  int pieces_;
  Parts parts_0_, parts_1_rows_, parts_1_columns_, parts_2_;  ///< of n1 over P, and over Q
  Box space_box_, spectrum_box_;
  GpuRef<E> space_;
  GpuRef<Value> spectrum_;
  std::array<GpuRef<Value>, 3> work_;     ///< the third one for slabs of real arrays
  std::uint32_t connected_in_ = 0;        ///< the epoch of …
  std::vector<MappedRef<Value>> mapped_;  ///< work_[0] of all ranks of the column; empty: messages
};

}  // namespace troupe::distributed
