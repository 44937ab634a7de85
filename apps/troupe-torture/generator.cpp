#include <algorithm>
#include <cmath>

#include "oracle.hpp"
#include "program.hpp"
#include "random.hpp"
#include "values.hpp"

namespace troupe::torture {
namespace {

constexpr std::int64_t kVector = 96;  ///< every buffer has at least so many elements
constexpr std::int64_t kRandomCount = RandomTable::kCount;
constexpr std::int64_t kRandomSets = RandomTable::kSets;
constexpr std::int64_t kBigBytes = std::int64_t{64} << 20;  ///< all big buffers of a job together

const std::vector<DType> kAll = [] {
  std::vector<DType> all;
  for (std::size_t i = 0; i < kDTypeCount; ++i) all.push_back(static_cast<DType>(i));
  return all;
}();

/// What an operation of a family is drawn with: how many of a hundred or so.
struct Weight {
  Kind kind;
  int weight;
};
constexpr Weight kLocalWeights[] = {
    {Kind::fill, 8},      {Kind::copy, 10},       {Kind::upload, 5},    {Kind::download, 3},
    {Kind::to_pinned, 2}, {Kind::from_pinned, 2}, {Kind::replace, 1},   {Kind::multiply, 4},
    {Kind::divide, 2},    {Kind::axpby, 5},       {Kind::axpy, 6},      {Kind::dot, 3},
    {Kind::nrm2, 2},      {Kind::scal, 4},        {Kind::blas_copy, 3}, {Kind::gemv, 3},
    {Kind::gemm, 3},      {Kind::spmv, 3},        {Kind::spmv_sell, 3}, {Kind::gather, 3},
    {Kind::uniform, 1},   {Kind::normal, 1},      {Kind::nop, 1},       {Kind::pause, 1}};
constexpr Weight kRemoteWeights[] = {{Kind::fill, 3},  {Kind::copy, 3}, {Kind::axpy, 6},
                                     {Kind::axpby, 2}, {Kind::gemv, 1}, {Kind::gather, 1},
                                     {Kind::scal, 2},  {Kind::nop, 1}};
constexpr Weight kTransferWeights[] = {
    {Kind::fetch, 8}, {Kind::put, 6}, {Kind::fetch_new, 3}, {Kind::hold, 1}};
constexpr Weight kCollectiveWeights[] = {
    {Kind::all_reduce, 6},     {Kind::reduce, 2},     {Kind::broadcast, 3}, {Kind::all_gather, 2},
    {Kind::reduce_scatter, 2}, {Kind::all_to_all, 2}, {Kind::exchange, 3},  {Kind::send, 2}};

template <std::size_t N>
Kind draw(Random& random, const Weight (&weights)[N]) {
  int sum = 0;
  for (const auto& weight : weights) sum += weight.weight;
  auto left = random.below(sum);
  for (const auto& weight : weights) {
    if ((left -= weight.weight) < 0) return weight.kind;
  }
  return Kind::nop;
}

class Generator {
 public:
  Generator(std::uint64_t seed, const Recipe& recipe)
      : recipe_(recipe), random_(derive(seed, 1)), ranks_(recipe.ranks) {
    program_.seed = seed;
    program_.ranks = ranks_;
    program_.stormy = recipe.faults && recipe.isolated && random_.one_in(2);
  }

  Program make() {
    make_buffers();
    bounds_.assign(static_cast<std::size_t>(ranks_),
                   std::vector<double>(program_.buffers.size(), kSmall));
    while (made_ < recipe_.operations) make_round();
    program_.operations = next_id_;
    return std::move(program_);
  }

 private:
  // Buffers

  void add(DType dtype, std::int64_t length, Contents contents,
           std::vector<std::int64_t> indices = {}) {
    program_.buffers.push_back({dtype, length, contents, std::move(indices)});
  }

  void make_buffers() {
    for (const auto dtype : {DType::f32, DType::f64}) {
      for (int i = 0; i < 5; ++i) add(dtype, random_.between(kVector, 600), Contents::integers);
      for (int i = 0; i < 2; ++i) add(dtype, random_.between(kVector, 300), Contents::bits);
    }
    for (int i = 0; i < 4; ++i) {
      const auto dtype = random_.of(kAll);
      const auto contents = exact_limit(dtype) == 0 ? Contents::bits : Contents::integers;
      const auto length = random_.between(kVector, 2000);
      add(dtype, length, contents);
      add(dtype, length + random_.below(50), contents);
    }
    make_matrix();
    if (random_.one_in(6)) make_big();
  }

