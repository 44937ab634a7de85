#pragma once

#include <set>
#include <utility>
#include <vector>

#include "catalogue/random.hpp"
#include "catalogue/values.hpp"
#include "oracle.hpp"
#include "program.hpp"

namespace troupe::torture {

inline constexpr std::int64_t kVector = 96;  ///< every buffer has at least so many elements

/// What an operation of a family is drawn with: how many of a hundred or so.
struct Weight {
  Kind kind;
  int weight;
};
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

/// Makes the program of a seed: draws, and keeps account of how large the values may be by then.
class Generator {
 public:
  Generator(std::uint64_t seed, const Recipe& recipe);

  Program make();

 private:
  // Buffers

  void add(DType dtype, std::int64_t length, Contents contents,
           std::vector<std::int64_t> indices = {});

  void make_buffers();

  /// The patterns of sparse matrices, as many entries in each row: of one in both forms, and of one
  /// that it is multiplied by. And what their product is written to.
  void make_matrices();

  /// Transfers of these take many pieces; they cost time, so they are rare.
  void make_big();

  [[nodiscard]] const BufferSpec& spec(int buffer) const;
  [[nodiscard]] bool is_big(int buffer) const { return big_ >= 0 && buffer >= big_; }

  // Rounds

  RoundKind draw_kind();

  void make_round();

  void deal_buffers(Round& round);

  void empty_scripts(Round& round, std::int64_t steps, int threads);

  std::int64_t draw_length();

  void make_free(Round& round);

  void make_held(Round& round);

  void make_run(Round& round);

  void make_members(Round& round);

  /// Whether a round gets blows.
  bool draw_struck();
  [[nodiscard]] bool in_run() const {
    return round_->kind == RoundKind::run || round_->kind == RoundKind::members;
  }

  // Operations

  void add_operations(std::int64_t count, bool collectives, bool struck);

  int other_than(int rank);

  Operation begin(Kind kind, int rank, int thread);

  void emit(Operation op);

  [[nodiscard]] bool owns(const Operation& op, int device, int buffer) const;
  [[nodiscard]] bool may_read(const Operation& op, int device, int buffer) const;

  /// A buffer of `device` of that kind, which the operation's thread may read or write; -1: none.
  int pick(const Operation& op, int device, DType dtype, Contents contents, bool to_write,
           std::initializer_list<int> but = {});
  /// Any buffer of `device` but those of indices.
  int pick_any(const Operation& op, int device, bool to_write);
  /// A part of the buffer with `count` elements, or with any number.
  Slice part(int device, int buffer, std::int64_t count);
  std::int64_t draw_count(std::int64_t most);

  double& bound(const Slice& slice);
  /// What `slice` holds from now on is at most `largest`, beside what else the buffer holds: the
  /// operation may fail.
  void grows(const Slice& slice, double largest);
  /// Whether results up to `largest` are exact; else the buffer is filled anew instead.
  bool fits(const Operation& op, const Slice& slice, double largest);
  void reset(const Operation& like, int device, int buffer);
  double small(DType dtype);
  DType draw_real() { return random_.one_in(2) ? DType::f32 : DType::f64; }

  void add_kernel(Kind kind, int rank, int thread, int target);

  void add_constant(Operation& op);

  void add_look(Operation& op);

  void add_replace(Operation& op);

  void add_copy(Operation& op, bool real_only);

  void add_random(Operation& op);

  /// A scalar: a value, or an element of device memory.
  void draw_alpha(Operation& op, std::initializer_list<int> but);
  double alpha_bound(const Operation& op);

  void add_vector(Operation& op);

  /// Exact by construction: at[1] is filled with a power of two, at[0] has been multiplied by it.
  void add_division(Operation& op);

  /// The norm of k * k equal numbers is an integer, but cuBLAS's is so to within rounding only.
  void add_norm(Operation& op);
  void add_factorisation(Operation& op);
  /// A fill of the slice by the same thread, before `op`, which has not been emitted yet.
  void fill_for(const Operation& op, const Slice& slice, double value);

  void add_product(Operation& op);
  void add_special_product(Operation& op);
  void add_extreme(Operation& op);
  void add_exchange_of_vectors(Operation& op);

