#include <algorithm>
#include <cmath>

#include "generator.hpp"

// Operations of libraries on the rank's own device, and calls of libraries that fail.

namespace troupe::torture {
namespace {

constexpr std::int64_t kChannels = 2, kImage = 4;         ///< of convolutions
constexpr std::int64_t kQueries = 4, kDim = 8;            ///< of attention
constexpr std::int64_t kNarrowAlign = 8, kWideAlign = 4;  ///< elements in 16 bytes

}  // namespace

Slice Generator::aligned_part(int device, int buffer, std::int64_t count, std::int64_t multiple) {
  auto slice = part(device, buffer, count);
  slice.first -= slice.first % multiple;
  return slice;
}

/// An operation on a diagonal matrix, which its data tell: exact whatever the algorithm.
void Generator::add_diagonal(Operation& op) {
  op.dtype = draw_real();
  op.m = random_.between(1, 6);
  if (op.kind == Kind::factor_info) {
    op.n = random_.between(0, op.m);
    return emit(op);
  }
  const int to = pick(op, op.target, op.dtype, Contents::rounded, true);
  if (to < 0 || spec(to).length < op.m) return;
  op.transpose_a = random_.one_in(2);  // with vectors, or in another way
  op.at[0] = part(op.target, to, op.m);
  grows(op.at[0], 8);
  emit(op);
}

void Generator::add_sums(Operation& op) {
  static const std::vector<DType> kIntegers{DType::i32, DType::i64, DType::i64, DType::u32,
                                            DType::u64};
  const bool scans = op.kind == Kind::scan;
  op.dtype = scans || random_.one_in(2) ? random_.of(kIntegers) : draw_real();
  const int to = pick(op, op.target, op.dtype, Contents::integers, true);
  if (to < 0) return;
  const bool in_place = scans && random_.one_in(3);
  const int from = in_place ? to : pick(op, op.target, op.dtype, Contents::integers, false, {to});
  if (from < 0) return;
  const auto count = draw_count(std::min(spec(from).length, spec(to).length));
  op.at[0] = part(op.target, from, count);
  op.at[1] = in_place ? op.at[0] : part(op.target, to, scans ? count : 1);
  op.transpose_a = scans && random_.one_in(2);
  constexpr ReduceOp kReductions[] = {ReduceOp::sum, ReduceOp::min, ReduceOp::max};
  op.reduce = kReductions[random_.below(3)];
  if (fits(op, op.at[1], static_cast<double>(count) * bound(op.at[0]))) emit(op);
}

/// Into as much room as there are elements, or with whatever room, and how many it would have to be
/// is seen.
void Generator::add_selection(Operation& op) {
  op.dtype = random_.one_in(3) ? DType::i32 : draw_real();
  const int to = pick(op, op.target, DType::i64, Contents::integers, true);
  const int from = pick(op, op.target, op.dtype, Contents::integers, false);
  if (to < 0 || from < 0) return;
  const auto count = draw_count(std::min(spec(from).length, spec(to).length));
  op.reports = random_.one_in(2);
  op.at[0] = part(op.target, from, count);
  op.at[1] = part(op.target, to, op.reports ? random_.between(1, spec(to).length) : count);
  grows(op.at[1], static_cast<double>(count));
  emit(op);
}

/// With room for the product, with too little, and with none.
void Generator::add_sparse_product(Operation& op) {
  op.dtype = draw_real();
  const int c = pick(op, op.target, op.dtype, Contents::integers, true);
  const int a = pick(op, op.target, op.dtype, Contents::integers, false, {c});
  const int b = pick(op, op.target, op.dtype, Contents::integers, false, {c});
  const int indices = pick(op, op.target, index_, Contents::integers, true);
  if (c < 0 || a < 0 || b < 0 || indices < 0) return;
  op.m = rows_, op.n = columns_, op.k = width_;
  const auto whole = [&](int buffer) { return Slice{op.target, buffer, 0, spec(buffer).length}; };
  op.at[3] = whole(matrix_), op.at[4] = whole(matrix_ + 1);
  op.at[5] = whole(matrix_ + 5), op.at[6] = whole(matrix_ + 6);
  op.at[0] = part(op.target, a, op.at[4].count);
  op.at[1] = part(op.target, b, op.at[6].count);
  const bool short_of_room = product_ > 1 && random_.one_in(3);
  const bool fails = short_of_room && may_fail() && random_.one_in(3);
  const auto room = short_of_room       ? random_.between(fails ? 1 : 0, product_ - 1)
                    : random_.one_in(5) ? 0
                                        : product_ + random_.below(5);
  op.reports = room < product_ ? !fails : random_.one_in(2);
  op.at[7] = part(op.target, indices, rows_ + 1 + room);
  if (room > 0) {
    op.at[8] = op.at[7];
    op.at[8].first += rows_ + 1, op.at[8].count = room;
    op.at[2] = part(op.target, c, room);
  }
  op.at[7].count = rows_ + 1;
  grows(op.at[7], static_cast<double>(std::max(product_, width_)));
  const auto sum = static_cast<double>(per_row_) * bound(op.at[0]) * bound(op.at[1]);
  if (room > 0 && !fits(op, op.at[2], sum)) return;
  if (!fails) return emit(op);
  emit_failing(op, Errc::invalid);
}

void Generator::add_transform(Operation& op) {
  const bool back = op.kind == Kind::transform_back;
  op.peer = static_cast<int>(random_.between(1, 3));
  std::int64_t* const extents[] = {&op.m, &op.n, &op.k};
  for (int i = 0; i < 3; ++i) *extents[i] = i < op.peer ? std::int64_t{1} << random_.below(3) : 1;
  if (op.m * op.n * op.k > 32) op.m = 1;
  const TransformShape shape(op);
  const auto batch = random_.between(1, 3);
  op.dtype = draw_real();
  const auto complex = op.dtype == DType::f32 ? DType::c64 : DType::c128;
  op.transpose_a = !back && random_.one_in(2);
  op.transpose_b = op.transpose_a && random_.one_in(2);
  const int to = back ? pick(op, op.target, op.dtype, Contents::integers, true)
                      : pick(op, op.target, complex, Contents::rounded, true);
  const bool in_place = op.transpose_a && random_.one_in(3);
  const int from = in_place ? to
                   : op.transpose_a
                       ? pick(op, op.target, complex, Contents::rounded, false, {to})
                       : pick(op, op.target, op.dtype, Contents::integers, false, {to});
  if (to < 0 || from < 0) return;
  op.at[0] = aligned_part(op.target, from, batch * shape.length, 2);
  op.at[1] = in_place
                 ? op.at[0]
                 : aligned_part(op.target, to,
                                batch * (back || op.transpose_a ? shape.length : shape.stored), 2);
  const auto length = static_cast<double>(shape.length);
  if (fits(op, op.at[1], length * (back ? length : 1) * bound(op.at[0]))) emit(op);
}

void Generator::add_convolution(Operation& op) {
  op.dtype = random_.one_in(2) ? DType::f32 : narrow_;
  const auto align = op.dtype == DType::f32 ? kWideAlign : kNarrowAlign;
  op.m = kImage, op.n = filter_, op.k = kChannels, op.peer = static_cast<int>(stride_);
  const int y = pick(op, op.target, op.dtype, Contents::integers, true);
  const int x = pick(op, op.target, op.dtype, Contents::integers, false, {y});
  const int w = pick(op, op.target, op.dtype, Contents::integers, false, {y});
  if (y < 0 || x < 0 || w < 0) return;
  const auto out = ConvolutionShape(op).out;
  op.at[0] = aligned_part(op.target, x, op.m * op.m * op.k, align);
  op.at[1] = aligned_part(op.target, w, op.k * op.n * op.n * op.k, align);
  if (random_.one_in(2)) op.at[2] = aligned_part(op.target, w, op.k, align);
  op.at[3] = aligned_part(op.target, y, out * out * op.k, align);
  const auto sum = static_cast<double>(op.n * op.n * op.k) * bound(op.at[0]) * bound(op.at[1]);
  if (fits(op, op.at[3], sum + bound(op.at[1]))) emit(op);
}

/// Exact: of one key, or of keys that weigh the same and whose values are multiples of their
/// number.
void Generator::add_attention(Operation& op) {
  op.dtype = narrow_;
  op.m = kQueries, op.n = keys_, op.k = kDim;
  const int o = pick(op, op.target, op.dtype, Contents::integers, true);
  const int v = pick(op, op.target, op.dtype, Contents::integers, keys_ > 1, {o});
  if (o < 0 || v < 0) return;
  op.at[0] = aligned_part(op.target, v, op.m * op.k, kNarrowAlign);
  op.at[1] = aligned_part(op.target, v, op.n * op.k, kNarrowAlign);
  op.at[2] = aligned_part(op.target, v, op.n * op.k, kNarrowAlign);
  op.at[3] = aligned_part(op.target, o, op.m * op.k, kNarrowAlign);
  for (std::int64_t key = 0; key < keys_ && keys_ > 1; ++key) {
    const Slice row{op.at[2].rank, op.at[2].buffer, op.at[2].first + key * kDim, kDim};
    fill_for(op, row, static_cast<double>(keys_) * small(op.dtype));
  }
  op.id = next_id_++;
  grows(op.at[3], bound(op.at[2]));
  emit(op);
}

void Generator::add_call(Operation& op) {
  std::vector<const CallInfo*> calls;
  for (const auto* call : recipe_.calls) {
    if (call->library == library_of(op.kind)) calls.push_back(call);
  }
  if (calls.empty()) return;
  op.call = random_.of(calls);
  if (in_run() && op.call->may_refuse) return;
  std::vector<DType> dtypes;
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    if (op.call->dtypes.has(static_cast<DType>(i))) dtypes.push_back(static_cast<DType>(i));
  }
  op.dtype = random_.of(dtypes);
  emit(op);
}