  /// The pattern of a sparse matrix, as many entries in each row, in both forms.
  void make_matrix() {
    slice_rows_ = random_.between(1, 4);
    rows_ = slice_rows_ * random_.between(1, 5);
    columns_ = random_.between(2, 16);
    per_row_ = random_.between(1, std::min<std::int64_t>(4, columns_));
    const auto index = random_.one_in(2) ? DType::i32 : DType::i64;
    std::vector<std::int64_t> row_begin{0}, column, slice_begin{0};
    std::vector<std::int64_t> sell(static_cast<std::size_t>(rows_ * per_row_));
    for (std::int64_t row = 0; row < rows_; ++row) {
      const auto first = random_.below(columns_ - per_row_ + 1);
      for (std::int64_t j = 0; j < per_row_; ++j) {
        column.push_back(first + j);
        const auto slice = row / slice_rows_;
        sell[static_cast<std::size_t>(slice * slice_rows_ * per_row_ + j * slice_rows_ +
                                      row % slice_rows_)] = first + j;
      }
      row_begin.push_back((row + 1) * per_row_);
    }
    for (std::int64_t slice = 0; slice < rows_ / slice_rows_; ++slice)
      slice_begin.push_back((slice + 1) * slice_rows_ * per_row_);
    std::vector<std::int64_t> gather;
    for (int i = 0; i < 40; ++i) gather.push_back(random_.below(kVector));
    matrix_ = static_cast<int>(program_.buffers.size());
    for (auto* list : {&row_begin, &column, &slice_begin, &sell, &gather})
      add(index, std::ssize(*list), Contents::indices, *list);
  }

  /// Transfers of these take many pieces; they cost time, so they are rare.
  void make_big() {
    const auto count = random_.between(1, 2);
    big_ = static_cast<int>(program_.buffers.size());
    for (std::int64_t i = 0; i < 2; ++i) {
      const auto bytes = kBigBytes / 4 / count / ranks_ * random_.between(1, 4) / 2;
      if (i == 0) big_bytes_ = bytes;
      add(DType::i32, big_bytes_ / 4, Contents::bits);
    }
  }

  [[nodiscard]] const BufferSpec& spec(int buffer) const {
    return program_.buffers[static_cast<std::size_t>(buffer)];
  }
  [[nodiscard]] bool is_big(int buffer) const { return big_ >= 0 && buffer >= big_; }

  // Rounds

  RoundKind draw_kind() {
    for (;;) {
      RoundKind kind = RoundKind::free;
      const auto n = random_.below(100);
      if (n < 25)
        kind = RoundKind::run;
      else if (n < 33)
        kind = RoundKind::held;
      else if (n < 39)
        kind = RoundKind::versions;
      else if (n < 42)
        kind = RoundKind::failing;
      else if (n < 44)
        kind = RoundKind::slabs;
      if (recipe_.rounds.empty() || recipe_.rounds.contains(kind)) return kind;
    }
  }

  void make_round() {
    Round round;
    round.kind = draw_kind();
    if (round.kind == RoundKind::held && ranks_ == 1) round.kind = RoundKind::free;
    round.threads = round.kind == RoundKind::run || round.kind == RoundKind::failing
                        ? 1
                        : static_cast<int>(random_.between(1, 4));
    deal_buffers(round);
    switch (round.kind) {
      case RoundKind::free: make_free(round); break;
      case RoundKind::held: make_held(round); break;
      case RoundKind::run: make_run(round); break;
      case RoundKind::versions:
      case RoundKind::failing: round.special = static_cast<int>(random_.between(5, 40)); break;
      case RoundKind::slabs: round.special = static_cast<int>(random_.between(20, 120)); break;
    }
    round.left_out = recipe_.left_out.contains(next_id_++);
    made_ += 10 + round.special;
    program_.rounds.push_back(std::move(round));
  }

