#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/dtype.hpp>
#include <troupe/error.hpp>
#include <troupe/lib/collective.hpp>
#include <troupe/lib/memory.hpp>

#include "catalogue/call_info.hpp"
#include "catalogue/random.hpp"
#include "catalogue/values.hpp"

/// What a seed stands for: a program for all ranks, as data. Every rank makes the same one, so that
/// each knows what every other does; the runner carries out its own rank's part, the oracle all of
/// it on host arrays.
///
/// A program has buffers and rounds. Buffer i has the same dtype and length on every rank. In a
/// round each buffer belongs to one thread of one rank, its own or another, or is only read; so the
/// order of the operations within each thread determines all values.
namespace troupe::torture {

using namespace catalogue;

/// What happens to the elements of a buffer.
enum class Contents : std::uint8_t {
  integers,  ///< small integers, so that arithmetic is exact in every dtype
  rounded,   ///< integers to within rounding, as a library makes them of a square root: moved only,
             ///< and read by transforms
  bits,      ///< anything: moved only
  indices    ///< never written: row starts, columns and indices of sparse operations
};

struct BufferSpec {
  DType dtype = DType::f32;
  std::int64_t length = 0;
  Contents contents = Contents::integers;
  std::vector<std::int64_t> indices;  ///< what an index buffer holds
};

/// A range of elements of a buffer of some rank.
struct Slice {
  int rank = -1;
  int buffer = -1;  ///< -1: absent
  std::int64_t first = 0, count = 0;
  [[nodiscard]] bool present() const noexcept { return buffer >= 0; }
};

enum class Kind : std::uint8_t {
  fill,         ///< at[0] = alpha, or bits from `data`
  copy,         ///< at[1] = at[0]
  upload,       ///< at[0] = host data from `data`
  download,     ///< the contents of at[0] are looked at
  to_pinned,    ///< the same through pinned memory
  from_pinned,  ///< as upload, through pinned memory
  replace,      ///< the buffer of at[0] is freed and made anew; then filled with alpha
  multiply,     ///< at[2] = at[0] .* at[1]
  divide,       ///< at[2] = at[0] ./ at[1]
  axpby,        ///< at[1] = alpha at[0] + beta at[1]
  axpy,         ///< at[1] = alpha at[0] + at[1]
  dot,          ///< at[2] = at[0] . at[1]
  nrm2,         ///< at[1] = |at[0]|
  scal,         ///< at[0] = alpha at[0]
  blas_copy,    ///< at[1] = at[0]
  gemv,         ///< at[2] = alpha op(at[0]) at[1] + beta at[2]
  gemm,         ///< at[2] = alpha op(at[0]) op(at[1]) + beta at[2]
  ger,          ///< at[2], m x n, = alpha at[0] at[1]^T + at[2]
  syrk,  ///< a half of at[2], n x n, = alpha op(at[0]) op(at[0])^T + beta at[2]; the upper one with
         ///< transpose_b; m columns of op(at[0])
  trmm,  ///< at[2] = alpha at[0] at[1], m x n, at[0] triangular, upper with transpose_b
  iamax,  ///< at[1] = where at[0] is largest, smallest with transpose_a
  swap,   ///< at[0] and at[1] change places
  spmv,   ///< at[2] = alpha A at[1] + beta at[2]; A: values at[0], row starts at[3], columns at[4]
  spmv_sell,  ///< the same, A in sliced ELL form
  gather,     ///< at[1] = at[0][at[3]]
  uniform,    ///< at[0] = random numbers
  normal,     ///< at[0] = random numbers
  law,        ///< at[0] = random numbers by a law of rng/laws.hpp
  sequence,   ///< at[0] = the begin of a sequence of cuRAND's
  potrf,  ///< at[0], m x m, becomes its Cholesky factor; with n > 0 it is from `data`, and fails
  factor_info,   ///< the info of a factorisation whose minor of order n is not definite; 0: all are
  syevd,         ///< at[0] = the eigenvalues of a diagonal matrix m x m from `data`
  gesvd,         ///< at[0] = the singular values of the same, by Jacobi without transpose_a
  gesv,          ///< at[0] = the solution, `data`, of a system with its rows in reverse order
  sort,          ///< at[1] = at[0] in order, descending with transpose_a
  reduce_local,  ///< at[1] = the sum, the least or the largest of at[0]
  scan,          ///< at[1] = the sums of at[0] up to each element, without it with transpose_a
  select,        ///< at[1] = where at[0] is not zero, and how many elements are not
  spgemm,  ///< at[2], at[7], at[8] = A B: values, row starts, columns; A: at[0], at[3], at[4]; B:
           ///< at[1], at[5], at[6]; m x n times n x k; and how many elements that has
  transform,       ///< at[1] = the Fourier transform of at[0]: see TransformShape
  transform_back,  ///< at[1] = that of at[0], of reals, and then the inverse one
  convolution,     ///< at[3] = at[0] * at[1] + at[2]: see ConvolutionShape
  attention,       ///< at[3] = attention of m queries at[0] to n keys at[1] with values at[2]
  blas_call,       ///< `call`, one of the catalogue's of the library, on operands of its own
  solver_call,
  fft_call,
  rng_call,
  primitives_call,
  sparse_call,
  direct_call,
  tensor_call,
  dnn_call,
  outside_call,  ///< of a library that is not troupe's
  combine,       ///< at[2] = alpha at[0] + at[1] from its end on: a kernel, in blocks of m threads
  smooth,        ///< at[1] = the sums of each element of at[0] and its neighbours: the same
  tally,         ///< at[1][x mod its length] += 1 for each x in at[0]: the same
  accumulate,    ///< at[1] = alpha at[0] + at[1]: a function of the program's
  all_reduce,    ///< at[1] = op over ranks of at[0]; premul_sum: of alpha at[0]; the next two
                 ///< likewise
  reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast_to,       ///< at[1] = at[0] of the root, which others do not have
  gather_to,          ///< at[1] of the root, which others do not have, = at[0] of all
  scatter_from,       ///< at[1] = its part of at[0] of the root, which others do not have
  all_to_all_counts,  ///< all_to_all with parts of different lengths: see sent()
  exchange,           ///< to the rank `shift` behind, at[0]; from the one before, into at[1]
  send,               ///< at[0] to `peer`
  receive,            ///< at[0] from `peer`
  split,              ///< the ranks make `group` anew
  fetch,              ///< at[1] = at[0] of another rank
  fetch_new,          ///< at[0] of another rank into a new buffer, which is looked at
  put,                ///< at[1] of another rank = at[0]
  carry,              ///< the same, by an actor of that rank, which is sent the tokens of both
  hold,               ///< a lease of at[0], for as long as the thread runs
  nop,
  pause,  ///< the thread sleeps for `data` microseconds
  fault,  ///< the device host of this rank suffers `fault`
  wrong   ///< a call that must be refused: see Wrong
};
inline constexpr std::size_t kKindCount = static_cast<std::size_t>(Kind::wrong) + 1;
std::string_view to_string(Kind kind) noexcept;
/// Whether all ranks of the world, or some, do it together.
constexpr bool is_collective(Kind kind) noexcept {
  return kind >= Kind::all_reduce && kind <= Kind::receive;
}
constexpr bool is_transfer(Kind kind) noexcept {
  return kind >= Kind::fetch && kind <= Kind::carry;
}
/// Whether it makes random numbers.
constexpr bool is_drawn(Kind kind) noexcept {
  return kind >= Kind::uniform && kind <= Kind::sequence;
}
/// Whether it writes at[1], of another rank, in that rank's memory.
constexpr bool writes_there(Kind kind) noexcept {
  return kind == Kind::put || kind == Kind::carry;
}
/// True for a call of the catalogue.
constexpr bool is_call(Kind kind) noexcept {
  return kind >= Kind::blas_call && kind <= Kind::outside_call;
}
/// Whether it has a value, which is looked at: that of its future; 0 of a call whose results are
/// right.
constexpr bool has_value(Kind kind) noexcept {
  return kind == Kind::factor_info || kind == Kind::select || kind == Kind::spgemm || is_call(kind);
}
/// The library ("blas") whose call it is; empty: none that a device host opens.
std::string_view library_of(Kind kind) noexcept;

/// Calls with wrong arguments. They change nothing and say so.
enum class Wrong : std::uint8_t {
  short_destination,  ///< an axpy whose y is shorter than x
  gather_lengths,     ///< an all_gather whose lengths do not fit the world
  token_dtype,        ///< a fetch from a token of another dtype
  token_length,       ///< a fetch of another length
  no_such_rank,       ///< a remote operation on a rank that is not there
  freed_token,        ///< a fetch from a buffer that was freed
  odd_normal,         ///< an odd number of normal random numbers
  root,               ///< a broadcast from a rank that is not there: found by the device host
  differs,            ///< a collective in which one rank says something else than the others
  spoilt              ///< a use of what a command that failed has left stale
};
inline constexpr std::size_t kWrongCount = static_cast<std::size_t>(Wrong::spoilt) + 1;
std::string_view to_string(Wrong wrong) noexcept;

/// What a thread does with the future of an operation.
enum class Await : std::uint8_t { now, later, drop, callback, chain, coroutine };

/// Faults beside those that a device host is told to suffer.
enum class Blow : std::uint8_t {
  inject,        ///< Operation::fault as a command
  phase,         ///< the same in phase `data` of the next recovery
  kill_active,   ///< SIGKILL to the device host from outside
  kill_standby,  ///< SIGKILL to the standby
  freeze_host,   ///< SIGSTOP, and SIGCONT after `data` microseconds
  freeze_rank,   ///< the same for a whole rank
  failing_gpu,   ///< the GPU says that it is failing, and its rank is to leave it
  kill_rank      ///< SIGKILL to the rank's process, which comes back
};

struct Operation {
  std::uint32_t id = 0;  ///< of the program, from 0; parts of one collective share it
  Kind kind = Kind::nop;
  int rank = 0;  ///< whose program it is in
  int thread = 0;
  int target = 0;  ///< on whose device it runs
  DType dtype = DType::f32;
  std::array<Slice, 9> at{};
  double alpha = 1, beta = 0;
  Slice alpha_at{};  ///< alpha is this element of device memory, if present
  std::int64_t m = 0, n = 0, k = 0;
  const CallInfo* call = nullptr;  ///< calls of the catalogue: which
  bool transpose_a = false, transpose_b = false;
  ReduceOp reduce = ReduceOp::sum;
  int peer = 0;   ///< root, shift or partner; transform: dimensions; convolution: stride
  int group = 0;  ///< collectives: of which ranks, see members_of()
  int place = 0;  ///< of `rank` among them; so is `peer`
  /// Collectives of the same number that follow one another in a script are one bundle; 0: of none.
  std::uint32_t bundle = 0;
  std::uint64_t data = 0;
  Await await = Await::later;
  Wrong wrong{};
  Blow blow{};
  memory::FaultKind fault{};
  /// Its future has to hold this error. `library`: the call of the library is let fail; nothing has
  /// changed then, or what it was to write is stale. Others come of the data, and what it was to
  /// write is stale.
  Errc fails = Errc::ok;
  bool reports = false;  ///< with OnFailure::report
};

/// The colour and the key of a rank in the splits that a program's groups come of; group 0 is the
/// world. Groups 1 are halves, the odd ranks and the even ones, backwards; groups 2 are pairs of
/// neighbours.
inline constexpr int kGroups = 3;
struct SplitOf {
  int colour = 0, key = 0;
  SplitOf(int group, int rank)
      : colour(group == 1 ? rank % 2 : rank / 2), key(group == 1 ? -rank : 0) {}
};
/// The ranks of the group that `rank` is in, in its order.
std::vector<int> members_of(int group, int rank, int ranks);

/// Transforms have the extents m, n and k, as many as `peer` says, each 1, 2 or 4: so they are
/// exact whatever the algorithm. The source is complex with transpose_a, else real; with both
/// transposes the transform is an inverse one.
struct TransformShape {
  std::int64_t length = 1, stored = 1;  ///< of one transform: all elements, those of a real source
  std::int64_t last = 1;                ///< the extent of the last dimension
  explicit TransformShape(const Operation& op);
};

/// Convolutions are of m x m images with n x n filters, zeros around, k channels in and out.
struct ConvolutionShape {
  std::int64_t padding, out;  ///< out: the extent of the result
  explicit ConvolutionShape(const Operation& op)
      : padding(op.n / 2), out((op.m + 2 * padding - op.n) / op.peer + 1) {}
};

/// How many elements the rank at place `from` sends to that at place `to` in an all_to_all_counts.
constexpr std::int64_t sent(const Operation& op, int from, int to) noexcept {
  return 1 + (from * op.m + to * op.n) % op.k;
}

/// The slices that the operation writes.
std::vector<Slice> written(const Operation& op);
/// "rank 1, thread 0: 17 axpy f32 [3: 5+10] [4: 0+10]"
std::string describe(const Operation& op);

/// To whom a buffer belongs in a round, told of buffer i of any rank r.
struct Owner {
  bool shared = false;  ///< nobody writes it, all may read it
  int shift = 0;        ///< it belongs to rank (r + shift) % ranks …
  int thread = 0;       ///< … and this thread of it
};

enum class RoundKind : std::uint8_t {
  free,         ///< threads submit, faults are seen as errors of futures
  run,          ///< within World::run, where faults are not seen
  held,         ///< one rank joins a collective only after a message of the others
  versions,     ///< fetches of buffers that their owners write at the same time
  failing,      ///< World::run whose last command before a commit fails: the run must not end well
  slabs,        ///< many buffers of a slab each
  pieces,       ///< transfers of many pieces, while all threads wait for something
  recorded,     ///< a run whose steps are recorded sequences
  distributed,  ///< a run of products and transforms that are spread over a grid of all ranks
  helped,       ///< a run whose steps have functions of futures, actors and threads do their work
  members       ///< a run in a world that loses ranks for good and gets them back
};
inline constexpr std::size_t kRoundKindCount = static_cast<std::size_t>(RoundKind::members) + 1;
std::string_view to_string(RoundKind kind) noexcept;

struct Round {
  RoundKind kind = RoundKind::free;
  bool left_out = false;
  std::vector<Owner> owners;  ///< per buffer
  int threads = 1;
  std::int64_t steps = 1;         ///< run: steps
  std::int64_t commit_every = 1;  ///< run: steps between commits
  std::int64_t stop_at = -1;      ///< run: the step at which its end is asked for; -1: none
  int special = 0;  ///< held: the rank that comes late; slabs: how many; recorded, distributed,
                    ///< helped: steps; members: waits for all
  /// By step (one unless it is a run), rank and thread.
  std::vector<std::vector<std::vector<std::vector<Operation>>>> scripts;
};

struct Program {
  std::uint64_t seed = 0;
  int ranks = 1;
  bool stormy = false;  ///< faults are ordered in it
  bool groups = false;  ///< its ranks make groups, and use them
  std::vector<BufferSpec> buffers;
  std::vector<Round> rounds;
  std::uint32_t operations = 0;  ///< ids in use

