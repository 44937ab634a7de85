#pragma once

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <troupe/troupe.hpp>

#include "grids.hpp"
#include "partition.hpp"
#include "sell.hpp"

namespace troupe::cg {

/// What a rank sends and receives for a product: parts of a buffer for each way.
template <troupe::IndexElement I>
struct ExchangePlan {
  struct Part {
    Rank peer;
    std::int64_t offset, count;
  };
  std::vector<Part> sends, receives;
  std::vector<I> gather;  ///< the local rows in the buffer of what is sent
};

/// The plan for a problem. All ranks call it, and none needs its device for it.
template <class I>
ExchangePlan<I> plan_exchange(World& world, const LocalProblem<I>& problem) {
  ExchangePlan<I> result;
  std::vector<std::vector<std::int64_t>> wanted(static_cast<std::size_t>(world.size()));
  for (const auto& neighbour : problem.halo) {
    const auto rows = problem.wanted_from(neighbour);
    wanted[static_cast<std::size_t>(neighbour.rank)].assign(rows.begin(), rows.end());
    result.receives.push_back(
        {Rank(neighbour.rank), neighbour.receive_offset, neighbour.receive_count});
  }
  std::vector<Request> requests;
  auto asked = world.exchange_values(wanted);
  for (std::size_t rank = 0; rank < asked.size(); ++rank) {
    if (!asked[rank].empty())
      requests.push_back({static_cast<std::int32_t>(rank), std::move(asked[rank])});
  }
  auto plan = send_plan(problem, requests).take();
  for (const auto& neighbour : plan.neighbours)
    result.sends.push_back({Rank(neighbour.rank), neighbour.send_offset, neighbour.send_count});
  result.gather = std::move(plan.gather);
  return result;
}

/// The plans of a problem and its coarser grids, the finest first; as plan_exchange(). They are
/// made before a device can fail on some ranks: the others would wait for those.
template <class I>
std::vector<ExchangePlan<I>> plan_exchanges(World& world, const LocalProblem<I>& problem,
                                            const std::vector<CoarseGrid<I>>& coarser) {
  std::vector<ExchangePlan<I>> plans{plan_exchange(world, problem)};
  for (const auto& grid : coarser) plans.push_back(plan_exchange(world, grid.problem));
  return plans;
}

/// A rank's part of the matrix on its device, and the way of a product through the world:
/// gather what others need, exchange it while the own part is multiplied, then add the foreign
/// part. The own part is in sliced ELL form where its rows are even enough and nobody wants it in
/// CSR, else in CSR; the small foreign part is in CSR.
template <RealElement T, troupe::IndexElement I>
class DistributedMatrix {
 public:
  /// The form of the own part.
  enum class Form { fastest, csr };

  /// Uploads the problem's matrix, converting it on `threads` threads. Throws Exception.
  DistributedMatrix(Runtime& runtime, const LocalProblem<I>& problem, const ExchangePlan<I>& plan,
                    std::int32_t threads, Form form = Form::fastest)
      : device_(&runtime.device()),
        world_(&runtime.world()),
        rows_(problem.rows),
        own_nonzeros_(problem.own.nonzeros()),
        sends_(plan.sends),
        receives_(plan.receives) {
    make_buffers(plan, std::ssize(problem.halo_columns));
    std::vector<I> slices;
    if (form == Form::fastest) slices = slice_offsets(problem.own);
    if (!slices.empty()) {
      own_ = upload_sell(problem.own, slices, threads);
    } else {
      own_ = upload(problem.own);
    }
    if (problem.halo_columns.empty()) return;
    foreign_ = upload(problem.foreign);
    interior_ = problem.interior_rows;
  }

  /// Takes parts that are on the device already, in CSR; `foreign` has all rows, or is empty.
  DistributedMatrix(Runtime& runtime, const ExchangePlan<I>& plan, troupe::CsrMatrix<T, I> own,
                    troupe::CsrMatrix<T, I> foreign)
      : device_(&runtime.device()),
        world_(&runtime.world()),
        rows_(own.rows),
        own_nonzeros_(own.column.length()),
        sends_(plan.sends),
        receives_(plan.receives),
        own_(std::move(own)),
        foreign_(std::move(foreign)) {
    make_buffers(plan, foreign_.columns);
  }