  void deal_buffers(Round& round) {
    round_ = &round;
    for (std::size_t i = 0; i < program_.buffers.size(); ++i) {
      Owner owner;
      const auto n = random_.below(100);
      owner.shared = program_.buffers[i].contents == Contents::indices || n < 15;
      owner.thread = static_cast<int>(random_.below(round.threads));
      if (!owner.shared && n < 35 && ranks_ > 1)
        owner.shift = static_cast<int>(random_.between(1, ranks_ - 1));
      if (is_big(static_cast<int>(i))) {  // one to be read or written by others, one to take it
        owner.shared = static_cast<int>(i) == big_ && random_.one_in(2);
        owner.shift = static_cast<int>(i) == big_ && ranks_ > 1 ? 1 : 0;
        owner.thread = 0;
      }
      round.owners.push_back(owner);
    }
  }

  void empty_scripts(Round& round, std::int64_t steps, int threads) {
    round.scripts.assign(
        static_cast<std::size_t>(steps),
        std::vector<std::vector<std::vector<Operation>>>(
            static_cast<std::size_t>(ranks_),
            std::vector<std::vector<Operation>>(static_cast<std::size_t>(threads))));
    step_ = 0;
  }

  std::int64_t draw_length() {
    const auto left = std::max<std::int64_t>(20, recipe_.operations - made_);
    return std::min<std::int64_t>(left, random_.between(20, 300));
  }

  void make_free(Round& round) {
    empty_scripts(round, 1, round.threads);
    const bool struck = program_.stormy && random_.one_in(2);
    add_operations(draw_length(), true, struck);
  }

  void make_held(Round& round) {
    empty_scripts(round, 1, round.threads + 1);
    // A buffer for the collective alone: it belongs to the script behind those of the threads.
    const int buffer = static_cast<int>(random_.below(5));
    auto& owner = round.owners[static_cast<std::size_t>(buffer)];
    owner = {.shared = false, .shift = 0, .thread = round.threads};
    round.special = static_cast<int>(random_.below(ranks_));
    Operation op = begin(Kind::all_reduce, 0, round.threads);
    op.dtype = spec(buffer).dtype;
    op.reduce = ReduceOp::max;
    for (int rank = 0; rank < ranks_; ++rank) {
      op.rank = op.target = rank;
      op.at[0] = op.at[1] = {rank, buffer, 0, spec(buffer).length};
      emit(op);
    }
    add_operations(random_.between(5, 40), false, false);
  }

  void make_run(Round& round) {
    round.steps = random_.between(2, 30);
    round.commit_every = random_.between(1, 8);
    if (random_.one_in(4)) round.stop_at = random_.below(round.steps);
    empty_scripts(round, round.steps, 1);
    const auto in_step = random_.between(2, 20) * ranks_;
    const bool struck = program_.stormy && random_.one_in(2);
    const auto victim = random_.below(round.steps);
    for (step_ = 0; step_ < static_cast<std::size_t>(round.steps); ++step_)
      add_operations(in_step, true, struck && std::cmp_equal(step_, victim));
  }

  // Operations

  void add_operations(std::int64_t count, bool collectives, bool struck) {
    const auto blow_at = struck ? random_.below(count) : -1;
    const auto blows = random_.one_in(3) ? 2 : 1;
    for (std::int64_t i = 0; i < count; ++i) {
      if (i == blow_at) {
        for (int b = 0; b < blows; ++b) add_blow();
      }
      const auto n = random_.below(100);
      const int rank = static_cast<int>(random_.below(ranks_));
      const int thread = static_cast<int>(random_.below(round_->threads));
      if (n < 14 && collectives && recipe_.collectives)
        add_collective();
      else if (n < 26 && recipe_.tokens)
        add_transfer(rank, thread);
      else if (n < 34 && recipe_.tokens)
        add_kernel(draw(random_, kRemoteWeights), rank, thread, other_than(rank));
      else if (n < 36 && round_->kind != RoundKind::run)
        add_wrong(rank, thread);
      else
        add_kernel(draw(random_, kLocalWeights), rank, thread, rank);
      made_ += 1;
    }
  }

  int other_than(int rank) {
    return ranks_ == 1 ? rank : (rank + static_cast<int>(random_.between(1, ranks_ - 1))) % ranks_;
  }

