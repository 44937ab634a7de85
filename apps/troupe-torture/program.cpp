#include "program.hpp"

#include <fmt/format.h>

namespace troupe::torture {
namespace {

constexpr std::string_view kKinds[kKindCount] = {
    "fill",       "copy",     "upload",    "download",   "to_pinned",      "from_pinned",
    "replace",    "multiply", "divide",    "axpby",      "axpy",           "dot",
    "nrm2",       "scal",     "blas_copy", "gemv",       "gemm",           "spmv",
    "spmv_sell",  "gather",   "uniform",   "normal",     "potrf",          "sort",
    "all_reduce", "reduce",   "broadcast", "all_gather", "reduce_scatter", "all_to_all",
    "exchange",   "send",     "receive",   "fetch",      "fetch_new",      "put",
    "hold",       "nop",      "pause",     "fault",      "wrong"};
constexpr std::string_view kWrongs[kWrongCount] = {
    "short_destination", "gather_lengths", "token_dtype", "token_length", "no_such_rank",
    "freed_token",       "odd_normal",     "root",        "differs"};
constexpr std::string_view kRounds[kRoundKindCount] = {"free",    "run",   "held",   "versions",
                                                       "failing", "slabs", "pieces", "members"};
constexpr Slice kNothing{};

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
  for (const auto& slice : op.at) hash.add(slice);
  hash.add(op.alpha_at);
  hash.add(static_cast<std::int64_t>(op.alpha), static_cast<std::int64_t>(op.beta));
  hash.add(op.transpose_a, op.transpose_b, op.reduce, op.peer, op.data, op.await, op.wrong, op.blow,
           op.fault);
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

const Slice& written(const Operation& op) noexcept {
  switch (op.kind) {
    case Kind::fill:
    case Kind::upload:
    case Kind::from_pinned:
    case Kind::replace:
    case Kind::scal:
    case Kind::uniform:
    case Kind::normal:
    case Kind::potrf:
    case Kind::broadcast:
    case Kind::receive: return op.at[0];
    case Kind::copy:
    case Kind::axpby:
    case Kind::axpy:
    case Kind::nrm2:
    case Kind::blas_copy:
    case Kind::sort:
    case Kind::gather:
    case Kind::all_reduce:
    case Kind::all_gather:
    case Kind::reduce_scatter:
    case Kind::all_to_all:
    case Kind::exchange:
    case Kind::fetch:
    case Kind::put: return op.at[1];
    case Kind::reduce: return op.rank == op.peer ? op.at[1] : kNothing;
    // Until ranks have compared what they call, a fault takes what they were about to write.
    case Kind::wrong: return op.wrong == Wrong::differs ? op.at[1] : kNothing;
    case Kind::multiply:
    case Kind::divide:
    case Kind::dot:
    case Kind::gemv:
    case Kind::gemm:
    case Kind::spmv:
    case Kind::spmv_sell: return op.at[2];
    default: return kNothing;
  }
}

std::string describe(const Operation& op) {
  auto text =
      fmt::format("rank {}, thread {}: {} {}", op.rank, op.thread, op.id, to_string(op.kind));
  if (op.kind == Kind::wrong) text += fmt::format(" {}", to_string(op.wrong));
  if (op.kind == Kind::fault)
    text += fmt::format(" {} ({})", memory::to_string(op.fault), static_cast<int>(op.blow));
  text += fmt::format(" {}", troupe::to_string(op.dtype));
  if (op.target != op.rank) text += fmt::format(" on rank {}", op.target);
  for (const auto& slice : op.at) {
    if (!slice.present()) continue;
    text += fmt::format(" [{}: {}+{}", slice.buffer, slice.first, slice.count);
    text += slice.rank != op.rank ? fmt::format(" of rank {}]", slice.rank) : "]";
  }
  return text;
}

std::uint64_t Program::fingerprint() const {
  Hash hash;
  hash.add(seed, ranks, stormy, operations);
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
