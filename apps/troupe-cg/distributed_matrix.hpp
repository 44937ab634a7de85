#pragma once

#include <vector>

#include <troupe/troupe.hpp>

#include "partition.hpp"

namespace troupe::cg {

/// A rank's part of the matrix on its device, and the way of a product through the world:
/// gather what others need, exchange it while the own part is multiplied, then add the foreign part.
template <Real T, troupe::Index I>
class DistributedMatrix {
 public:
  /// Uploads the problem's matrix. All ranks call it. Throws Exception.
  DistributedMatrix(Runtime& runtime, const LocalProblem<I>& problem)
      : device_(&runtime.device()), world_(&runtime.world()), rows_(problem.rows) {
    own_ = upload(problem.own);
    plan_exchange(problem);
    if (problem.halo_columns.empty()) return;
    foreign_ = upload(problem.foreign);
    interior_ = problem.interior_rows;
  }

  /// y = alpha A x + beta y. Submits and returns.
  void multiply(const GpuRef<T>& x, const GpuRef<T>& y, T alpha = 1, T beta = 0) {
    if (!sends_.empty()) device_->sparse().gather(x, gather_, outgoing_);
    if (!sends_.empty() || !receives_.empty()) world_->template exchange<T>(transfers(sends_, outgoing_), transfers(receives_, halo_));
    multiply_own(x, y, alpha, beta);
    if (!receives_.empty()) {
      device_->sparse().spmv(foreign_, halo_, y.slice(interior_, rows_ - interior_), alpha, T(1));
    }
  }
  /// The part of multiply() that needs no communication.
  Future<void> multiply_own(const GpuRef<T>& x, const GpuRef<T>& y, T alpha = 1, T beta = 0) {
    return device_->sparse().spmv(own_, x, y, alpha, beta);
  }

  /// Its exchange buffers must be valid again after a rollback.
  void register_scratch(Checkpoint& checkpoint) {
    if (outgoing_) checkpoint.add_scratch(outgoing_);
    if (halo_) checkpoint.add_scratch(halo_);
  }

  [[nodiscard]] std::int64_t rows() const { return rows_; }
  /// Bytes that multiply_own() must move at least: matrix and row offsets once, x once, y once.
  [[nodiscard]] double own_bytes() const {
    return static_cast<double>(own_.value.bytes() + own_.column.bytes() + own_.row_begin.bytes()) +
           2.0 * static_cast<double>(rows_) * sizeof(T);
  }

 private:
  struct Part {
    Rank peer;
    std::int64_t offset, count;
  };

  troupe::CsrMatrix<T, I> upload(const CsrMatrix<I>& matrix) {
    troupe::CsrMatrix<T, I> device_matrix{matrix.rows, matrix.columns, convert<I>(matrix.row_begin),
                                          convert<I>(matrix.column), convert<T>(matrix.value)};
    return device_matrix;
  }
  /// Uploads host values as elements of another type, in pieces, and waits for it.
  template <class To, class From>
  GpuRef<To> convert(const Array<From>& values) {
    const auto length = static_cast<std::int64_t>(values.size());
    auto ref = device_->template alloc<To>(length);
    if constexpr (std::is_same_v<To, From>) {
      device_->upload(std::span<const To>(values), ref).get();
    } else {
      constexpr std::int64_t kPiece = 1 << 20;
      std::vector<To> piece;
      for (std::int64_t at = 0; at < length; at += kPiece) {
        const auto count = std::min(kPiece, length - at);
        const auto first = values.begin() + at;
        piece.resize(static_cast<std::size_t>(count));
        std::transform(first, first + count, piece.begin(), [](From value) { return static_cast<To>(value); });
        device_->upload(std::span<const To>(piece), ref.slice(at, count)).get();
      }
    }
    return ref;
  }

  void plan_exchange(const LocalProblem<I>& problem) {
    std::vector<std::vector<std::int64_t>> wanted(static_cast<std::size_t>(world_->size()));
    for (const auto& neighbour : problem.halo) {
      const auto rows = problem.wanted_from(neighbour);
      wanted[static_cast<std::size_t>(neighbour.rank)].assign(rows.begin(), rows.end());
      receives_.push_back({Rank(neighbour.rank), neighbour.receive_offset, neighbour.receive_count});
    }
    std::vector<Request> requests;
    auto asked = world_->exchange_values(wanted);
    for (std::size_t rank = 0; rank < asked.size(); ++rank) {
      if (!asked[rank].empty()) requests.push_back({static_cast<std::int32_t>(rank), std::move(asked[rank])});
    }
    const auto plan = send_plan(problem, requests).take();
    for (const auto& neighbour : plan.neighbours) {
      sends_.push_back({Rank(neighbour.rank), neighbour.send_offset, neighbour.send_count});
    }
    if (!problem.halo_columns.empty()) {
      halo_ = device_->template alloc<T>(static_cast<std::int64_t>(problem.halo_columns.size()));
    }
    if (plan.gather.empty()) return;
    gather_ = device_->template alloc<I>(static_cast<std::int64_t>(plan.gather.size()));
    device_->upload(std::span<const I>(plan.gather), gather_).get();
    outgoing_ = device_->template alloc<T>(gather_.length());
  }

  static std::vector<Transfer<T>> transfers(const std::vector<Part>& parts, const GpuRef<T>& buffer) {
    std::vector<Transfer<T>> list;
    for (const auto& part : parts) list.push_back({buffer.slice(part.offset, part.count), part.peer});
    return list;
  }

  Device* device_;
  World* world_;
  std::int64_t rows_, interior_ = 0;
  troupe::CsrMatrix<T, I> own_, foreign_;
  GpuRef<I> gather_;
  GpuRef<T> outgoing_, halo_;
  std::vector<Part> sends_, receives_;
};

}  // namespace troupe::cg