  void add_sparse(Operation& op);

  // generate_libraries.cpp: operations of one device that other ranks cannot ask for

  void add_diagonal(Operation& op);
  void add_sums(Operation& op);
  void add_selection(Operation& op);
  void add_sparse_product(Operation& op);
  void add_transform(Operation& op);
  void add_convolution(Operation& op);
  void add_attention(Operation& op);
  /// A call on operands of its own.
  void add_call(Operation& op);
  /// A kernel or a function of the program's own.
  void add_own(Operation& op);
  /// A part that begins at a multiple of `multiple` elements.
  Slice aligned_part(int device, int buffer, std::int64_t count, std::int64_t multiple);
  /// Emits an operation that has to fail because of its data. What it was to write is not used
  /// until the next round, but by a call that must be refused.
  void emit_failing(Operation& op, Errc error);
  [[nodiscard]] bool may_fail() const { return !in_run() && fragile_.state != Fragile::State::due; }
  /// Lets the next call of the round's fragile library fail; nothing if there is none.
  void add_library_fault();
  void let_fail(Operation& op);
  /// Whether the buffers that it writes may go stale.
  [[nodiscard]] bool may_spoil(const Operation& op) const;
  /// Another user of the library could meet the fault in the place of its call.
  [[nodiscard]] bool barred(Kind kind, int rank, int thread, int target) const;

  // Between ranks

  void add_transfer(int rank, int thread);

  void add_big_transfer(Operation& op, int other);

  void add_collective();
  /// Some of one communicator as one operation. None names a buffer that another one names.
  void add_bundle();
  /// How its source is scaled, in a sum that is; and how large that makes it.
  double draw_scalar(Operation& op, int from, int to);
  /// All ranks make one of the groups anew.
  void add_split();
  /// The ranks that take part in the collective, in the order of their places.
  [[nodiscard]] std::vector<int> members_of(const Operation& op) const {
    return torture::members_of(op.group, op.rank, ranks_);
  }

  void add_reduction(Operation& op, int from, int to);
  bool average_fits(const Operation& op) const { return 2.0 * ranks_ <= exact_limit(op.dtype); }

  void add_movement(Operation& op, int from, int to);
  void add_movement_with_counts(Operation& op, int from, int to);

  void add_message(Operation& op, int from, int to);

  // What must go wrong

  void add_wrong(int rank, int thread);
  /// The collective, but one rank says something else.
  void add_difference(Operation& op, int to);

  void add_blow();

  Recipe recipe_;
  Random random_;
  int ranks_;
  Program program_;
  Round* round_ = nullptr;
  std::size_t step_ = 0;
  std::uint32_t next_id_ = 0;
  std::int64_t made_ = 0;
  std::vector<std::vector<double>> bounds_;  ///< per rank and buffer: magnitude of what it holds
  std::set<std::pair<int, int>> spoilt_;     ///< rank and buffer: stale until the round is over
  /// The same: what transfers of the round name. They may be under way when a later command of the
  /// round fails, and end with an error if it takes their buffer along.
  std::set<std::pair<int, int>> in_transfer_;
  int matrix_ = -1, big_ = -1;  ///< the first buffer of its kind
  std::int64_t big_bytes_ = 0, rows_ = 0, columns_ = 0, per_row_ = 0, slice_rows_ = 0;
  std::int64_t width_ = 0, product_ = 0;  ///< of the second matrix; elements of the product
  DType index_ = DType::i32;              ///< of all of these
  DType narrow_ = DType::f16;             ///< of what attention takes
  std::int64_t filter_ = 1, stride_ = 1, keys_ = 1;  ///< of convolutions and attention

  struct BundleOfRound {
    std::uint32_t number = 0;  ///< 0: there is none
    int group = 0, rank = 0;
    std::set<int> buffers{};  ///< that are named in it
  } bundle_;
  std::uint32_t bundles_ = 0;

  /// The library of one rank that is let fail once in a round; only one thread uses it there.
  struct Fragile {
    std::string_view library;  ///< empty: none
    int rank = 0, thread = 0;
    enum class State { awaited, due, over } state = State::awaited;
  } fragile_;
};

}  // namespace troupe::torture