void Generator::add_own(Operation& op) {
  const bool counts = op.kind == Kind::tally;
  op.dtype = counts ? DType::i32 : draw_real();
  const int to = pick(op, op.target, op.dtype, Contents::integers, true);
  const int x = pick(op, op.target, op.dtype, Contents::integers, false, {to});
  const int y = op.kind == Kind::combine
                    ? pick(op, op.target, op.dtype, Contents::integers, false, {to})
                    : to;
  if (to < 0 || x < 0 || y < 0) return;
  op.m = std::int64_t{16} << random_.below(4);
  op.transpose_a = random_.one_in(2);  // may be repeated
  op.alpha = small(op.dtype);
  const auto count = draw_count(std::min({spec(to).length, spec(x).length, spec(y).length}));
  op.at[0] = part(op.target, x, count);
  op.at[1] = part(op.target, y, counts ? random_.between(1, 40) : count);
  if (op.kind == Kind::combine) op.at[2] = part(op.target, to, count);
  const auto bx = bound(op.at[0]), by = bound(op.at[1]);
  const auto largest = op.kind == Kind::smooth ? 3 * bx
                       : counts                ? by + static_cast<double>(count)
                                               : std::abs(op.alpha) * bx + by;
  if (fits(op, written(op).front(), largest)) emit(op);
}

