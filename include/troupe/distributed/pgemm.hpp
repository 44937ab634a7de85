#pragma once

#include <array>
#include <memory>

#include <troupe/checkpoint.hpp>
#include <troupe/distributed/matrix.hpp>
#include <troupe/lib/submit.hpp>

namespace troupe::distributed {

template <FieldElement T>
class Redistribution;

/// What a Pgemm computes, and in what pieces.
struct PgemmOptions {
  blas::Transpose transpose_a = blas::Transpose::no, transpose_b = blas::Transpose::no;
  /// The most columns of op(A), and rows of op(B), that are sent at once; at least 1. Also bounded
  /// by the blocks of the layouts.
  std::int64_t panel = 1024;
};

/// C = alpha op(A) op(B) + beta C on a grid of ranks, op(A) being m x k, op(B) k x n, C m x n, by
/// SUMMA: the ranks that have some columns of op(A) send them along their rows of the grid, those
/// that have the same rows of op(B) send these along their columns, and every rank adds the product
/// of the two to its part of C. The next panels travel while these are multiplied. (R. van de Geijn
/// and J. Watts, "SUMMA: scalable universal matrix multiplication algorithm", 1997)
///
/// Any layouts and any grid. Rows of op(A) that are not dealt out as those of C are, and columns of
/// op(B) likewise, are first brought there, by one exchange and into a copy; with a transpose that
/// is the case. Large blocks are fast: no panel is wider than one.
///
/// It owns its buffers: two panels for each of A and B, and the copies. They may be lost with a
/// device host; the next product makes them valid. One thread at a time.
template <FieldElement T>
class Pgemm {
 public:
  /// All ranks of the grid call it, with the same arguments. Throws CollectiveException on all of
  /// them: invalid (layouts that do not fit one another or the grid, a panel below 1),
  /// out_of_memory.
  Pgemm(Device& device, Grid& grid, const Layout& a, const Layout& b, const Layout& c,
        const PgemmOptions& options = {});
  ~Pgemm();
  Pgemm(const Pgemm&) = delete;
  Pgemm& operator=(const Pgemm&) = delete;

  /// A collective of the whole grid, in program order with others: all ranks call it with the same
  /// alpha and beta and matrices of the plan's layouts and grid. May be called within World::run. A
  /// sequence has one communicator: it can be part of one on a grid of one row or one column, if
  /// nothing needs to be brought into place, and is to be recorded anew after a fault. With beta =
  /// 0 given by value, what stood in c is not read. The future is that of all of this rank's part.
  /// Errors, on all ranks alike and with nothing launched: invalid (other layouts, another grid, c
  /// is a or b), stale (the grid has lost ranks); then those of the collectives and products.
  Future<void> multiply(const ScalarOf<GpuRef<T>>& alpha, const Matrix<T>& a, const Matrix<T>& b,
                        const ScalarOf<GpuRef<T>>& beta, const Matrix<T>& c);
  /// Names its own buffers as scratch of a run whose steps call multiply(): a rehearsal
  /// (--rehearse) wants to know of all that a step writes. The plan must outlive the checkpoint.
  void add_scratch(Checkpoint& state);

 private:
  /// Columns of op(A) and rows of op(B) that are sent at once.
  struct Panel {
    std::int64_t width = 0;
    int column = 0, row = 0;                ///< of the grid: who has them
    std::int64_t place_a = 0, place_b = 0;  ///< where, among those of the owner
  };

  [[nodiscard]] Result<void> check() const;
  [[nodiscard]] Result<void> allocate();
  void plan();
  [[nodiscard]] Result<void> check_arguments(const Matrix<T>& a, const Matrix<T>& b,
                                             const Matrix<T>& c) const;
  /// Sends a panel; afterwards the two are where panel_a() and panel_b() say.
  void send(std::size_t number, const GpuRef<T>& a, const GpuRef<T>& b,
            std::vector<Future<void>>& ends);
  [[nodiscard]] MatrixRef<GpuRef<T>> panel_a(std::size_t number, const GpuRef<T>& a) const;
  [[nodiscard]] MatrixRef<GpuRef<T>> panel_b(std::size_t number, const GpuRef<T>& b) const;

  Device* device_;
  Grid* grid_;
  std::array<Layout, 3> given_;  ///< of A, B and C
  Layout a_, b_;                 ///< of op(A) and op(B) as they are multiplied
  PgemmOptions options_;
  std::unique_ptr<Redistribution<T>> bring_a_, bring_b_;  ///< none: they lie as they are needed
  GpuRef<T> copy_a_, copy_b_;
  std::array<GpuRef<T>, 2> panels_a_, panels_b_;  ///< in turn
  std::vector<Panel> panels_;
  std::int64_t m_ = 0, n_ = 0, k_of_b_ = 0;  ///< this rank's rows and columns of C, rows of op(B)
};

}  // namespace troupe::distributed
