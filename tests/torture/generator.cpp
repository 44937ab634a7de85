#include "generator.hpp"

#include <algorithm>

namespace troupe::torture {
namespace {

constexpr std::int64_t kBigBytes = std::int64_t{64} << 20;  ///< all big buffers of a job together

const std::vector<DType> kAll = [] {
  std::vector<DType> all;
  for (std::size_t i = 0; i < kDTypeCount; ++i) all.push_back(static_cast<DType>(i));
  return all;
}();

constexpr Weight kLocalWeights[] = {
    {Kind::fill, 8},        {Kind::copy, 10},          {Kind::upload, 5},
    {Kind::download, 3},    {Kind::to_pinned, 2},      {Kind::from_pinned, 2},
    {Kind::replace, 1},     {Kind::multiply, 4},       {Kind::divide, 2},
    {Kind::axpby, 5},       {Kind::axpy, 6},           {Kind::dot, 3},
    {Kind::nrm2, 2},        {Kind::scal, 4},           {Kind::blas_copy, 3},
    {Kind::gemv, 3},        {Kind::gemm, 3},           {Kind::ger, 1},
    {Kind::syrk, 2},        {Kind::trmm, 2},           {Kind::iamax, 1},
    {Kind::swap, 1},        {Kind::spmv, 3},           {Kind::spmv_sell, 3},
    {Kind::gather, 3},      {Kind::uniform, 1},        {Kind::normal, 1},
    {Kind::law, 1},         {Kind::sequence, 1},       {Kind::potrf, 2},
    {Kind::factor_info, 1}, {Kind::syevd, 1},          {Kind::gesvd, 1},
    {Kind::gesv, 1},        {Kind::sort, 2},           {Kind::reduce_local, 1},
    {Kind::scan, 2},        {Kind::select, 2},         {Kind::spgemm, 2},
    {Kind::transform, 2},   {Kind::transform_back, 1}, {Kind::convolution, 2},
    {Kind::attention, 2},   {Kind::blas_call, 6},      {Kind::solver_call, 4},
    {Kind::fft_call, 2},    {Kind::rng_call, 2},       {Kind::primitives_call, 2},
    {Kind::sparse_call, 2}, {Kind::direct_call, 1},    {Kind::tensor_call, 2},
    {Kind::dnn_call, 3},    {Kind::outside_call, 2},   {Kind::combine, 4},
    {Kind::smooth, 3},      {Kind::tally, 2},          {Kind::accumulate, 3},
    {Kind::nop, 1},         {Kind::pause, 1}};
constexpr Weight kRemoteWeights[] = {{Kind::fill, 3},   {Kind::copy, 3}, {Kind::axpy, 6},
                                     {Kind::axpby, 2},  {Kind::gemv, 1}, {Kind::trmm, 1},
                                     {Kind::gather, 1}, {Kind::scal, 2}, {Kind::nop, 1}};

}  // namespace

Generator::Generator(std::uint64_t seed, const Recipe& recipe)
    : recipe_(recipe), random_(derive(seed, 1)), ranks_(recipe.ranks) {
  program_.seed = seed;
  program_.ranks = ranks_;
  program_.stormy = recipe.faults != Faults::none && recipe.isolated &&
                    (recipe.faults == Faults::many || random_.one_in(2));
  program_.groups = recipe.collectives && !recipe.shrinks && Random(derive(seed, 2)).one_in(2);
}

Program Generator::make() {
  make_buffers();
  bounds_.assign(static_cast<std::size_t>(ranks_),
                 std::vector<double>(program_.buffers.size(), kSmall));
  do {
    make_round();
  } while (made_ < recipe_.operations && !recipe_.respawns);
  program_.operations = next_id_;
  return std::move(program_);
}

void Generator::add(DType dtype, std::int64_t length, Contents contents,
                    std::vector<std::int64_t> indices) {
  program_.buffers.push_back({dtype, length, contents, std::move(indices)});
}

void Generator::make_buffers() {
  for (const auto dtype : {DType::f32, DType::f64}) {
    for (int i = 0; i < 5; ++i) add(dtype, random_.between(kVector, 600), Contents::integers);
    for (int i = 0; i < 2; ++i) add(dtype, random_.between(kVector, 300), Contents::bits);
    for (int i = 0; i < 2; ++i)  // all_to_all wants an element for each rank
      add(dtype, std::max<std::int64_t>(ranks_, random_.between(1, 100)), Contents::rounded);
  }
  for (int i = 0; i < 4; ++i) {
    const auto dtype = random_.of(kAll);
    const bool moved = exact_limit(dtype) == 0 || is_complex(dtype);
    const auto contents = moved ? Contents::bits : Contents::integers;
    const auto length = random_.between(kVector, 2000);
    add(dtype, length, contents);
    add(dtype, length + random_.below(50), contents);
  }
  make_matrices();
  narrow_ = random_.one_in(2) ? DType::f16 : DType::bf16;
  const auto complex = random_.one_in(2) ? DType::c64 : DType::c128;
  for (int i = 0; i < 2; ++i) {
    add(narrow_, random_.between(kVector, 200), Contents::integers);
    add(complex, random_.between(kVector, 200), Contents::rounded);
  }
  filter_ = random_.one_in(2) ? 1 : 3, stride_ = random_.between(1, 2);
  keys_ = std::int64_t{1} << random_.below(3);
  if (!recipe_.shrinks && random_.one_in(6)) make_big();
}

void Generator::make_matrices() {
  slice_rows_ = random_.between(1, 4);
  rows_ = slice_rows_ * random_.between(1, 5);
  columns_ = random_.between(2, 16);
  per_row_ = random_.between(1, std::min<std::int64_t>(4, columns_));
  index_ = random_.one_in(2) ? DType::i32 : DType::i64;
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
  width_ = random_.between(1, 4);
  const auto per_row = random_.between(1, std::min<std::int64_t>(2, width_));
  std::vector<std::int64_t> row_begin_b{0}, column_b;
  for (std::int64_t row = 0; row < columns_; ++row) {
    const auto first = random_.below(width_ - per_row + 1);
    for (std::int64_t j = 0; j < per_row; ++j) column_b.push_back(first + j);
    row_begin_b.push_back(std::ssize(column_b));
  }
  product_ = 0;
  for (std::int64_t row = 0; row < rows_; ++row) {
    std::set<std::int64_t> found;
    for (std::int64_t i = row * per_row_; i < (row + 1) * per_row_; ++i) {
      const auto first = column_b.begin() + column[static_cast<std::size_t>(i)] * per_row;
      found.insert(first, first + per_row);
    }
    product_ += std::ssize(found);
  }
  matrix_ = static_cast<int>(program_.buffers.size());
  for (auto* list : {&row_begin, &column, &slice_begin, &sell, &gather, &row_begin_b, &column_b})
    add(index_, std::ssize(*list), Contents::indices, *list);
  // Row starts and columns of a product share a buffer; selections have indices of 64 bits.
  for (const auto dtype : {DType::i32, DType::i64}) {
    for (int i = 0; i < 2; ++i) add(dtype, random_.between(2 * kVector, 300), Contents::integers);
  }
}

void Generator::make_big() {
  const auto count = random_.between(1, 2);
  big_ = static_cast<int>(program_.buffers.size());
  for (std::int64_t i = 0; i < 2; ++i) {
    const auto bytes = kBigBytes / 4 / count / ranks_ * random_.between(1, 4) / 2;
    if (i == 0) big_bytes_ = bytes;
    add(DType::i32, big_bytes_ / 4, Contents::bits);
  }
}

const BufferSpec& Generator::spec(int buffer) const {
  return program_.buffers[static_cast<std::size_t>(buffer)];
}

RoundKind Generator::draw_kind() {
  if (recipe_.shrinks) return RoundKind::members;
  for (;;) {
    RoundKind kind = RoundKind::free;
    const auto n = random_.below(100);
    if (n < 25)
      kind = RoundKind::run;
    else if (n < 33)
      kind = RoundKind::held;
    else if (n < 37)
      kind = RoundKind::versions;
    else if (n < 39)
      kind = RoundKind::recorded;
    else if (n < 42)
      kind = RoundKind::failing;
    else if (n < 44)
      kind = RoundKind::slabs;
    else if (n < 46)
      kind = RoundKind::pieces;
    else if (n < 48)
      kind = RoundKind::distributed;
    else if (n < 51)
      kind = RoundKind::helped;
    if (recipe_.rounds.empty() || recipe_.rounds.contains(kind)) return kind;
  }
}

void Generator::make_round() {
  Round round;
  round.kind = draw_kind();
  if (round.kind == RoundKind::held && ranks_ == 1) round.kind = RoundKind::free;
  if (round.kind == RoundKind::distributed && !recipe_.collectives) round.kind = RoundKind::free;
  round.threads = round.kind == RoundKind::failing ? 1 : static_cast<int>(random_.between(1, 4));
  deal_buffers(round);
  switch (round.kind) {
    case RoundKind::free: make_free(round); break;
    case RoundKind::held: make_held(round); break;
    case RoundKind::run: make_run(round); break;
    case RoundKind::members: make_members(round); break;
    case RoundKind::versions:
    case RoundKind::pieces:
    case RoundKind::recorded:
    case RoundKind::helped:
    case RoundKind::failing: round.special = static_cast<int>(random_.between(5, 40)); break;
    case RoundKind::distributed: round.special = static_cast<int>(random_.between(4, 16)); break;
    case RoundKind::slabs: round.special = static_cast<int>(random_.between(20, 120)); break;
  }
  round.left_out = recipe_.left_out.contains(next_id_++);
  made_ += 10 + round.special;
  program_.rounds.push_back(std::move(round));
}

void Generator::deal_buffers(Round& round) {
  round_ = &round;
  spoilt_.clear();
  in_transfer_.clear();
  fragile_ = {};
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

void Generator::empty_scripts(Round& round, std::int64_t steps, int threads) {
  round.scripts.assign(static_cast<std::size_t>(steps),
                       std::vector<std::vector<std::vector<Operation>>>(
                           static_cast<std::size_t>(ranks_),
                           std::vector<std::vector<Operation>>(static_cast<std::size_t>(threads))));
  step_ = 0;
}

std::int64_t Generator::draw_length() {
  const auto left = std::max<std::int64_t>(20, recipe_.operations - made_);
  return std::min<std::int64_t>(left, random_.between(20, 300));
}

void Generator::make_free(Round& round) {
  empty_scripts(round, 1, round.threads);
  const bool struck = draw_struck();
  // A fault that takes along a call that is to fail would leave the failure to another one.
  const bool may_be_fragile =
      recipe_.faults != Faults::none && !program_.stormy && random_.one_in(2);
  static const std::vector<std::string_view> kLibraries{"vector", "blas",     "sparse",     "rng",
                                                        "solver", "fft",      "primitives", "dnn",
                                                        "kernel", "function", "tridiagonal"};
  fragile_ = {random_.of(kLibraries), static_cast<int>(random_.below(ranks_)),
              static_cast<int>(random_.below(round.threads))};
  if (!may_be_fragile) fragile_.library = {};
  add_operations(draw_length(), true, struck);
}

void Generator::make_held(Round& round) {
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

void Generator::make_run(Round& round) {
  round.steps = random_.between(2, 30);
  round.commit_every = random_.between(1, 8);
  if (random_.one_in(4)) round.stop_at = random_.below(round.steps);
  empty_scripts(round, round.steps, round.threads);
  const auto in_step = random_.between(2, 20) * ranks_;
  const bool struck = draw_struck();
  const auto victim = random_.below(round.steps);
  for (step_ = 0; step_ < static_cast<std::size_t>(round.steps); ++step_)
    add_operations(in_step, true, struck && std::cmp_equal(step_, victim));
}

/// The rest of the world, and who was lost before and is back, go on from the last commit: so there
/// are more commits, and fewer steps, than in other runs.
void Generator::make_members(Round& round) {
  round.steps = recipe_.respawns ? random_.between(8, 40) : random_.between(2, 12);
  round.commit_every = random_.between(1, 4);
  round.special = random_.one_in(2) ? 1 : 0;
  empty_scripts(round, round.steps, round.threads);
  const auto in_step = random_.between(2, 12) * ranks_;
  const auto victim = draw_struck() ? random_.below(round.steps) : -1;
  for (step_ = 0; step_ < static_cast<std::size_t>(round.steps); ++step_)
    add_operations(
        in_step, true,
        std::cmp_equal(step_, victim) || (recipe_.respawns && victim >= 0 && random_.one_in(5)));
}

bool Generator::draw_struck() {
  return program_.stormy && (recipe_.faults == Faults::many || random_.one_in(2));
}

void Generator::add_operations(std::int64_t count, bool collectives, bool struck) {
  const auto blow_at = struck ? random_.below(count) : -1;
  const bool many = recipe_.faults == Faults::many;
  const auto blows = many ? random_.between(1, 4) : random_.one_in(3) ? 2 : 1;
  const auto fails_at = random_.below(count);
  for (std::int64_t i = 0; i < count; ++i) {
    if (i == blow_at) {
      for (int b = 0; b < blows; ++b) add_blow();
    }
    if (i == fails_at) add_library_fault();
    if (program_.groups && collectives && !in_run() && random_.one_in(60)) add_split();
    const auto n = random_.below(100);
    const int rank = static_cast<int>(random_.below(ranks_));
    const int thread = static_cast<int>(random_.below(round_->threads));
    if (n < 14 && collectives && recipe_.collectives)
      !recipe_.shrinks&& random_.one_in(7) ? add_bundle() : add_collective();
    else if (n < 26 && recipe_.tokens)
      add_transfer(rank, thread);
    else if (n < 34 && recipe_.tokens)
      add_kernel(draw(random_, kRemoteWeights), rank, thread, other_than(rank));
    else if (n < 36 && !in_run())
      add_wrong(rank, thread);
    else
      add_kernel(draw(random_, kLocalWeights), rank, thread, rank);
    made_ += 1;
  }
}

int Generator::other_than(int rank) {
  return ranks_ == 1 ? rank : (rank + static_cast<int>(random_.between(1, ranks_ - 1))) % ranks_;
}

Operation Generator::begin(Kind kind, int rank, int thread) {
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

void Generator::emit(Operation op) {
  if (fragile_.state == Fragile::State::due && library_of(op.kind) == fragile_.library) {
    if (!may_spoil(op)) return;  // another one will fail: none may come before it
    let_fail(op);
  }
  if (is_transfer(op.kind)) {
    for (const auto& slice : {op.at[0], op.at[1]}) in_transfer_.insert({slice.rank, slice.buffer});
  }
  if (recipe_.left_out.contains(op.id) || recipe_.missing.contains(op.kind)) return;
  round_->scripts[step_][static_cast<std::size_t>(op.rank)][static_cast<std::size_t>(op.thread)]
      .push_back(op);
}

bool Generator::owns(const Operation& op, int device, int buffer) const {
  const auto& owner = round_->owners[static_cast<std::size_t>(buffer)];
  return !owner.shared && owner.thread == op.thread && (device + owner.shift) % ranks_ == op.rank &&
         !spoilt_.contains({device, buffer});
}

bool Generator::may_read(const Operation& op, int device, int buffer) const {
  return round_->owners[static_cast<std::size_t>(buffer)].shared || owns(op, device, buffer);
}

int Generator::pick(const Operation& op, int device, DType dtype, Contents contents, bool to_write,
                    std::initializer_list<int> but) {
  std::vector<int> found;
  for (int b = 0; b < static_cast<int>(program_.buffers.size()); ++b) {
    if (spec(b).dtype != dtype || spec(b).contents != contents || is_big(b)) continue;
    if (std::find(but.begin(), but.end(), b) != but.end()) continue;
    if (to_write ? owns(op, device, b) : may_read(op, device, b)) found.push_back(b);
  }
  return found.empty() ? -1 : random_.of(found);
}

int Generator::pick_any(const Operation& op, int device, bool to_write) {
  std::vector<int> found;
  for (int b = 0; b < static_cast<int>(program_.buffers.size()); ++b) {
    if (spec(b).contents == Contents::indices || is_big(b)) continue;
    if (to_write ? owns(op, device, b) : may_read(op, device, b)) found.push_back(b);
  }
  return found.empty() ? -1 : random_.of(found);
}

Slice Generator::part(int device, int buffer, std::int64_t count) {
  const auto length = spec(buffer).length;
  return {device, buffer, random_.below(length - count + 1), count};
}

std::int64_t Generator::draw_count(std::int64_t most) {
  return random_.one_in(3) ? most : random_.between(1, most);
}

double& Generator::bound(const Slice& slice) {
  return bounds_[static_cast<std::size_t>(slice.rank)][static_cast<std::size_t>(slice.buffer)];
}

void Generator::grows(const Slice& slice, double largest) {
  bound(slice) = std::max({bound(slice), largest, kSmall});
}

bool Generator::fits(const Operation& op, const Slice& slice, double largest) {
  if (largest <= exact_limit(spec(slice.buffer).dtype)) {
    grows(slice, largest);
    return true;
  }
  reset(op, slice.rank, slice.buffer);
  return false;
}

void Generator::reset(const Operation& like, int device, int buffer) {
  auto op = begin(Kind::fill, like.rank, like.thread);
  op.target = device;
  op.dtype = spec(buffer).dtype;
  op.at[0] = {device, buffer, 0, spec(buffer).length};
  op.alpha = small(op.dtype);
  bound(op.at[0]) = kSmall;
  emit(op);
}

double Generator::small(DType dtype) {
  return static_cast<double>(random_.between(has_sign(dtype) ? -2 : 0, 2));
}

Program generate(std::uint64_t seed, const Recipe& recipe) {
  return Generator(seed, recipe).make();
}

}  // namespace troupe::torture