  /// y = alpha A x + beta y. Submits and returns.
  void multiply(const GpuRef<T>& x, const GpuRef<T>& y, T alpha = 1, T beta = 0) {
    if (!sends_.empty()) device_->sparse().gather(x, gather_, outgoing_);
    if (!sends_.empty() || !receives_.empty())
      world_->template exchange<T>(transfers(sends_, outgoing_), transfers(receives_, halo_));
    multiply_own(x, y, alpha, beta);
    if (!receives_.empty()) {
      device_->sparse().spmv(foreign_, halo_, y.slice(interior_, rows_ - interior_), alpha, T(1));
    }
  }
  /// The part of multiply() that needs no communication.
  Future<void> multiply_own(const GpuRef<T>& x, const GpuRef<T>& y, T alpha = 1, T beta = 0) {
    return std::visit(
        [&](const auto& own) { return device_->sparse().spmv(own, x, y, alpha, beta); }, own_);
  }

  /// Its exchange buffers must be valid again after a rollback.
  void register_scratch(Checkpoint& checkpoint) {
    if (outgoing_) checkpoint.add_scratch(outgoing_);
    if (halo_) checkpoint.add_scratch(halo_);
  }

  /// The matrix is looked after, and written anew from `problem`, that of the constructor, which
  /// must outlive the checkpoint.
  void register_constants(Checkpoint& checkpoint, const LocalProblem<I>& problem,
                          std::int32_t threads) {
    if (auto* const sell = std::get_if<troupe::SellMatrix<T, I>>(&own_)) {
      const auto write = [=, this, &problem](const GpuRef<I>& columns, const GpuRef<T>& values) {
        write_slices(problem.own, slice_offsets(problem.own), columns, values, threads);
      };
      checkpoint.add_constant("slices of the matrix", sell->slice_begin, [=, this, &problem] {
        device_->upload(std::span<const I>(slice_offsets(problem.own)), sell->slice_begin);
      });
      checkpoint.add_constant("columns of the matrix", sell->column,
                              [=] { write(sell->column, {}); });
      checkpoint.add_constant("values of the matrix", sell->value, [=] { write({}, sell->value); });
    } else {
      register_csr(checkpoint, "the matrix", std::get<troupe::CsrMatrix<T, I>>(own_), problem.own);
    }
    if (gather_) checkpoint.add_constant("rows that others need", gather_);
    if (problem.halo_columns.empty()) return;
    register_csr(checkpoint, "the foreign part", foreign_, problem.foreign);
  }

  [[nodiscard]] std::int64_t rows() const { return rows_; }
  /// Bytes that a product with the own part in CSR must move at least: nonzeros and row offsets
  /// once, x once, y once. Counted so in whatever form the part is: padding is not useful work.
  [[nodiscard]] double own_bytes() const {
    return static_cast<double>(own_nonzeros_) * (sizeof(T) + sizeof(I)) +
           static_cast<double>(rows_ + 1) * sizeof(I) +
           2.0 * static_cast<double>(rows_) * sizeof(T);
  }
  /// The own part. Requires Form::csr.
  [[nodiscard]] const troupe::CsrMatrix<T, I>& own_csr() const {
    return std::get<troupe::CsrMatrix<T, I>>(own_);
  }
  /// The form of the own part, for people.
  [[nodiscard]] std::string_view own_format() const {
    return std::holds_alternative<troupe::SellMatrix<T, I>>(own_) ? "sliced ELL" : "CSR";
  }

 private:
  using Part = typename ExchangePlan<I>::Part;

