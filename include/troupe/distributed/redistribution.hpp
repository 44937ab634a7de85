#pragma once

#include <vector>

#include <troupe/checkpoint.hpp>
#include <troupe/distributed/matrix.hpp>

namespace troupe::distributed {

/// B = op(A), where A and B lie on one grid in whatever layouts: rectangles that go from one rank
/// to another are put one behind the other, exchanged by one operation, and put in their places.
/// What stays on a rank is copied at once. Many rectangles, as between small blocks of different
/// sizes, cost a command each on both sides. Owns the buffers of the exchange, as large as what
/// this rank sends and receives; they may be lost with a device host, and the next run makes them
/// valid. One thread at a time.
template <FieldElement T>
class Redistribution {
 public:
  /// Layouts that check out, of op(source) and destination having the same extents. Only this
  /// rank's. Throws Exception (out_of_memory).
  Redistribution(Device& device, Grid& grid, const Layout& source, const Layout& destination,
                 blas::Transpose transpose);

  /// A collective of the whole grid. The buffers are the local parts in their layouts.
  Future<void> run(const GpuRef<T>& source, const GpuRef<T>& destination);
  /// Names its buffers as scratch of a run that uses it.
  void add_scratch(Checkpoint& state) {
    state.add_scratch(outgoing_), state.add_scratch(incoming_);
  }

 private:
  /// A rectangle of rows x columns, as the destination sees it.
  struct Piece {
    int peer = 0;
    std::int64_t rows = 0, columns = 0;
    std::int64_t local = 0;    ///< where it begins in the local part
    std::int64_t packed = 0;   ///< and in the buffer of the exchange
    std::int64_t arrives = 0;  ///< of what stays: where it begins in the destination's part
  };
  /// `to` = op(`from`), both rows x columns on the destination's side.
  Future<void> copy(blas::Transpose transpose, const Piece& piece, const GpuRef<T>& from,
                    std::int64_t first, std::int64_t leading, const GpuRef<T>& to,
                    std::int64_t to_first, std::int64_t to_leading);

  Device* device_;
  Grid* grid_;
  blas::Transpose transpose_;
  std::int64_t source_leading_ = 1, destination_leading_ = 1;
  std::vector<Piece> sent_, received_, stays_;
  std::vector<std::int64_t> sent_lengths_, received_lengths_;  ///< to and from each rank
  bool exchanges_ = false;  ///< whether any rank sends anything to another one
  GpuRef<T> outgoing_, incoming_;
};

}  // namespace troupe::distributed