  /// FNV-1a over everything: ranks compare it.
  [[nodiscard]] std::uint64_t fingerprint() const;
};

/// How many of a job's programs suffer faults.
enum class Faults : std::uint8_t {
  none,
  some,  ///< half of the programs, in half of their rounds, one or two at a time
  many   ///< all programs, in all of their rounds, up to four at a time
};

/// What a seed is turned into, beside the seed.
struct Recipe {
  std::vector<const CallInfo*> calls{};  ///< of which programs have some
  int ranks = 1;
  std::int64_t operations = 1000;
  std::string engine = "cpu";
  Faults faults = Faults::some;
  bool isolated = true;   ///< device hosts are processes, so that they can be lost
  bool shrinks = false;   ///< the world goes on without ranks that are lost: rounds of members only
  bool respawns = false;  ///< … or with ranks that have died, in one round
  bool leaves_failing = false;  ///< … and without GPUs that say they are failing
  bool collectives = true, tokens = true;
  bool compares = true;                ///< ranks find out if they call different collectives
  bool checks = false;                 ///< so that what one of them refuses is wrong on all
  std::set<RoundKind> rounds{};        ///< empty: all kinds
  std::set<std::uint32_t> left_out{};  ///< operations that are not carried out
  std::set<Kind> missing{};            ///< kinds of which a rank has no library
};

/// The program of a seed.
Program generate(std::uint64_t seed, const Recipe& recipe);

}  // namespace troupe::torture