// What fails

void Generator::emit_failing(Operation& op, Errc error) {
  if (!may_spoil(op)) return;
  op.fails = error;
  auto use = begin(Kind::wrong, op.rank, op.thread);
  const bool is_used = random_.one_in(2);
  if (is_used) op.await = Await::now;
  emit(op);
  use.wrong = Wrong::spoilt, use.dtype = op.dtype;
  use.at[1] = written(op).front();
  if (is_used && !recipe_.left_out.contains(op.id)) emit(use);
  for (const auto& slice : written(op)) spoilt_.insert({slice.rank, slice.buffer});
}

void Generator::add_library_fault() {
  static const std::vector<Kind> kVictims{Kind::multiply,
                                          Kind::axpby,
                                          Kind::axpy,
                                          Kind::dot,
                                          Kind::gemm,
                                          Kind::scal,
                                          Kind::syrk,
                                          Kind::trmm,
                                          Kind::spmv,
                                          Kind::gather,
                                          Kind::spgemm,
                                          Kind::uniform,
                                          Kind::potrf,
                                          Kind::factor_info,
                                          Kind::syevd,
                                          Kind::sort,
                                          Kind::scan,
                                          Kind::select,
                                          Kind::transform,
                                          Kind::convolution,
                                          Kind::attention,
                                          Kind::combine,
                                          Kind::smooth,
                                          Kind::tally,
                                          Kind::accumulate,
                                          Kind::blas_call,
                                          Kind::solver_call,
                                          Kind::rng_call,
                                          Kind::primitives_call,
                                          Kind::sparse_call,
                                          Kind::outside_call};
  if (fragile_.library.empty()) return;
  fragile_.state = Fragile::State::due;
  for (int attempt = 0; attempt < 40 && fragile_.state == Fragile::State::due; ++attempt) {
    const auto kind = random_.of(kVictims);
    if (library_of(kind) == fragile_.library)
      add_kernel(kind, fragile_.rank, fragile_.thread, fragile_.rank);
  }
  if (fragile_.state == Fragile::State::due) fragile_ = {};  // there was no buffer for it
}

void Generator::let_fail(Operation& op) {
  fragile_.state = Fragile::State::over;
  op.fails = Errc::library;
  for (const auto& slice : written(op)) spoilt_.insert({slice.rank, slice.buffer});
}

bool Generator::may_spoil(const Operation& op) const {
  const auto slices = written(op);
  return std::none_of(slices.begin(), slices.end(), [this](const Slice& slice) {
    return in_transfer_.contains({slice.rank, slice.buffer});
  });
}

bool Generator::barred(Kind kind, int rank, int thread, int target) const {
  if (fragile_.library.empty() || target != fragile_.rank) return false;
  const bool uses =
      library_of(kind) == fragile_.library || (kind == Kind::divide && fragile_.library == "blas");
  const bool owner = rank == fragile_.rank && thread == fragile_.thread;
  return uses && !(owner && fragile_.state != Fragile::State::awaited);
}

}  // namespace troupe::torture
