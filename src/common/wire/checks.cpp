#include <string>
#include <vector>

#include <troupe/lib/operations.hpp>

// Every operation's check(): its numbers against the lengths of its operands. Both sides of the
// ring call it: the rank for its user's sake, the device host because it trusts nothing that comes
// out of shared memory.

namespace troupe {
namespace {

/// Collects the first thing that is wrong with an operation.
class Checker {
 public:
  Checker(std::string_view op, DType dtype, DTypes allowed) : op_(op), dtype_(dtype) {
    if (!allowed.has(dtype)) {
      fail(Errc::unsupported,
           static_cast<std::size_t>(dtype) < kDTypeCount
               ? "no dtype " + std::string(to_string(dtype))
               : "unknown dtype " + std::to_string(static_cast<unsigned>(dtype)));
    }
  }

  Checker& require(bool holds, std::string_view what) {
    if (!holds) fail(Errc::invalid, std::string(what));
    return *this;
  }

  /// `operand` must hold `count` elements of `size` bytes each.
  Checker& holds(std::string_view name, const Operand& operand, std::int64_t count,
                 std::size_t size) {
    if (count < 0) {
      fail(Errc::invalid, std::string(name) + " has a negative length");
    } else if (!operand.present()) {
      fail(Errc::invalid, std::string(name) + " is missing");
    } else if (static_cast<std::uint64_t>(count) > operand.bytes / size) {
      fail(Errc::invalid, std::string(name) + " needs " + std::to_string(count) +
                              " elements, has " + std::to_string(operand.bytes / size));
    } else if (operand.offset % size != 0) {
      fail(Errc::invalid, std::string(name) + " is not aligned to its element size");
    }
    return *this;
  }
  Checker& holds(std::string_view name, const Operand& operand, std::int64_t count) {
    return ok() ? holds(name, operand, count, size_of(dtype_)) : *this;
  }
  Checker& holds(std::string_view name, const Operand& operand, std::uint64_t count) {
    return require(count <= kMaxCount, "count is too large")
        .holds(name, operand, static_cast<std::int64_t>(count));
  }
  /// `operand` must hold `count` elements for each of one or more ranks.
  Checker& parts(std::string_view name, const Operand& operand, std::uint64_t count) {
    holds(name, operand, count);
    if (!ok() || count == 0) return *this;
    return require(operand.bytes % (count * size_of(dtype_)) == 0,
                   std::string(name) + " must hold count elements for each rank");
  }
  /// A vector of n elements, `increment` apart.
  Checker& vector(std::string_view name, const Operand& operand, std::int64_t n,
                  std::int64_t increment) {
    require(n >= 0 && increment >= 1, "a length is negative or an increment is not positive");
    if (!ok()) return *this;
    std::int64_t last = 0;
    if (n > 0 && (__builtin_mul_overflow(n - 1, increment, &last) || last >= kMaxCount)) {
      return require(false, "a vector is too long");
    }
    return holds(name, operand, n == 0 ? 0 : last + 1);
  }
  /// A column-major matrix of rows x columns.
  Checker& matrix(std::string_view name, const Operand& operand, std::int64_t rows,
                  std::int64_t columns, std::int64_t leading) {
    require(rows >= 0 && columns >= 0, "a matrix has a negative extent");
    require(leading >= std::max<std::int64_t>(1, rows),
            "a leading dimension is smaller than the number of rows");
    if (!ok() || rows == 0 || columns == 0) return *this;
    std::int64_t length = 0;
    if (__builtin_mul_overflow(columns - 1, leading, &length) || length > kMaxCount - rows) {
      return require(false, "a matrix is too large");
    }
    return holds(name, operand, length + rows);
  }
  Checker& scalar(std::string_view name, const Scalar& scalar) {
    return scalar.device.present() ? holds(name, scalar.device, std::int64_t{1}) : *this;
  }

  [[nodiscard]] bool ok() const { return result_.ok(); }
  [[nodiscard]] Result<void> result() const { return result_; }

  static constexpr std::int64_t kMaxCount = std::int64_t{1}
                                            << 48;  ///< keeps all byte counts below 2^52

