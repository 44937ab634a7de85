#include "program.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::torture {
namespace {

// clang-format off
constexpr std::string_view kKinds[kKindCount] = {
    "fill", "copy", "upload", "download", "to_pinned",
    "from_pinned", "replace", "multiply", "divide", "axpby",
    "axpy", "dot", "nrm2", "scal", "blas_copy",
    "gemv", "gemm", "ger", "syrk", "trmm",
    "iamax", "swap", "spmv", "spmv_sell", "gather",
    "uniform", "normal", "law", "sequence", "potrf",
    "factor_info", "syevd", "gesvd", "gesv", "sort",
    "reduce_local", "scan", "select", "spgemm", "transform",
    "transform_back", "convolution", "attention", "blas_call", "solver_call",
    "fft_call", "rng_call", "primitives_call", "sparse_call", "direct_call", "tensor_call", "dnn_call", "outside_call", "combine", "smooth",
    "tally", "accumulate", "all_reduce", "reduce", "broadcast",
    "all_gather", "reduce_scatter", "all_to_all", "broadcast_to", "gather_to",
    "scatter_from", "all_to_all_counts", "exchange", "send", "receive",
    "split", "fetch", "fetch_new", "put", "carry",
    "hold", "nop", "pause", "fault", "wrong"};
// clang-format on
constexpr std::string_view kWrongs[kWrongCount] = {
    "short_destination", "gather_lengths", "token_dtype", "token_length", "no_such_rank",
    "freed_token",       "odd_normal",     "root",        "differs",      "spoilt"};
constexpr std::string_view kRounds[kRoundKindCount] = {
    "free",   "run",      "held",        "versions", "failing", "slabs",
    "pieces", "recorded", "distributed", "helped",   "members"};

/// FNV-1a over numbers.
class Hash {
 public:
  template <class... T>
  void add(const T&... values) {
    (mix(static_cast<std::uint64_t>(values)), ...);
  }
  void add(const Slice& slice) { add(slice.rank, slice.buffer, slice.first, slice.count); }
  [[nodiscard]] std::uint64_t value() const { return hash_; }

 private:
  void mix(std::uint64_t value) {
    for (int i = 0; i < 8; ++i) hash_ = (hash_ ^ (value >> (8 * i) & 0xff)) * 0x100000001b3u;
  }
  std::uint64_t hash_ = 0xcbf29ce484222325u;
};

void add(Hash& hash, const Operation& op) {
  hash.add(op.id, op.kind, op.rank, op.thread, op.target, op.dtype, op.m, op.n, op.k);
  if (op.call != nullptr) {
    for (const char c : op.call->name) hash.add(c);
  }
  for (const auto& slice : op.at) hash.add(slice);
  hash.add(op.alpha_at);
  hash.add(static_cast<std::int64_t>(op.alpha), static_cast<std::int64_t>(op.beta));
  hash.add(op.transpose_a, op.transpose_b, op.reduce, op.peer, op.group, op.place, op.bundle,
           op.data, op.await, op.wrong, op.blow, op.fault, op.fails, op.reports);
}

}  // namespace

std::string_view to_string(Kind kind) noexcept {
  return kKinds[static_cast<std::size_t>(kind)];
}
std::string_view to_string(Wrong wrong) noexcept {
  return kWrongs[static_cast<std::size_t>(wrong)];
}
std::string_view to_string(RoundKind kind) noexcept {
  return kRounds[static_cast<std::size_t>(kind)];
}

std::string_view library_of(Kind kind) noexcept {
  switch (kind) {
    case Kind::multiply:
    case Kind::divide:
    case Kind::axpby: return "vector";
    case Kind::axpy:
    case Kind::dot:
    case Kind::nrm2:
    case Kind::scal:
    case Kind::blas_copy:
    case Kind::gemv:
    case Kind::gemm:
    case Kind::ger:
    case Kind::syrk:
    case Kind::trmm:
    case Kind::iamax:
    case Kind::swap:
    case Kind::blas_call: return "blas";
    case Kind::spmv:
    case Kind::spmv_sell:
    case Kind::gather:
    case Kind::spgemm:
    case Kind::sparse_call: return "sparse";
    case Kind::direct_call: return "direct";
    case Kind::tensor_call: return "tensor";
    case Kind::uniform:
    case Kind::normal:
    case Kind::law:
    case Kind::sequence:
    case Kind::rng_call: return "rng";
    case Kind::potrf:
    case Kind::factor_info:
    case Kind::syevd:
    case Kind::gesvd:
    case Kind::gesv:
    case Kind::solver_call: return "solver";
    case Kind::sort:
    case Kind::reduce_local:
    case Kind::scan:
    case Kind::select:
    case Kind::primitives_call: return "primitives";
    case Kind::transform:
    case Kind::transform_back:
    case Kind::fft_call: return "fft";
    case Kind::convolution:
    case Kind::attention:
    case Kind::dnn_call: return "dnn";
    case Kind::outside_call: return "tridiagonal";
    case Kind::combine:
    case Kind::smooth:
    case Kind::tally: return "kernel";
    case Kind::accumulate: return "function";
    default: return {};
  }
}

