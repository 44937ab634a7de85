#include "generator.hpp"

#include <algorithm>
#include <cmath>

// Operations of one device.

namespace troupe::torture {
namespace {

constexpr std::int64_t kRandomCount = RandomTable::kCount;
constexpr std::int64_t kRandomSets = RandomTable::kSets;

}  // namespace

void Generator::add_kernel(Kind kind, int rank, int thread, int target) {
  if (barred(kind, rank, thread, target)) return;
  auto op = begin(kind, rank, thread);
  op.target = target;
  switch (kind) {
    case Kind::nop: return emit(op);
    case Kind::pause: op.data = static_cast<std::uint64_t>(random_.below(300)); return emit(op);
    case Kind::fill:
    case Kind::upload:
    case Kind::from_pinned: return add_constant(op);
    case Kind::download:
    case Kind::to_pinned: return add_look(op);
    case Kind::replace: return add_replace(op);
    case Kind::copy: return add_copy(op, false);
    case Kind::blas_copy: return add_copy(op, true);
    case Kind::uniform:
    case Kind::normal:
    case Kind::law:
    case Kind::sequence: return add_random(op);
    case Kind::gemv:
    case Kind::gemm: return add_product(op);
    case Kind::ger:
    case Kind::syrk:
    case Kind::trmm: return add_special_product(op);
    case Kind::iamax: return add_extreme(op);
    case Kind::swap: return add_exchange_of_vectors(op);
    case Kind::spmv:
    case Kind::spmv_sell:
    case Kind::gather: return add_sparse(op);
    case Kind::nrm2: return add_norm(op);
    case Kind::potrf: return add_factorisation(op);
    case Kind::factor_info:
    case Kind::syevd:
    case Kind::gesvd:
    case Kind::gesv: return add_diagonal(op);
    case Kind::sort: op.transpose_a = random_.one_in(2); return add_copy(op, true);
    case Kind::reduce_local:
    case Kind::scan: return add_sums(op);
    case Kind::select: return add_selection(op);
    case Kind::spgemm: return add_sparse_product(op);
    case Kind::transform:
    case Kind::transform_back: return add_transform(op);
    case Kind::convolution: return add_convolution(op);
    case Kind::attention: return add_attention(op);
    case Kind::blas_call:
    case Kind::solver_call:
    case Kind::fft_call:
    case Kind::rng_call:
    case Kind::primitives_call:
    case Kind::sparse_call:
    case Kind::direct_call:
    case Kind::tensor_call:
    case Kind::dnn_call:
    case Kind::outside_call: return add_call(op);
    case Kind::combine:
    case Kind::smooth:
    case Kind::tally:
    case Kind::accumulate: return add_own(op);
    case Kind::divide: return add_division(op);
    default: return add_vector(op);
  }
}

void Generator::add_constant(Operation& op) {
  const int b = pick_any(op, op.target, true);
  if (b < 0) return;
  op.dtype = spec(b).dtype;
  op.at[0] = part(op.target, b, draw_count(spec(b).length));
  op.alpha = spec(b).contents == Contents::bits ? 0 : small(op.dtype);
  grows(op.at[0], kSmall);
  emit(op);
}

void Generator::add_look(Operation& op) {
  const int b = pick_any(op, op.target, false);
  if (b < 0) return;
  op.dtype = spec(b).dtype;
  op.at[0] = part(op.target, b, draw_count(spec(b).length));
  emit(op);
}

void Generator::add_replace(Operation& op) {
  // A rank that is alone fetches its own buffers by their tokens, which end with them.
  const int b = in_run() || ranks_ == 1 ? -1 : pick_any(op, op.target, true);
  if (b < 0 || !owns(op, op.rank, b) || round_->owners[static_cast<std::size_t>(b)].shift != 0)
    return;
  op.dtype = spec(b).dtype;
  op.at[0] = {op.rank, b, 0, spec(b).length};
  op.alpha = spec(b).contents == Contents::bits ? 0 : small(op.dtype);
  bound(op.at[0]) = kSmall;
  emit(op);
}

void Generator::add_copy(Operation& op, bool real_only) {
  const int to = real_only ? pick(op, op.target, draw_real(), Contents::integers, true)
                           : pick_any(op, op.target, true);
  if (to < 0) return;
  op.dtype = spec(to).dtype;
  const int from = pick(op, op.target, op.dtype, spec(to).contents, false, {to});
  if (from < 0) return;
  const auto count = draw_count(std::min(spec(from).length, spec(to).length));
  op.at[0] = part(op.target, from, count);
  op.at[1] = part(op.target, to, count);
  grows(op.at[1], bound(op.at[0]));
  emit(op);
}

void Generator::add_random(Operation& op) {
  op.dtype = draw_real();
  const int to = pick(op, op.target, op.dtype, Contents::bits, true);
  if (to < 0) return;
  op.at[0] = part(op.target, to, kRandomCount);
  op.data = static_cast<std::uint64_t>(random_.below(kRandomSets));
  emit(op);
}

void Generator::draw_alpha(Operation& op, std::initializer_list<int> but) {
  op.alpha = small(op.dtype);
  if (!random_.one_in(4)) return;
  const int b = pick(op, op.target, op.dtype, Contents::integers, false, but);
  if (b >= 0) op.alpha_at = part(op.target, b, 1);
}

double Generator::alpha_bound(const Operation& op) {
  return op.alpha_at.present() ? bound(op.alpha_at) : std::abs(op.alpha);
}

void Generator::add_vector(Operation& op) {
  op.dtype = draw_real();
  const bool one = op.kind == Kind::scal, two = op.kind == Kind::axpy || op.kind == Kind::axpby;
  const int to = pick(op, op.target, op.dtype, Contents::integers, true);
  const int x = one ? to : pick(op, op.target, op.dtype, Contents::integers, false, {to});
  const int y = one || two ? to : pick(op, op.target, op.dtype, Contents::integers, false, {to});
  if (to < 0 || x < 0 || y < 0) return;
  auto count = std::min({spec(to).length, spec(x).length, spec(y).length});
  count = draw_count(op.kind == Kind::dot ? std::min<std::int64_t>(count, 32) : count);
  op.at[0] = part(op.target, x, count);
  if (one) {
    draw_alpha(op, {to});
    if (fits(op, op.at[0], alpha_bound(op) * bound(op.at[0]))) emit(op);
    return;
  }
  op.at[1] = part(op.target, two ? to : y, count);
  const auto bx = bound(op.at[0]), by = bound(op.at[1]);
  if (two) {
    draw_alpha(op, {to});
    op.beta = op.kind == Kind::axpy ? 1 : small(op.dtype);
    if (fits(op, op.at[1], alpha_bound(op) * bx + std::abs(op.beta) * by)) emit(op);
    return;
  }
  const bool dot = op.kind == Kind::dot;
  op.at[2] = part(op.target, to, dot ? 1 : count);
  if (fits(op, op.at[2], bx * by * (dot ? static_cast<double>(count) : 1))) emit(op);
}

void Generator::add_division(Operation& op) {
  op.dtype = draw_real();
  const int x = pick(op, op.target, op.dtype, Contents::integers, true);
  const int y = pick(op, op.target, op.dtype, Contents::integers, true, {x});
  const int to = pick(op, op.target, op.dtype, Contents::integers, true, {x, y});
  if (x < 0 || y < 0 || to < 0) return;
  const auto count = draw_count(std::min({spec(to).length, spec(x).length, spec(y).length}));
  const double by = std::ldexp(random_.one_in(2) ? 1 : -1, static_cast<int>(random_.below(3)));
  auto scaled = begin(Kind::scal, op.rank, op.thread);
  scaled.target = op.target, scaled.dtype = op.dtype, scaled.alpha = by;
  scaled.at[0] = part(op.target, x, count);
  const auto was = bound(scaled.at[0]);
  if (!fits(op, scaled.at[0], std::abs(by) * was)) return;
  auto filled = begin(Kind::fill, op.rank, op.thread);
  filled.target = op.target, filled.dtype = op.dtype, filled.alpha = by;
  filled.at[0] = part(op.target, y, count);
  grows(filled.at[0], std::abs(by));
  op.at[0] = scaled.at[0], op.at[1] = filled.at[0], op.at[2] = part(op.target, to, count);
  grows(op.at[2], was);
  op.id = next_id_++;  // behind what it needs; the three are left out together or not at all
  emit(scaled), emit(filled), emit(op);
}

void Generator::add_norm(Operation& op) {
  op.dtype = draw_real();
  const int x = pick(op, op.target, op.dtype, Contents::integers, true);
  const int to = pick(op, op.target, op.dtype, Contents::rounded, true);
  if (x < 0 || to < 0) return;
  const auto root = random_.between(1, 9);
  auto filled = begin(Kind::fill, op.rank, op.thread);
  filled.target = op.target, filled.dtype = op.dtype, filled.alpha = small(op.dtype);
  filled.at[0] = part(op.target, x, root * root);
  grows(filled.at[0], kSmall);
  op.at[0] = filled.at[0], op.at[1] = part(op.target, to, 1);
  op.id = next_id_++;
  if (!fits(op, op.at[1], std::abs(filled.alpha) * static_cast<double>(root))) return;
  emit(filled), emit(op);
}

void Generator::fill_for(const Operation& op, const Slice& slice, double value) {
  auto filled = begin(Kind::fill, op.rank, op.thread);
  filled.target = op.target, filled.dtype = op.dtype, filled.alpha = value;
  filled.at[0] = slice;
  grows(slice, std::abs(value));
  emit(filled);
}

/// Factorises a diagonal of squares of powers of two, exact whatever the algorithm; or one whose
/// minor of order n is not positive definite.
void Generator::add_factorisation(Operation& op) {
  op.dtype = draw_real();
  const int a = pick(op, op.target, op.dtype, Contents::integers, true);
  if (a < 0) return;
  op.m = random_.between(1, 4);
  op.at[0] = part(op.target, a, op.m * op.m);
  if (may_fail() && random_.one_in(4)) {
    op.n = random_.between(1, op.m);
    return emit_failing(op, Errc::numeric);
  }
  fill_for(op, op.at[0], 0);
  for (std::int64_t i = 0; i < op.m; ++i) {
    const Slice diagonal{op.at[0].rank, op.at[0].buffer, op.at[0].first + i * (op.m + 1), 1};
    fill_for(op, diagonal, std::ldexp(1, 2 * static_cast<int>(random_.below(3))));
  }
  op.id = next_id_++;
  emit(op);
}

void Generator::add_product(Operation& op) {
  op.dtype = draw_real();
  const int c = pick(op, op.target, op.dtype, Contents::integers, true);
  const int a = pick(op, op.target, op.dtype, Contents::integers, false, {c});
  const int b = pick(op, op.target, op.dtype, Contents::integers, false, {c});
  if (c < 0 || a < 0 || b < 0) return;
  const bool matrix = op.kind == Kind::gemm;
  op.m = random_.between(1, 9), op.n = random_.between(1, 9);
  op.k = matrix ? random_.between(1, 9) : 1;
  op.transpose_a = random_.one_in(2), op.transpose_b = matrix && random_.one_in(2);
  op.alpha = small(op.dtype), op.beta = small(op.dtype);
  const auto inner = matrix ? op.k : op.transpose_a ? op.m : op.n;
  op.at[0] = part(op.target, a, matrix ? op.m * op.k : op.m * op.n);
  op.at[1] = part(op.target, b, matrix ? op.k * op.n : inner);
  op.at[2] = part(op.target, c, matrix ? op.m * op.n : op.transpose_a ? op.n : op.m);
  const auto sum = static_cast<double>(inner) * bound(op.at[0]) * bound(op.at[1]);
  if (fits(op, op.at[2], std::abs(op.alpha) * sum + std::abs(op.beta) * bound(op.at[2]))) emit(op);
}

/// A product of vectors, of a matrix with itself, or of a triangular one.
void Generator::add_special_product(Operation& op) {
  op.dtype = draw_real();
  const int c = pick(op, op.target, op.dtype, Contents::integers, true);
  const int a = pick(op, op.target, op.dtype, Contents::integers, false, {c});
  const int b = pick(op, op.target, op.dtype, Contents::integers, false, {c});
  if (c < 0 || a < 0 || b < 0) return;
  op.m = random_.between(1, 9), op.n = random_.between(1, 9);
  op.transpose_a = op.kind == Kind::syrk && random_.one_in(2);
  op.transpose_b = op.kind != Kind::ger && random_.one_in(2);
  op.alpha = small(op.dtype);
  op.beta = op.kind == Kind::ger ? 1 : op.kind == Kind::trmm ? 0 : small(op.dtype);
  const bool square = op.kind == Kind::syrk;
  op.at[0] = part(op.target, a, square ? op.m * op.n : op.kind == Kind::trmm ? op.m * op.m : op.m);
  if (!square) op.at[1] = part(op.target, b, op.kind == Kind::trmm ? op.m * op.n : op.n);
  op.at[2] = part(op.target, c, square ? op.n * op.n : op.m * op.n);
  const auto terms = op.kind == Kind::ger ? 1 : static_cast<double>(op.m);
  const auto sum = terms * bound(op.at[0]) * bound(square ? op.at[0] : op.at[1]);
  if (fits(op, op.at[2],
           std::max(bound(op.at[2]),
                    std::abs(op.alpha) * sum + std::abs(op.beta) * bound(op.at[2])))) {
    emit(op);
  }
}

void Generator::add_extreme(Operation& op) {
  op.dtype = draw_real();
  const int to = pick(op, op.target, DType::i64, Contents::integers, true);
  const int from = pick(op, op.target, op.dtype, Contents::integers, false);
  if (to < 0 || from < 0) return;
  op.transpose_a = random_.one_in(2);
  op.at[0] = part(op.target, from, draw_count(spec(from).length));
  op.at[1] = part(op.target, to, 1);
  grows(op.at[1], static_cast<double>(op.at[0].count));
  emit(op);
}

void Generator::add_exchange_of_vectors(Operation& op) {
  op.dtype = draw_real();
  const int one = pick(op, op.target, op.dtype, Contents::integers, true);
  const int other = pick(op, op.target, op.dtype, Contents::integers, true, {one});
  if (one < 0 || other < 0) return;
  const auto count = draw_count(std::min(spec(one).length, spec(other).length));
  op.at[0] = part(op.target, one, count);
  op.at[1] = part(op.target, other, count);
  const auto largest = std::max(bound(op.at[0]), bound(op.at[1]));
  grows(op.at[0], largest), grows(op.at[1], largest);
  emit(op);
}

void Generator::add_sparse(Operation& op) {
  op.dtype = draw_real();
  const int y = pick(op, op.target, op.dtype, Contents::integers, true);
  const int values = pick(op, op.target, op.dtype, Contents::integers, false, {y});
  const int x = pick(op, op.target, op.dtype, Contents::integers, false, {y});
  if (y < 0 || values < 0 || x < 0) return;
  const auto whole = [&](int b) { return Slice{op.target, b, 0, spec(b).length}; };
  if (op.kind == Kind::gather) {
    op.at[3] = whole(matrix_ + 4);
    op.at[0] = part(op.target, x, kVector);
    op.at[1] = part(op.target, y, op.at[3].count);
    grows(op.at[1], bound(op.at[0]));
    return emit(op);
  }
  const bool sell = op.kind == Kind::spmv_sell;
  op.m = rows_, op.n = columns_, op.k = slice_rows_;
  op.at[0] = part(op.target, values, rows_ * per_row_);
  op.at[1] = part(op.target, x, columns_);
  op.at[2] = part(op.target, y, rows_);
  op.at[3] = whole(matrix_ + (sell ? 2 : 0));
  op.at[4] = whole(matrix_ + (sell ? 3 : 1));
  op.alpha = small(op.dtype), op.beta = small(op.dtype);
  const auto sum = static_cast<double>(per_row_) * bound(op.at[0]) * bound(op.at[1]);
  if (fits(op, op.at[2], std::abs(op.alpha) * sum + std::abs(op.beta) * bound(op.at[2]))) emit(op);
}

}  // namespace troupe::torture