 private:
  void fail(Errc code, const std::string& what) {
    if (result_.ok()) result_ = Error{code, 0, std::string(op_) + ": " + what};
  }
  std::string_view op_;
  DType dtype_;
  Result<void> result_;
};

template <class Op>
Checker checker(const Op& op) {
  return {Op::kName, op.dtype, Op::kDTypes};
}

bool is_index(DType dtype) {
  return dtype == DType::i32 || dtype == DType::i64;
}

}  // namespace

namespace memory {
Result<void> Fill::check() const {
  return checker(*this).holds("destination", destination, count).result();
}

Result<void> Copy::check() const {
  auto checks = checker(*this);
  if (source.bytes != destination.bytes) {
    checks.require(false, "the source has " + std::to_string(source.bytes) +
                              " bytes, the destination " + std::to_string(destination.bytes));
  }
  return checks.require(source.present() && destination.present(), "an operand is missing")
      .require((source.region & kPinnedRegion) == 0 || (destination.region & kPinnedRegion) == 0,
               "one side must be device memory")
      .result();
}

Result<void> Fence::check() const {
  return checker(*this).require(range.present(), "the range is missing").result();
}

Result<void> Fault::check() const {
  return checker(*this)
      .require(static_cast<std::size_t>(kind) < kFaultKindCount, "unknown fault kind")
      .result();
}
}  // namespace memory

namespace vector {
Result<void> Multiply::check() const {
  return checker(*this).holds("x", x, n).holds("y", y, n).holds("z", z, n).result();
}
Result<void> Divide::check() const {
  return checker(*this).holds("x", x, n).holds("y", y, n).holds("z", z, n).result();
}
Result<void> Axpby::check() const {
  return checker(*this)
      .scalar("alpha", alpha)
      .scalar("beta", beta)
      .holds("x", x, n)
      .holds("y", y, n)
      .result();
}
}  // namespace vector

namespace blas {
Result<void> Axpy::check() const {
  return checker(*this)
      .scalar("alpha", alpha)
      .vector("x", x, n, incx)
      .vector("y", y, n, incy)
      .result();
}
Result<void> Dot::check() const {
  return checker(*this)
      .vector("x", x, n, incx)
      .vector("y", y, n, incy)
      .holds("result", result, std::int64_t{1})
      .result();
}
Result<void> Nrm2::check() const {
  return checker(*this).vector("x", x, n, incx).holds("result", result, std::int64_t{1}).result();
}
Result<void> Scal::check() const {
  return checker(*this).scalar("alpha", alpha).vector("x", x, n, incx).result();
}
Result<void> Copy::check() const {
  return checker(*this).vector("x", x, n, incx).vector("y", y, n, incy).result();
}
Result<void> Gemv::check() const {
  const bool plain = transpose == Transpose::no;
  return checker(*this)
      .require(plain || transpose == Transpose::yes, "unknown transposition")
      .scalar("alpha", alpha)
      .scalar("beta", beta)
      .matrix("a", a, m, n, lda)
      .vector("x", x, plain ? n : m, incx)
      .vector("y", y, plain ? m : n, incy)
      .result();
}
Result<void> Gemm::check() const {
  const bool plain_a = transpose_a == Transpose::no, plain_b = transpose_b == Transpose::no;
  return checker(*this)
      .require(
          (plain_a || transpose_a == Transpose::yes) && (plain_b || transpose_b == Transpose::yes),
          "unknown transposition")
      .scalar("alpha", alpha)
      .scalar("beta", beta)
      .matrix("a", a, plain_a ? m : k, plain_a ? k : m, lda)
      .matrix("b", b, plain_b ? k : n, plain_b ? n : k, ldb)
      .matrix("c", c, m, n, ldc)
      .result();
}
}  // namespace blas

namespace sparse {
namespace {
/// What both forms of a product have in common; `stored` entries are held, padding included.
template <class Op>
Checker product(const Op& op, std::int64_t stored) {
  auto checks = checker(op);
  checks.require(is_index(op.index_dtype), "indices must be i32 or i64")
      .require(op.rows >= 0 && op.columns >= 0 && op.nonzeros >= 0, "a negative extent")
      .require(stored >= op.nonzeros, "more nonzeros than entries");
  if (!checks.ok()) return checks;
  const auto index_size = size_of(op.index_dtype);
  if (index_size == 4) {
    checks.require(stored <= INT32_MAX && op.rows <= INT32_MAX && op.columns <= INT32_MAX,
                   "the matrix is too large for 32-bit indices");
  }
  return checks.scalar("alpha", op.alpha)
      .scalar("beta", op.beta)
      .require(op.rows < Checker::kMaxCount, "too many rows")
      .holds("column", op.column, stored, index_size)
      .holds("value", op.value, stored)
      .holds("x", op.x, op.columns)
      .holds("y", op.y, op.rows);
}
}  // namespace
Result<void> Spmv::check() const {
  auto checks = product(*this, nonzeros);
  if (!checks.ok()) return checks.result();
  return checks.holds("row_begin", row_begin, rows + 1, size_of(index_dtype)).result();
}
Result<void> SpmvSell::check() const {
  auto checks = product(*this, stored);
  checks.require(slice_rows >= 1, "a slice needs a row");
  if (!checks.ok()) return checks.result();
  const auto slices = rows / slice_rows + (rows % slice_rows != 0 ? 1 : 0);
  return checks.require(stored % slice_rows == 0, "the last slice is not padded to slice_rows rows")
      .require(slices > 0 || stored == 0, "there are entries, but no rows")
      .holds("slice_begin", slice_begin, slices + 1, size_of(index_dtype))
      .result();
}
Result<void> Gather::check() const {
  auto checks = checker(*this);
  checks.require(is_index(index_dtype), "indices must be i32 or i64");
  if (!checks.ok()) return checks.result();
  return checks.holds("index", index, count, size_of(index_dtype))
      .holds("source", source, source_length)
      .holds("destination", destination, count)
      .result();
}
}  // namespace sparse

namespace rng {
namespace {
template <class Op>
Checker random(const Op& op) {
  auto checks = checker(op);
  checks.require(op.subsequence < (std::uint64_t{1} << 24), "subsequence must be below 2^24")
      .require(op.offset < kSubsequenceStride, "offset must be below 2^40")
      .holds("destination", op.destination, op.n);
  return checks;
}
}  // namespace
Result<void> Uniform::check() const {
  return random(*this).result();
}
Result<void> Normal::check() const {
  return random(*this)
      .require(n % 2 == 0 && offset % 2 == 0, "length and offset must be even")
      .result();
}
}  // namespace rng

namespace collective {
namespace {
constexpr std::uint32_t kMaxRanks = 1u << 24;
bool known(ReduceOp op) {
  return static_cast<std::size_t>(op) < kReduceOpCount;
}

Result<void> check_rank(const char* what, std::uint32_t rank, int size) {
  if (rank < static_cast<std::uint32_t>(size)) return {};
  return Error{Errc::invalid, 0,
               std::string("no such ") + what + ": rank " + std::to_string(rank) + " of " +
                   std::to_string(size)};
}

/// `operand` holds `count` elements for each of `ranks`.
Result<void> check_room(const char* name, const Operand& operand, DType dtype, std::uint64_t count,
                        int ranks) {
  std::uint64_t bytes = 0;
  const bool overflows =
      __builtin_mul_overflow(count, size_of(dtype) * static_cast<std::size_t>(ranks), &bytes);
  if (operand.present() && !overflows && bytes <= operand.bytes) return {};
  return Error{Errc::invalid, 0,
               std::string(name) + " needs " + std::to_string(count) + " elements for each of " +
                   std::to_string(ranks) + " ranks, has " + std::to_string(operand.bytes) +
                   " bytes"};
}

/// In place `part` is this rank's of the parts that `whole` holds.
Result<void> check_part(const Operand& part, const Operand& whole, DType dtype, std::uint64_t count,
                        int rank) {
  const auto own = whole.offset + static_cast<std::uint64_t>(rank) * count * size_of(dtype);
  if (!detail::overlap(part, whole) || part.offset == own) return {};
  return Error{Errc::invalid, 0,
               "source and destination overlap, and the shorter is not the part of rank " +
                   std::to_string(rank) + " of the longer"};
}
}  // namespace
Result<void> AllReduce::check() const {
  return checker(*this)
      .require(known(op), "unknown reduction")
      .holds("source", source, count)
      .holds("destination", destination, count)
      .result();
}
Result<void> Reduce::check() const {
  auto checks = checker(*this);
  checks.require(known(op), "unknown reduction").require(root < kMaxRanks, "root out of range");
  checks.holds("source", source, count);
  return (destination.present() ? checks.holds("destination", destination, count) : checks)
      .result();
}
Result<void> Broadcast::check() const {
  return checker(*this)
      .require(root < kMaxRanks, "root out of range")
      .holds("data", data, count)
      .result();
}
Result<void> AllGather::check() const {
  return checker(*this)
      .holds("source", source, count)
      .parts("destination", destination, count)
      .result();
}
Result<void> ReduceScatter::check() const {
  return checker(*this)
      .require(known(op), "unknown reduction")
      .holds("destination", destination, count)
      .parts("source", source, count)
      .result();
}
Result<void> AllToAll::check() const {
  return checker(*this)
      .parts("source", source, count)
      .parts("destination", destination, count)
      .require(source.bytes == destination.bytes, "source and destination differ in length")
      .result();
}

// Against the world: a record that was corrupted must not lead out of its operands.

Result<void> AllReduce::check_world(int, int) const {
  return {};
}
Result<void> Reduce::check_world(int rank, int size) const {
  if (auto exists = check_rank("root", root, size); !exists) return exists;
  if (root != static_cast<std::uint32_t>(rank)) return {};
  return check_room("the root's destination", destination, dtype, count, 1);
}
Result<void> Broadcast::check_world(int, int size) const {
  return check_rank("root", root, size);
}
Result<void> AllGather::check_world(int rank, int size) const {
  auto room = check_room("destination", destination, dtype, count, size);
  return room.ok() ? check_part(source, destination, dtype, count, rank) : room;
}
Result<void> ReduceScatter::check_world(int rank, int size) const {
  auto room = check_room("source", source, dtype, count, size);
  return room.ok() ? check_part(destination, source, dtype, count, rank) : room;
}
Result<void> AllToAll::check_world(int, int size) const {
  if (auto room = check_room("source", source, dtype, count, size); !room) return room;
  return check_room("destination", destination, dtype, count, size);
}
Result<void> check_world(std::span<const TailOperand> messages, int rank, int size) {
  std::vector<std::uint64_t> sent, received;
  for (const auto& part : messages) {
    if (auto exists = check_rank("peer", part.tag, size); !exists) return exists;
    if (part.tag != static_cast<std::uint32_t>(rank)) continue;
    (part.written() ? received : sent).push_back(part.range.bytes);
  }
  if (sent == received) return {};
  return Error{Errc::invalid, 0, "an exchange whose messages to its own rank do not match"};
}
}  // namespace collective

}  // namespace troupe