TransformShape::TransformShape(const Operation& op) {
  for (const auto extent : {op.m, op.n, op.k}) length *= extent;
  last = op.peer == 1 ? op.m : op.peer == 2 ? op.n : op.k;
  stored = length / last * (last / 2 + 1);
}

std::vector<int> members_of(int group, int rank, int ranks) {
  std::vector<int> members;
  for (int other = 0; other < ranks; ++other) {
    if (group == 0 || SplitOf(group, other).colour == SplitOf(group, rank).colour)
      members.push_back(other);
  }
  if (group != 0) {
    std::stable_sort(members.begin(), members.end(), [group](int a, int b) {
      return SplitOf(group, a).key < SplitOf(group, b).key;
    });
  }
  return members;
}

std::vector<Slice> written(const Operation& op) {
  switch (op.kind) {
    case Kind::fill:
    case Kind::upload:
    case Kind::from_pinned:
    case Kind::replace:
    case Kind::scal:
    case Kind::uniform:
    case Kind::normal:
    case Kind::law:
    case Kind::sequence:
    case Kind::potrf:
    case Kind::syevd:
    case Kind::gesvd:
    case Kind::gesv:
    case Kind::broadcast:
    case Kind::receive: return {op.at[0]};
    case Kind::copy:
    case Kind::axpby:
    case Kind::axpy:
    case Kind::nrm2:
    case Kind::iamax:
    case Kind::blas_copy:
    case Kind::sort:
    case Kind::reduce_local:
    case Kind::scan:
    case Kind::select:
    case Kind::transform:
    case Kind::transform_back:
    case Kind::gather:
    case Kind::all_reduce:
    case Kind::all_gather:
    case Kind::reduce_scatter:
    case Kind::all_to_all:
    case Kind::broadcast_to:
    case Kind::scatter_from:
    case Kind::all_to_all_counts:
    case Kind::exchange:
    case Kind::fetch:
    case Kind::smooth:
    case Kind::tally:
    case Kind::accumulate:
    case Kind::put:
    case Kind::carry: return {op.at[1]};
    case Kind::reduce:
    case Kind::gather_to:
      if (op.place != op.peer) return {};
      return {op.at[1]};
    // Until ranks have compared what they call, a fault takes what they were about to write.
    case Kind::wrong:
      if (op.wrong != Wrong::differs) return {};
      return {op.at[1]};
    case Kind::multiply:
    case Kind::divide:
    case Kind::dot:
    case Kind::gemv:
    case Kind::gemm:
    case Kind::ger:
    case Kind::syrk:
    case Kind::trmm:
    case Kind::spmv:
    case Kind::spmv_sell:
    case Kind::combine: return {op.at[2]};
    case Kind::swap: return {op.at[0], op.at[1]};
    case Kind::spgemm:
      if (!op.at[2].present()) return {op.at[7]};
      return {op.at[2], op.at[7], op.at[8]};
    case Kind::convolution:
    case Kind::attention: return {op.at[3]};
    default: return {};
  }
}

std::string describe(const Operation& op) {
  auto text =
      fmt::format("rank {}, thread {}: {} {}", op.rank, op.thread, op.id, to_string(op.kind));
  if (op.kind == Kind::wrong) text += fmt::format(" {}", to_string(op.wrong));
  if (op.kind == Kind::fault)
    text += fmt::format(" {} ({})", memory::to_string(op.fault), static_cast<int>(op.blow));
  if (is_call(op.kind)) text += fmt::format(" {}", op.call->name);
  text += fmt::format(" {}", troupe::to_string(op.dtype));
  if (op.target != op.rank) text += fmt::format(" on rank {}", op.target);
  if (op.group != 0) text += fmt::format(" of group {}", op.group);
  if (op.bundle != 0) text += fmt::format(" in bundle {}", op.bundle);
  if (op.fails != Errc::ok) text += fmt::format(", to fail with {}", troupe::to_string(op.fails));
  for (const auto& slice : op.at) {
    if (!slice.present()) continue;
    text += fmt::format(" [{}: {}+{}", slice.buffer, slice.first, slice.count);
    text += slice.rank != op.rank ? fmt::format(" of rank {}]", slice.rank) : "]";
  }
  return text;
}

std::uint64_t Program::fingerprint() const {
  Hash hash;
  hash.add(seed, ranks, stormy, groups, operations);
  for (const auto& buffer : buffers) {
    hash.add(buffer.dtype, buffer.length, buffer.contents);
    for (const auto index : buffer.indices) hash.add(index);
  }
  for (const auto& round : rounds) {
    hash.add(round.kind, round.threads, round.steps, round.commit_every, round.stop_at,
             round.special);
    for (const auto& owner : round.owners) hash.add(owner.shared, owner.shift, owner.thread);
    for (const auto& step : round.scripts) {
      for (const auto& rank : step) {
        for (const auto& script : rank) {
          for (const auto& op : script) add(hash, op);
        }
      }
    }
  }
  return hash.value();
}

}  // namespace troupe::torture