  Operation begin(Kind kind, int rank, int thread) {
    Operation op;
    op.id = next_id_++;
    op.kind = kind;
    op.rank = op.target = rank;
    op.thread = thread;
    const auto n = random_.below(20);
    op.await = n < 4    ? Await::now
               : n < 12 ? Await::later
               : n < 16 ? Await::drop
               : n < 17 ? Await::callback
               : n < 18 ? Await::chain
                        : Await::coroutine;
    op.data = random_.next();
    return op;
  }

  void emit(const Operation& op) {
    if (recipe_.left_out.contains(op.id)) return;
    round_->scripts[step_][static_cast<std::size_t>(op.rank)][static_cast<std::size_t>(op.thread)]
        .push_back(op);
  }

  [[nodiscard]] bool owns(const Operation& op, int device, int buffer) const {
    const auto& owner = round_->owners[static_cast<std::size_t>(buffer)];
    return !owner.shared && owner.thread == op.thread && (device + owner.shift) % ranks_ == op.rank;
  }
  [[nodiscard]] bool may_read(const Operation& op, int device, int buffer) const {
    return round_->owners[static_cast<std::size_t>(buffer)].shared || owns(op, device, buffer);
  }

  /// A buffer of `device` of that kind, which the operation's thread may read or write; -1: none.
  int pick(const Operation& op, int device, DType dtype, Contents contents, bool to_write,
           std::initializer_list<int> but = {}) {
    std::vector<int> found;
    for (int b = 0; b < static_cast<int>(program_.buffers.size()); ++b) {
      if (spec(b).dtype != dtype || spec(b).contents != contents || is_big(b)) continue;
      if (std::find(but.begin(), but.end(), b) != but.end()) continue;
      if (to_write ? owns(op, device, b) : may_read(op, device, b)) found.push_back(b);
    }
    return found.empty() ? -1 : random_.of(found);
  }
  /// Any buffer of `device` but those of indices.
  int pick_any(const Operation& op, int device, bool to_write) {
    std::vector<int> found;
    for (int b = 0; b < static_cast<int>(program_.buffers.size()); ++b) {
      if (spec(b).contents == Contents::indices || is_big(b)) continue;
      if (to_write ? owns(op, device, b) : may_read(op, device, b)) found.push_back(b);
    }
    return found.empty() ? -1 : random_.of(found);
  }
  /// A part of the buffer with `count` elements, or with any number.
  Slice part(int device, int buffer, std::int64_t count) {
    const auto length = spec(buffer).length;
    return {device, buffer, random_.below(length - count + 1), count};
  }
  std::int64_t draw_count(std::int64_t most) {
    return random_.one_in(3) ? most : random_.between(1, most);
  }

  double& bound(const Slice& slice) {
    return bounds_[static_cast<std::size_t>(slice.rank)][static_cast<std::size_t>(slice.buffer)];
  }
  /// What `slice` holds from now on is at most `largest`, beside what else the buffer holds: the
  /// operation may fail.
  void grows(const Slice& slice, double largest) {
    bound(slice) = std::max({bound(slice), largest, kSmall});
  }
  /// Whether results up to `largest` are exact; else the buffer is filled anew instead.
  bool fits(const Operation& op, const Slice& slice, double largest) {
    if (largest <= exact_limit(spec(slice.buffer).dtype)) {
      grows(slice, largest);
      return true;
    }
    reset(op, slice.rank, slice.buffer);
    return false;
  }
  void reset(const Operation& like, int device, int buffer) {
    auto op = begin(Kind::fill, like.rank, like.thread);
    op.target = device;
    op.dtype = spec(buffer).dtype;
    op.at[0] = {device, buffer, 0, spec(buffer).length};
    op.alpha = small(op.dtype);
    bound(op.at[0]) = kSmall;
    emit(op);
  }
  double small(DType dtype) {
    return static_cast<double>(random_.between(has_sign(dtype) ? -2 : 0, 2));
  }
  DType draw_real() { return random_.one_in(2) ? DType::f32 : DType::f64; }

  void add_kernel(Kind kind, int rank, int thread, int target) {
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
      case Kind::normal: return add_random(op);
      case Kind::gemv:
      case Kind::gemm: return add_product(op);
      case Kind::spmv:
      case Kind::spmv_sell:
      case Kind::gather: return add_sparse(op);
      case Kind::nrm2: return add_norm(op);
      case Kind::divide: return add_division(op);
      default: return add_vector(op);
    }
  }

