#include "generator.hpp"

#include <algorithm>

// What goes between ranks, and what must go wrong.

namespace troupe::torture {
namespace {

constexpr Weight kTransferWeights[] = {
    {Kind::fetch, 8}, {Kind::put, 6}, {Kind::carry, 2}, {Kind::fetch_new, 3}, {Kind::hold, 1}};
constexpr Weight kCollectiveWeights[] = {
    {Kind::all_reduce, 6},        {Kind::reduce, 2},         {Kind::broadcast, 2},
    {Kind::broadcast_to, 2},      {Kind::all_gather, 2},     {Kind::gather_to, 2},
    {Kind::scatter_from, 2},      {Kind::reduce_scatter, 2}, {Kind::all_to_all, 2},
    {Kind::all_to_all_counts, 2}, {Kind::exchange, 3},       {Kind::send, 2}};

bool reduces(Kind kind) {
  return kind == Kind::all_reduce || kind == Kind::reduce || kind == Kind::reduce_scatter;
}
bool is_of_messages(Kind kind) {
  return kind == Kind::all_to_all_counts || kind == Kind::exchange || kind == Kind::send;
}

bool is_real(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64;
}

}  // namespace

void Generator::add_transfer(int rank, int thread) {
  auto op = begin(draw(random_, kTransferWeights), rank, thread);
  // A lease of a rank that is lost is no lease any more.
  if (op.kind == Kind::hold && recipe_.shrinks) op.kind = Kind::fetch;
  // A rollback takes no actor back: what one has been asked for would come behind it.
  if (op.kind == Kind::carry && in_run()) op.kind = Kind::put;
  // The other rank's actor asks in the order of its rank: behind a put, say, of what a collective
  // gives. So the thread that has to come to that collective must not wait for the actor.
  const bool has_collectives = recipe_.collectives && round_->kind == RoundKind::free;
  if (op.kind == Kind::carry && thread == 0 && has_collectives) op.kind = Kind::put;
  const int other = other_than(rank);
  if (big_ >= 0 && random_.one_in(12)) return add_big_transfer(op, other);
  const bool put = writes_there(op.kind);
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

void Generator::add_big_transfer(Operation& op, int other) {
  op.dtype = spec(big_).dtype;
  op.kind = owns(op, other, big_) && random_.one_in(2) ? Kind::put : Kind::fetch;
  if (other == op.rank || !may_read(op, other, big_) || !owns(op, op.rank, big_ + 1)) return;
  const auto count = random_.one_in(2) ? spec(big_).length : spec(big_).length / 2 + 1;
  const bool put = op.kind == Kind::put;
  op.at[put ? 0 : 1] = part(op.rank, big_ + 1, count);
  op.at[put ? 1 : 0] = part(other, big_, count);
  emit(op);
}

void Generator::add_bundle() {
  bundle_ = {.number = ++bundles_};
  if (program_.groups && random_.one_in(2)) {
    bundle_.group = static_cast<int>(random_.between(1, kGroups - 1));
    bundle_.rank = static_cast<int>(random_.below(ranks_));
  }
  const auto count = random_.between(2, 4);
  for (std::int64_t i = 0; i < count; ++i) add_collective();
  bundle_ = {};
}

void Generator::add_collective() {
  auto op = begin(draw(random_, kCollectiveWeights), 0, 0);
  if (recipe_.shrinks && op.kind != Kind::broadcast) op.kind = Kind::all_reduce;
  op.bundle = bundle_.number;
  if (op.bundle != 0) {
    if (is_of_messages(op.kind)) return;
    op.group = bundle_.group, op.rank = bundle_.rank;
  } else if (program_.groups && random_.one_in(2)) {
    op.group = static_cast<int>(random_.between(1, kGroups - 1));
    op.rank = static_cast<int>(random_.below(ranks_));  // of whom they are the group
  }
  // The owners are the same on all ranks, so rank 0 stands for all.
  const auto local = [&](int b) {
    const auto& owner = round_->owners[static_cast<std::size_t>(b)];
    const bool spoilt = std::any_of(spoilt_.begin(), spoilt_.end(),
                                    [b](const auto& one) { return one.second == b; });
    return !owner.shared && owner.shift == 0 && owner.thread == 0 && !is_big(b) && !spoilt &&
           !bundle_.buffers.contains(b) &&
           (!reduces(op.kind) || spec(b).contents == Contents::integers) &&
           (!reduces(op.kind) || !recipe_.shrinks || is_real(spec(b).dtype));
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
  if (op.bundle != 0) bundle_.buffers.insert({from, to});
  op.dtype = spec(from).dtype;
  const bool may_differ = recipe_.compares && !recipe_.shrinks && !in_run() && ranks_ > 1 &&
                          op.bundle == 0 && op.dtype == DType::f64 && spec(to).length >= 20;
  if (may_differ && op.group == 0 && random_.one_in(4)) return add_difference(op, to);
  if (reduces(op.kind)) return add_reduction(op, from, to);
  switch (op.kind) {
    case Kind::send: return add_message(op, from, to);
    case Kind::all_to_all_counts: return add_movement_with_counts(op, from, to);
    default: return add_movement(op, from, to);
  }
}

/// Whatever faults are under way: it is made all the same. In the thread of the collectives.
void Generator::add_split() {
  auto op = begin(Kind::split, 0, 0);
  op.group = static_cast<int>(random_.between(1, kGroups - 1));
  for (int rank = 0; rank < ranks_; ++rank) {
    op.rank = op.target = rank;
    emit(op);
  }
}

/// Each rank's own, a value or an element of its memory that no other part of the bundle names.
double Generator::draw_scalar(Operation& op, int from, int to) {
  draw_alpha(op, {from, to});
  if (op.alpha_at.present() &&
      !round_->owners[static_cast<std::size_t>(op.alpha_at.buffer)].shared && op.bundle != 0)
    op.alpha_at = {};
  return alpha_bound(op);
}

void Generator::add_reduction(Operation& op, int from, int to) {
  const bool scatter = op.kind == Kind::reduce_scatter, in_place = !scatter && random_.one_in(3);
  op.reduce = static_cast<ReduceOp>(random_.below(4));  // avg: see below
  if (recipe_.shrinks) op.reduce = ReduceOp::sum;
  const bool scaled = !recipe_.shrinks && random_.one_in(4);
  if (scaled) op.reduce = ReduceOp::premul_sum;
  const auto members = members_of(op);
  const int n = static_cast<int>(members.size());
  op.peer = static_cast<int>(random_.below(n));
  const auto most = std::min(spec(to).length, spec(from).length / (scatter ? n : 1));
  const auto count = draw_count(most);
  std::vector<Operation> all;
  double sum = 0, product = 1, largest = 0;
  for (op.place = 0; op.place < n; ++op.place) {
    const int rank = members[static_cast<std::size_t>(op.place)];
    op.rank = op.target = rank;
    op.at[0] = part(rank, from, count * (scatter ? n : 1));
    op.at[1] = in_place ? op.at[0] : part(rank, to, count);
    auto& mine = all.emplace_back(op);
    const auto scalar = scaled ? draw_scalar(mine, from, to) : 1;
    sum += scalar * bound(op.at[0]), product *= bound(op.at[0]);
    largest = std::max(largest, bound(op.at[0]));
  }
  auto result = op.reduce == ReduceOp::sum || scaled ? sum
                : op.reduce == ReduceOp::prod        ? product
                                                     : largest;
  // An average is exact where all have the same, and powers of two divide it.
  const bool averages =
      !recipe_.shrinks && !scaled && op.bundle == 0 && (n & (n - 1)) == 0 && random_.one_in(5);
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
    for (const int rank : members) {
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

void Generator::add_movement(Operation& op, int from, int to) {
  const auto members = members_of(op);
  const int n = static_cast<int>(members.size());
  op.peer = static_cast<int>(random_.below(n));
  if (op.kind == Kind::exchange && n == 1) return;
  if (op.kind == Kind::exchange) op.peer = static_cast<int>(random_.between(1, n - 1));
  const bool swaps = op.kind == Kind::all_to_all,
             joins = swaps || op.kind == Kind::all_gather || op.kind == Kind::gather_to,
             deals = swaps || op.kind == Kind::scatter_from, in_place = op.kind == Kind::broadcast;
  const auto most =
      std::min(spec(from).length / (deals ? n : 1), spec(to).length / (joins ? n : 1));
  if (most == 0) return;
  const auto count = draw_count(most);
  double largest = 0;
  std::vector<Operation> all;
  for (op.place = 0; op.place < n; ++op.place) {
    const int rank = members[static_cast<std::size_t>(op.place)];
    const bool root = op.place == op.peer;
    op.rank = op.target = rank;
    op.at = {};
    if (root || (op.kind != Kind::broadcast_to && op.kind != Kind::scatter_from)) {
      op.at[0] = part(rank, from, count * (deals ? n : 1));
      largest = std::max(largest, bound(op.at[0]));
    }
    if (!in_place && (root || op.kind != Kind::gather_to))
      op.at[1] = part(rank, to, count * (joins ? n : 1));
    all.push_back(op);
  }
  for (auto& one : all) {
    for (const auto& slice : written(one)) grows(slice, largest);
    emit(one);
  }
}

void Generator::add_movement_with_counts(Operation& op, int from, int to) {
  const auto members = members_of(op);
  const int n = static_cast<int>(members.size());
  const auto most = std::min(spec(from).length, spec(to).length) / n;
  if (most == 0) return;
  op.m = random_.below(5), op.n = random_.below(5), op.k = draw_count(most);
  double largest = 0;
  std::vector<Operation> all;
  for (op.place = 0; op.place < n; ++op.place) {
    const int rank = members[static_cast<std::size_t>(op.place)];
    op.rank = op.target = rank;
    std::int64_t out = 0, in = 0;
    for (int peer = 0; peer < n; ++peer) {
      out += sent(op, op.place, peer);
      in += sent(op, peer, op.place);
    }
    op.at[0] = part(rank, from, out), op.at[1] = part(rank, to, in);
    largest = std::max(largest, bound(op.at[0]));
    all.push_back(op);
  }
  for (auto& one : all) {
    grows(one.at[1], largest);
    emit(one);
  }
}

void Generator::add_message(Operation& op, int from, int to) {
  const auto members = members_of(op);
  const auto n = static_cast<std::int64_t>(members.size());
  if (n == 1) return;
  const auto from_place = random_.below(n), to_place = (from_place + random_.between(1, n - 1)) % n;
  const int sender = members[static_cast<std::size_t>(from_place)],
            receiver = members[static_cast<std::size_t>(to_place)];
  const auto count = draw_count(std::min(spec(from).length, spec(to).length));
  op.rank = op.target = sender;
  op.place = static_cast<int>(from_place), op.peer = static_cast<int>(to_place);
  op.at[0] = part(sender, from, count);
  const auto largest = bound(op.at[0]);
  emit(op);
  op.kind = Kind::receive, op.rank = op.target = receiver;
  std::swap(op.place, op.peer);
  op.at[0] = part(receiver, to, count);
  grows(op.at[0], largest);
  emit(op);
}

void Generator::add_wrong(int rank, int thread) {
  auto op = begin(Kind::wrong, rank, thread);
  op.wrong = static_cast<Wrong>(random_.below(static_cast<std::int64_t>(Wrong::root)));
  if (op.wrong == Wrong::gather_lengths && recipe_.checks) op.wrong = Wrong::odd_normal;
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

void Generator::add_difference(Operation& op, int to) {
  op.kind = Kind::wrong, op.wrong = Wrong::differs;
  op.peer = static_cast<int>(random_.below(ranks_));  // the one
  op.data = static_cast<std::uint64_t>(random_.below(3));
  for (int rank = 0; rank < ranks_; ++rank) {
    op.rank = op.target = rank;
    op.at[1] = part(rank, to, 20);
    emit(op);
  }
}

void Generator::add_blow() {
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
  // A GPU that is gone for good ends the world, unless it goes on with fewer ranks.
  if (recipe_.shrinks && !recipe_.respawns) kinds.push_back(FaultKind::device_failure);
  op.fault = random_.of(kinds);
  const auto n = random_.below(12);
  op.blow = n < 6    ? Blow::inject
            : n < 8  ? (recipe_.shrinks ? Blow::inject : Blow::phase)
            : n < 9  ? Blow::kill_active
            : n < 10 ? Blow::kill_standby
            : n < 11 ? Blow::freeze_host
                     : Blow::freeze_rank;
  if (recipe_.leaves_failing && random_.one_in(3)) op.blow = Blow::failing_gpu;
  if (recipe_.respawns && random_.one_in(2)) op.blow = Blow::kill_rank;
  op.data = op.blow == Blow::phase ? static_cast<std::uint64_t>(random_.below(6))
                                   : static_cast<std::uint64_t>(random_.between(100, 200'000));
  op.await = in_run() ? Await::drop : Await::later;
  emit(op);
  if (!in_run()) return;
  // Work on the host: what the step asks of other ranks then comes late, maybe behind a rollback.
  auto pause = begin(Kind::pause, op.rank, op.thread);
  pause.data = static_cast<std::uint64_t>(random_.below(40'000));
  emit(pause);
}

}  // namespace troupe::torture