  void make_buffers(const ExchangePlan<I>& plan, std::int64_t halo) {
    if (halo != 0) halo_ = device_->template alloc<T>(halo);
    if (plan.gather.empty()) return;
    gather_ = device_->template alloc<I>(std::ssize(plan.gather));
    device_->upload(std::span<const I>(plan.gather), gather_).get();
    outgoing_ = device_->template alloc<T>(gather_.length());
  }
  troupe::CsrMatrix<T, I> upload(const CsrMatrix<I>& matrix) {
    troupe::CsrMatrix<T, I> device_matrix{matrix.rows, matrix.columns, convert<I>(matrix.row_begin),
                                          convert<I>(matrix.column), convert<T>(matrix.value)};
    return device_matrix;
  }
  troupe::SellMatrix<T, I> upload_sell(const CsrMatrix<I>& matrix, const std::vector<I>& offsets,
                                       std::int32_t threads) {
    const auto slices = std::ssize(offsets) - 1;
    const auto entries = static_cast<std::int64_t>(offsets.back());
    troupe::SellMatrix<T, I> sell{matrix.rows,
                                  matrix.columns,
                                  matrix.nonzeros(),
                                  kSliceRows,
                                  device_->template alloc<I>(slices + 1),
                                  device_->template alloc<I>(entries),
                                  device_->template alloc<T>(entries)};
    device_->upload(std::span(offsets), sell.slice_begin).get();
    write_slices(matrix, offsets, sell.column, sell.value, threads);
    return sell;
  }
  /// Converts and uploads in pieces of as many slices as fit, at least one; columns and values
  /// where there is a buffer for them.
  void write_slices(const CsrMatrix<I>& matrix, const std::vector<I>& offsets,
                    const GpuRef<I>& columns, const GpuRef<T>& values, std::int32_t threads) {
    constexpr std::int64_t kPiece = 1 << 22;
    const auto offset = [&](std::int64_t slice) {
      return static_cast<std::int64_t>(offsets[static_cast<std::size_t>(slice)]);
    };
    const auto slices = std::ssize(offsets) - 1;
    Array<I> column;
    Array<T> value;
    Future<void> columns_there, values_there;
    for (std::int64_t first = 0, last = 0; first < slices; first = last) {
      const auto begin = offset(first);
      while (last < slices && (last == first || offset(last + 1) - begin <= kPiece)) ++last;
      const auto count = offset(last) - begin;
      column.resize(static_cast<std::size_t>(count));
      value.resize(static_cast<std::size_t>(count));
      fill_slices<I, T>(matrix, offsets, first, last, column, value, threads);
      // The piece is in staging when upload() returns: the device copies it while the next one is
      // filled.
      for (auto* const there : {&columns_there, &values_there})
        if (there->valid()) there->get();
      if (columns)
        columns_there = device_->upload(std::span<const I>(column), columns.slice(begin, count));
      if (values)
        values_there = device_->upload(std::span<const T>(value), values.slice(begin, count));
    }
    for (auto* const there : {&columns_there, &values_there})
      if (there->valid()) there->get();
  }
  void register_csr(Checkpoint& checkpoint, const std::string& name,
                    troupe::CsrMatrix<T, I>& matrix, const CsrMatrix<I>& source) {
    checkpoint.add_constant("rows of " + name, matrix.row_begin, [this, &matrix, &source] {
      write(source.row_begin, matrix.row_begin);
    });
    checkpoint.add_constant("columns of " + name, matrix.column,
                            [this, &matrix, &source] { write(source.column, matrix.column); });
    checkpoint.add_constant("values of " + name, matrix.value,
                            [this, &matrix, &source] { write(source.value, matrix.value); });
  }
  template <class To, class From>
  GpuRef<To> convert(const Array<From>& values) {
    auto ref = device_->template alloc<To>(static_cast<std::int64_t>(values.size()));
    write(values, ref);
    return ref;
  }
  /// Uploads host values as elements of another type, in pieces, and waits for it.
  template <class To, class From>
  void write(const Array<From>& values, const GpuRef<To>& ref) {
    const auto length = static_cast<std::int64_t>(values.size());
    if constexpr (std::is_same_v<To, From>) {
      device_->upload(std::span<const To>(values), ref).get();
    } else {
      constexpr std::int64_t kPiece = 1 << 20;
      std::vector<To> piece;
      for (std::int64_t at = 0; at < length; at += kPiece) {
        const auto count = std::min(kPiece, length - at);
        const auto first = values.begin() + at;
        piece.resize(static_cast<std::size_t>(count));
        std::transform(first, first + count, piece.begin(),
                       [](From value) { return static_cast<To>(value); });
        device_->upload(std::span<const To>(piece), ref.slice(at, count)).get();
      }
    }
  }

  static std::vector<Transfer<T>> transfers(const std::vector<Part>& parts,
                                            const GpuRef<T>& buffer) {
    std::vector<Transfer<T>> list;
    for (const auto& part : parts)
      list.push_back({buffer.slice(part.offset, part.count), part.peer});
    return list;
  }

  Device* device_;
  World* world_;
  std::int64_t rows_, own_nonzeros_, interior_ = 0;
  std::vector<Part> sends_, receives_;
  std::variant<troupe::CsrMatrix<T, I>, troupe::SellMatrix<T, I>> own_;
  troupe::CsrMatrix<T, I> foreign_;
  GpuRef<I> gather_;
  GpuRef<T> outgoing_, halo_;
};

}  // namespace troupe::cg