  void add_constant(Operation& op) {
    const int b = pick_any(op, op.target, true);
    if (b < 0) return;
    op.dtype = spec(b).dtype;
    op.at[0] = part(op.target, b, draw_count(spec(b).length));
    op.alpha = spec(b).contents == Contents::bits ? 0 : small(op.dtype);
    grows(op.at[0], kSmall);
    emit(op);
  }

  void add_look(Operation& op) {
    const int b = pick_any(op, op.target, false);
    if (b < 0) return;
    op.dtype = spec(b).dtype;
    op.at[0] = part(op.target, b, draw_count(spec(b).length));
    emit(op);
  }

  void add_replace(Operation& op) {
    const int b = round_->kind == RoundKind::run ? -1 : pick_any(op, op.target, true);
    if (b < 0 || !owns(op, op.rank, b) || round_->owners[static_cast<std::size_t>(b)].shift != 0)
      return;
    op.dtype = spec(b).dtype;
    op.at[0] = {op.rank, b, 0, spec(b).length};
    op.alpha = spec(b).contents == Contents::bits ? 0 : small(op.dtype);
    bound(op.at[0]) = kSmall;
    emit(op);
  }

  void add_copy(Operation& op, bool real_only) {
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

  void add_random(Operation& op) {
    op.dtype = draw_real();
    const int to = pick(op, op.target, op.dtype, Contents::bits, true);
    if (to < 0) return;
    op.at[0] = part(op.target, to, kRandomCount);
    op.data = static_cast<std::uint64_t>(random_.below(kRandomSets));
    emit(op);
  }

  /// A factor: a value, or an element of device memory.
  void draw_alpha(Operation& op, std::initializer_list<int> but) {
    op.alpha = small(op.dtype);
    if (!random_.one_in(4)) return;
    const int b = pick(op, op.target, op.dtype, Contents::integers, false, but);
    if (b >= 0) op.alpha_at = part(op.target, b, 1);
  }
  double alpha_bound(const Operation& op) {
    return op.alpha_at.present() ? bound(op.alpha_at) : std::abs(op.alpha);
  }

  void add_vector(Operation& op) {
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

  /// Exact by construction: at[1] is filled with a power of two, at[0] has been multiplied by it.
  void add_division(Operation& op) {
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

  /// The norm of k * k equal numbers is an integer.
  void add_norm(Operation& op) {
    op.dtype = draw_real();
    const int x = pick(op, op.target, op.dtype, Contents::integers, true);
    const int to = pick(op, op.target, op.dtype, Contents::integers, true, {x});
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

  void add_product(Operation& op) {
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
    if (fits(op, op.at[2], std::abs(op.alpha) * sum + std::abs(op.beta) * bound(op.at[2])))
      emit(op);
  }

  void add_sparse(Operation& op) {
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
    if (fits(op, op.at[2], std::abs(op.alpha) * sum + std::abs(op.beta) * bound(op.at[2])))
      emit(op);
  }

  // Between ranks

  void add_transfer(int rank, int thread) {
    auto op = begin(draw(random_, kTransferWeights), rank, thread);
    const int other = other_than(rank);
    if (big_ >= 0 && random_.one_in(12)) return add_big_transfer(op, other);
    const bool put = op.kind == Kind::put;
    const int there = put ? pick_any(op, other, true) : pick_any(op, other, false);
    if (there < 0) return;
    op.dtype = spec(there).dtype;
    if (op.kind == Kind::hold || op.kind == Kind::fetch_new) {
      op.at[0] = part(other, there, draw_count(spec(there).length));
      return emit(op);
    }
    const int here =
        pick(op, rank, op.dtype, spec(there).contents, !put,
             other == rank ? std::initializer_list<int>{there} : std::initializer_list<int>{});
    if (here < 0) return;
    const auto count = draw_count(std::min(spec(here).length, spec(there).length));
    op.at[put ? 0 : 1] = part(rank, here, count);
    op.at[put ? 1 : 0] = part(other, there, count);
    grows(op.at[1], bound(op.at[0]));
    emit(op);
  }

  void add_big_transfer(Operation& op, int other) {
    op.dtype = spec(big_).dtype;
    op.kind = owns(op, other, big_) && random_.one_in(2) ? Kind::put : Kind::fetch;
    if (other == op.rank || !may_read(op, other, big_) || !owns(op, op.rank, big_ + 1)) return;
    const auto count = random_.one_in(2) ? spec(big_).length : spec(big_).length / 2 + 1;
    const bool put = op.kind == Kind::put;
    op.at[put ? 0 : 1] = part(op.rank, big_ + 1, count);
    op.at[put ? 1 : 0] = part(other, big_, count);
    emit(op);
  }

  void add_collective() {
    auto op = begin(draw(random_, kCollectiveWeights), 0, 0);
    const bool reduces =
        op.kind == Kind::all_reduce || op.kind == Kind::reduce || op.kind == Kind::reduce_scatter;
    // The owners are the same on all ranks, so rank 0 stands for all.
    const auto local = [&](int b) {
      const auto& owner = round_->owners[static_cast<std::size_t>(b)];
      return !owner.shared && owner.shift == 0 && owner.thread == 0 && !is_big(b) &&
             (!reduces || spec(b).contents == Contents::integers);
    };
    std::vector<std::pair<int, int>> pairs;
    for (int a = 0; a < static_cast<int>(program_.buffers.size()); ++a) {
      for (int b = 0; local(a) && b < static_cast<int>(program_.buffers.size()); ++b) {
        if (a != b && local(b) && spec(a).dtype == spec(b).dtype &&
            spec(a).contents == spec(b).contents)
          pairs.emplace_back(a, b);
      }
    }
    if (pairs.empty()) return;
    const auto [from, to] = random_.of(pairs);
    op.dtype = spec(from).dtype;
    switch (op.kind) {
      case Kind::all_reduce:
      case Kind::reduce:
      case Kind::reduce_scatter: return add_reduction(op, from, to);
      case Kind::send: return add_message(op, from, to);
      default: return add_movement(op, from, to);
    }
  }

  void add_reduction(Operation& op, int from, int to) {
    const bool scatter = op.kind == Kind::reduce_scatter, in_place = !scatter && random_.one_in(3);
    op.reduce = static_cast<ReduceOp>(random_.below(4));  // avg: see below
    op.peer = static_cast<int>(random_.below(ranks_));
    const auto most = std::min(spec(to).length, spec(from).length / (scatter ? ranks_ : 1));
    const auto count = draw_count(most);
    std::vector<Operation> all;
    double sum = 0, product = 1, largest = 0;
    for (int rank = 0; rank < ranks_; ++rank) {
      op.rank = op.target = rank;
      op.at[0] = part(rank, from, count * (scatter ? ranks_ : 1));
      op.at[1] = in_place ? op.at[0] : part(rank, to, count);
      sum += bound(op.at[0]), product *= bound(op.at[0]);
      largest = std::max(largest, bound(op.at[0]));
      all.push_back(op);
    }
    auto result = op.reduce == ReduceOp::sum    ? sum
                  : op.reduce == ReduceOp::prod ? product
                                                : largest;
    // An average is exact where all have the same, and powers of two divide it.
    const bool averages = (ranks_ & (ranks_ - 1)) == 0 && random_.one_in(5);
    if (averages && average_fits(op)) {
      op.reduce = ReduceOp::avg, result = kSmall;
      const auto value = small(op.dtype);
      for (auto& one : all) {
        auto filled = begin(Kind::fill, one.rank, one.thread);
        filled.dtype = one.dtype, filled.alpha = value, filled.at[0] = one.at[0];
        grows(filled.at[0], kSmall);
        emit(filled);
      }
    } else if (result > exact_limit(op.dtype)) {
      for (int rank = 0; rank < ranks_; ++rank) {
        op.rank = rank;
        reset(op, rank, from);
      }
      return;
    }
    const auto id = next_id_++;
    for (auto& one : all) {
      one.id = id, one.reduce = op.reduce;
      grows(one.at[1], result);
      emit(one);
    }
  }
  bool average_fits(const Operation& op) const { return 2.0 * ranks_ <= exact_limit(op.dtype); }

  void add_movement(Operation& op, int from, int to) {
    const int n = ranks_;
    op.peer = static_cast<int>(random_.below(ranks_));
    if (op.kind == Kind::exchange)
      op.peer = ranks_ == 1 ? 0 : static_cast<int>(random_.between(1, n - 1));
    if (op.kind == Kind::exchange && ranks_ == 1) return;
    const bool gathers = op.kind == Kind::all_gather, swaps = op.kind == Kind::all_to_all;
    const auto most =
        std::min(spec(from).length / (swaps ? n : 1), spec(to).length / (gathers || swaps ? n : 1));
    const auto count = draw_count(most);
    double largest = 0;
    std::vector<Operation> all;
    for (int rank = 0; rank < ranks_; ++rank) {
      op.rank = op.target = rank;
      op.at[0] = part(rank, from, count * (swaps ? n : 1));
      if (op.kind != Kind::broadcast) op.at[1] = part(rank, to, count * (gathers || swaps ? n : 1));
      largest = std::max(largest, bound(op.at[0]));
      all.push_back(op);
    }
    for (auto& one : all) {
      grows(one.kind == Kind::broadcast ? one.at[0] : one.at[1], largest);
      emit(one);
    }
  }

  void add_message(Operation& op, int from, int to) {
    if (ranks_ == 1) return;
    const int sender = static_cast<int>(random_.below(ranks_)), receiver = other_than(sender);
    const auto count = draw_count(std::min(spec(from).length, spec(to).length));
    op.rank = op.target = sender, op.peer = receiver;
    op.at[0] = part(sender, from, count);
    const auto largest = bound(op.at[0]);
    emit(op);
    op.kind = Kind::receive, op.rank = op.target = receiver, op.peer = sender;
    op.at[0] = part(receiver, to, count);
    grows(op.at[0], largest);
    emit(op);
  }

  // What must go wrong

  void add_wrong(int rank, int thread) {
    auto op = begin(Kind::wrong, rank, thread);
    op.wrong = static_cast<Wrong>(random_.below(static_cast<std::int64_t>(Wrong::root)));
    op.dtype = DType::f64;
    const int other = other_than(rank);
    const int to = pick(op, rank, op.dtype, Contents::integers, true);
    const int from =
        pick(op, other, op.dtype, Contents::integers, false,
             other == rank ? std::initializer_list<int>{to} : std::initializer_list<int>{});
    if (to < 0 || from < 0) return;
    if (op.wrong == Wrong::short_destination && other != rank) op.target = rank;
    op.at[0] = part(other, from, 40);
    op.at[1] = part(rank, to, 20);
    emit(op);
  }

  void add_blow() {
    using memory::FaultKind;
    auto op = begin(Kind::fault, static_cast<int>(random_.below(ranks_)),
                    static_cast<int>(random_.below(round_->threads)));
    std::vector<FaultKind> kinds{FaultKind::kill, FaultKind::kill, FaultKind::segv, FaultKind::exit,
                                 FaultKind::hang};
    if (recipe_.engine == "cuda") {
      kinds = {FaultKind::kill,
               FaultKind::segv,
               FaultKind::exit,
               FaultKind::hang,
               FaultKind::illegal_address,
               FaultKind::trap,
               FaultKind::assertion,
               FaultKind::misaligned};
    }
    op.fault = random_.of(kinds);
    const auto n = random_.below(12);
    op.blow = n < 6    ? Blow::inject
              : n < 8  ? Blow::phase
              : n < 9  ? Blow::kill_active
              : n < 10 ? Blow::kill_standby
              : n < 11 ? Blow::freeze_host
                       : Blow::freeze_rank;
    op.data = op.blow == Blow::phase ? static_cast<std::uint64_t>(random_.below(6))
                                     : static_cast<std::uint64_t>(random_.between(100, 200'000));
    op.await = Await::later;
    emit(op);
  }

  Recipe recipe_;
  Random random_;
  int ranks_;
  Program program_;
  Round* round_ = nullptr;
  std::size_t step_ = 0;
  std::uint32_t next_id_ = 0;
  std::int64_t made_ = 0;
  std::vector<std::vector<double>> bounds_;  ///< per rank and buffer: magnitude of what it holds
  int matrix_ = -1, big_ = -1;               ///< the first buffer of its kind
  std::int64_t big_bytes_ = 0, rows_ = 0, columns_ = 0, per_row_ = 0, slice_rows_ = 0;
};

}  // namespace

Program generate(std::uint64_t seed, const Recipe& recipe) {
  return Generator(seed, recipe).make();
}

}  // namespace troupe::torture
