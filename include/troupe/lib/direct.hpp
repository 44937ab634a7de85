#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include <troupe/lib/sparse/matrix.hpp>
#include <troupe/lib/submit.hpp>

/// Systems of linear equations A X = B whose matrix A is sparse, by factors of A: L U, L D L^H, or
/// L L^H where A is positive definite.
///
/// A is in CSR form, zero-based, and has fewer than 2^31 rows; within a row the columns ascend, and
/// none occurs twice. Indices are i32 or i64.
///
/// The device host keeps factors by an id that the rank gives them, those of the kKept ids that
/// were used last. They are lost with it. Each operation therefore has all that factors are made
/// of, and makes what is not there: another pattern is analysed and factorised, other values of the
/// same pattern are factorised, and otherwise the factors are there already. What has been written
/// since counts as other contents. The same matrix gives the same bits, whatever was asked for
/// before, on GPUs of the same model.
namespace troupe::direct {

inline constexpr DTypes kDTypes = DTypes::of({DType::f32, DType::f64, DType::c64, DType::c128});
/// Factors that a device host keeps, of all calls.
inline constexpr std::size_t kKept = 8;

/// What A is. Hermitian matrices of real numbers are symmetric ones.
enum class Kind : std::uint32_t { general, symmetric, hermitian, positive_definite };
/// Which elements of A are stored: all of them, or those of one half with the diagonal. What stands
/// in the other half is ignored.
enum class View : std::uint32_t { full, lower, upper };

/// What the first field of a result cell says; above 0: so many pivots were too small, and
/// replaced.
enum Outcome : std::int64_t {
  ready = 0,
  no_factors = -1,
  not_csr = -2,
  no_memory = -3,
  not_rows = -4,  ///< the list of a Schur complement is none of A's rows
  not_order = -5  ///< the order is no permutation
};

/// What analysing a pattern tells.
struct Analysis {
  std::int64_t outcome = ready;
  std::int64_t factor_nonzeros = -1;  ///< -1: not known before the factors are there (cpu engine)
  std::int64_t device_bytes = 0;      ///< what the factors will take; 0 on the cpu engine
};
/// What factorising tells.
struct Factors {
  std::int64_t outcome = ready;  ///< see Solve
  std::int64_t factor_nonzeros = 0;
  /// How many eigenvalues are positive and negative; -1: not known. Of general matrices they never
  /// are, nor on the cpu engine where L D L^H is not stable without exchanging rows.
  std::int64_t positive = -1, negative = -1;
};

inline constexpr Traits kTraits{.repeatable = true, .blocking = true, .not_prepared = true};

/// Analyses the pattern of A, which is n x n: orders it so that its factors are sparse. With
/// `matching` the cuda engine also exchanges rows by the values, so that large elements stand on
/// the diagonal, or beside it in matrices that are symmetric or Hermitian; other values are then
/// analysed anew. That is for matrices with small or no elements on the diagonal; positive definite
/// ones never need it. The cpu engine exchanges rows in any case.
///
/// With `order` the analysis takes that order instead of looking for one: the i-th row and column
/// to be eliminated is order[i]. The cpu engine checks it, and orders A in its own way.
///
/// Errors, beside those of check(): invalid (A is not a CSR matrix as described above; `order` is
/// no permutation), out_of_memory.
struct Analyse {
  static constexpr std::string_view kName = "direct.analyse";
  static constexpr DTypes kDTypes = direct::kDTypes;
  static constexpr Traits kTraits = direct::kTraits;

  OpDType dtype;
  OpDType index_dtype;
  Kind kind{};
  View view{};
  std::uint32_t matching = 0;
  std::uint32_t reserved = 0;
  std::uint64_t id = 0;
  std::int64_t n = 0, nonzeros = 0;
  Operand row_begin, column, value;
  Operand told;     ///< Analysis
  Operand order{};  ///< of index_dtype; may be absent

  static constexpr std::array kOperands{
      read("row_begin", &Analyse::row_begin), read("column", &Analyse::column),
      read("value", &Analyse::value), write("told", &Analyse::told),
      read("order", &Analyse::order)};
  static constexpr auto kCell = &Analyse::told;
  Result<void> check() const;
  [[nodiscard]] std::vector<IndexRule> index_rules() const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    return &operand == &told ? sizeof(Analysis) : 0;
  }
};

/// Makes the factors of A. Errors: those of Analyse; numeric, see Solve.
struct Factor {
  static constexpr std::string_view kName = "direct.factor";
  static constexpr DTypes kDTypes = direct::kDTypes;
  static constexpr Traits kTraits = direct::kTraits;

  OpDType dtype;
  OpDType index_dtype;
  Kind kind{};
  View view{};
  std::uint32_t matching = 0;
  OnFailure on_failure{};
  std::uint64_t id = 0;
  std::int64_t n = 0, nonzeros = 0;
  Operand row_begin, column, value;
  Operand told;     ///< Factors
  Operand order{};  ///< see Analyse

  static constexpr std::array kOperands{
      read("row_begin", &Factor::row_begin), read("column", &Factor::column),
      read("value", &Factor::value), write("told", &Factor::told), read("order", &Factor::order)};
  static constexpr auto kCell = &Factor::told;
  Result<void> check() const;
  [[nodiscard]] std::vector<IndexRule> index_rules() const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    return &operand == &told ? sizeof(Factors) : 0;
  }
};

/// X = the solution of op(A) X = B, of `nrhs` columns, then improved by so many steps of
/// `refinement`: what is missing, B - op(A) X, is solved for and added (at most kMostRefinement).
/// X and B are column-major and apart from one another.
///
/// Errors: those of Analyse; numeric where A has no factors, or pivots of it were too small and
/// have been replaced, so that the factors are those of another matrix near A. With `report` the
/// value tells of it: the number of pivots replaced, for which X has been computed, and refinement
/// may improve it; or no_factors, and X is all NaN. A singular matrix that rounding hides is not
/// found. On the cpu engine, which exchanges rows, no pivot is replaced.
///
/// A^T of a Hermitian matrix of complex numbers, and A^H of a symmetric one, are refused.
struct Solve {
  static constexpr std::string_view kName = "direct.solve";
  static constexpr DTypes kDTypes = direct::kDTypes;
  static constexpr Traits kTraits = direct::kTraits;
  static constexpr std::uint32_t kMostRefinement = 16;

  OpDType dtype;
  OpDType index_dtype;
  Kind kind{};
  View view{};
  std::uint32_t matching = 0;
  OnFailure on_failure{};
  blas::Transpose transpose{};
  std::uint32_t refinement = 0;
  std::uint64_t id = 0;
  std::int64_t n = 0, nonzeros = 0, nrhs = 0, ldb = 0, ldx = 0;
  Operand row_begin, column, value, b, x;
  Operand told;     ///< std::int64_t, an Outcome
  Operand order{};  ///< see Analyse

  static constexpr std::array kOperands{read("row_begin", &Solve::row_begin),
                                        read("column", &Solve::column),
                                        read("value", &Solve::value),
                                        read("b", &Solve::b),
                                        write("x", &Solve::x),
                                        write("told", &Solve::told),
                                        read("order", &Solve::order)};
  static constexpr auto kCell = &Solve::told;
  Result<void> check() const;
  [[nodiscard]] std::vector<IndexRule> index_rules() const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    if (&operand == &told) return sizeof(std::int64_t);
    const auto columns = ldx == n ? nrhs : std::int64_t{nrhs > 0};
    return static_cast<std::uint64_t>(n * columns) * size_of(dtype);
  }
};

/// The Schur complement of A with respect to the `count` rows and columns that `rows` lists in
/// ascending order. With these last, and the others, which are eliminated, first, A is
///
///     [A11 A12]
///     [A21 A22]   and   S = A22 - A21 (the inverse of A11) A12,
///
/// a dense matrix, column-major, with both halves, whatever is stored of A. Some row is eliminated,
/// unless `count` is 0. Only A11 is factorised, and those factors are what is kept for the id.
///
/// Errors: those of Analyse; invalid (`rows` does not ascend, or names what is no row); numeric as
/// in Solve, of A11. With `report` S is all NaN where A11 has no factors.
///
/// There is no matching: it would exchange rows of A11 for those of A21. Nor is there an order. The
/// cuda engine has it not (unsupported): cuDSS 1.0 gives the factors of S in its place.
struct Schur {
  static constexpr std::string_view kName = "direct.schur";
  static constexpr DTypes kDTypes = direct::kDTypes;
  static constexpr auto kLacking = std::array{Lacking{"cuda", kDTypes}};
  static constexpr Traits kTraits = direct::kTraits;

  OpDType dtype;
  OpDType index_dtype;
  Kind kind{};
  View view{};
  std::uint32_t matching = 0;  ///< 0
  OnFailure on_failure{};
  std::uint64_t id = 0;
  std::int64_t n = 0, nonzeros = 0, count = 0, lds = 0;
  Operand row_begin, column, value;
  Operand rows;  ///< of index_dtype
  Operand s;
  Operand told;  ///< std::int64_t, an Outcome

  static constexpr std::array kOperands{read("row_begin", &Schur::row_begin),
                                        read("column", &Schur::column),
                                        read("value", &Schur::value),
                                        read("rows", &Schur::rows),
                                        write("s", &Schur::s),
                                        write("told", &Schur::told)};
  static constexpr auto kCell = &Schur::told;
  Result<void> check() const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::vector<IndexRule> index_rules() const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    if (&operand == &told) return sizeof(std::int64_t);
    const auto columns = lds == count ? count : std::int64_t{count > 0};
    return static_cast<std::uint64_t>(count * columns) * size_of(dtype);
  }
};

/// Gives back what is kept for an id, if anything is.
struct Release {
  static constexpr std::string_view kName = "direct.release";
  static constexpr DTypes kDTypes = direct::kDTypes;
  static constexpr Traits kTraits = direct::kTraits;

  std::uint64_t id = 0;

  static constexpr std::array<DeclaredOperand<Release>, 0> kOperands{};
  Result<void> check() const { return {}; }
};

/// All of them; whoever includes this header knows them.
using Operations = List<Analyse, Factor, Solve, Release, Schur>;
std::span<const OperationInfo* const> operations() noexcept;
inline const Library kLibrary{operations()};

/// Which factors of a matrix.
struct Options {
  Kind kind = Kind::general;
  View view = View::full;  ///< `full` for general matrices
  bool matching = false;   ///< see Analyse
};
/// How systems are solved with them; see Solve.
struct SolveOptions {
  blas::Transpose transpose = blas::Transpose::no;
  int refinement = 0;  ///< steps
  OnFailure on_failure = OnFailure::error;
};

/// An id that no other factors of this process have.
inline std::uint64_t next_id() noexcept {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

}  // namespace troupe::direct

namespace troupe {

/// The factors of one matrix, and all that they are made of; from `direct::on(device).solver(a)`.
/// A copy means the same factors. The matrix may be written between the calls: see
/// <troupe/lib/direct.hpp>. Errors of its calls: those of the operations there, and of any command.
template <FieldElement T, IndexElement I>
class DirectSolver {
 public:
  DirectSolver(detail::Submitter* submitter, CsrMatrix<T, I> a, const direct::Options& options,
               GpuRef<I> order)
      : submitter_(submitter), a_(std::move(a)), options_(options), order_(std::move(order)) {}

  [[nodiscard]] const CsrMatrix<T, I>& matrix() const noexcept { return a_; }

  /// Analyses the pattern ahead of time: solve() does it where it has not been done.
  Future<direct::Analysis> analyse() const {
    auto op = described<direct::Analyse>();
    return submit<direct::Analysis>(op, {});
  }
  /// Makes the factors ahead of time, and tells of them.
  Future<direct::Factors> factor(OnFailure on_failure = OnFailure::error) const {
    auto op = described<direct::Factor>();
    op.on_failure = on_failure;
    return submit<direct::Factors>(op, {});
  }
  /// X = the solution of op(A) X = B: see direct::Solve, also for the value.
  Future<std::int64_t> solve(const MatrixRef<GpuRef<T>>& b, const MatrixRef<GpuRef<T>>& x,
                             const direct::SolveOptions& options = {}) const {
    auto op = described<direct::Solve>();
    op.on_failure = options.on_failure, op.transpose = options.transpose;
    op.refinement = static_cast<std::uint32_t>(options.refinement);
    op.nrhs = b.columns, op.ldb = b.leading, op.ldx = x.leading;
    op.b = b.buffer.operand(), op.x = x.buffer.operand();
    return submit<std::int64_t>(op, {{"B, in rows,", b.rows, a_.rows},
                                     {"X, in rows,", x.rows, a_.rows},
                                     {"X, in columns,", x.columns, b.columns}});
  }
  Future<std::int64_t> solve(const GpuRef<T>& b, const GpuRef<T>& x,
                             const direct::SolveOptions& options = {}) const {
    return solve(MatrixRef(b, b.length(), 1), MatrixRef(x, x.length(), 1), options);
  }
  /// S = the Schur complement of A with respect to the rows and columns that `rows` lists: see
  /// direct::Schur, also for the value. Its factors are others than those of solve().
  Future<std::int64_t> schur(const GpuRef<I>& rows, const MatrixRef<GpuRef<T>>& s,
                             OnFailure on_failure = OnFailure::error) const {
    auto op = described<direct::Schur>();
    op.id = schur_id_, op.on_failure = on_failure;
    op.count = rows.length(), op.lds = s.leading;
    op.rows = rows.operand(), op.s = s.buffer.operand();
    return submit<std::int64_t>(
        op, {{"S, in rows,", s.rows, rows.length()}, {"S, in columns,", s.columns, rows.length()}});
  }
  /// Gives back the factors. They are made again if they are asked for.
  Future<void> release() const {
    detail::submit(*submitter_, direct::Release{schur_id_});
    return detail::submit(*submitter_, direct::Release{id_});
  }

 private:
  template <Operation Op>
  Op described() const {
    Op op;
    op.dtype = dtype_of<T>, op.index_dtype = dtype_of<I>;
    op.kind = options_.kind, op.view = options_.view, op.matching = options_.matching ? 1 : 0;
    op.id = id_, op.n = a_.rows, op.nonzeros = a_.value.length();
    op.row_begin = a_.row_begin.operand(), op.column = a_.column.operand();
    op.value = a_.value.operand();
    if constexpr (requires { op.order; }) op.order = order_.operand();
    return op;
  }
  template <class Value, Operation Op>
  Future<Value> submit(const Op& op, std::initializer_list<detail::Length> more) const {
    std::vector<detail::Length> lengths{{"A, in columns,", a_.columns, a_.rows},
                                        {"row_begin", a_.row_begin.length(), a_.rows + 1},
                                        {"column", a_.column.length(), a_.value.length()}};
    if (order_) lengths.push_back({"order", order_.length(), a_.rows});
    lengths.insert(lengths.end(), more);
    return detail::submit_with_cell<Value>(*submitter_, op, [&](const Op& whole) {
      return detail::submit_exact(*submitter_, info_of<Op>, std::as_bytes(std::span(&whole, 1)),
                                  lengths, {});
    });
  }

  detail::Submitter* submitter_;
  CsrMatrix<T, I> a_;
  direct::Options options_;
  GpuRef<I> order_;
  std::uint64_t id_ = direct::next_id(), schur_id_ = direct::next_id();
};

/// Direct solvers of one device. From `direct::on(device)`.
class Direct {
 public:
  explicit Direct(detail::Submitter& submitter) : submitter_(&submitter) {}

  /// Submits nothing: the first call of the solver's does. `order`: that in which rows are to be
  /// eliminated, in device memory; see direct::Analyse.
  template <FieldElement T, IndexElement I>
  [[nodiscard]] DirectSolver<T, I> solver(const CsrMatrix<T, I>& a,
                                          const direct::Options& options = {},
                                          const GpuRef<std::type_identity_t<I>>& order = {}) const {
    return {submitter_, a, options, order};
  }

 private:
  detail::Submitter* submitter_;
};

namespace direct {
/// The library's operations on a Device.
template <class D>
Direct on(D&& device) {
  return Direct(device.submitter());
}
}  // namespace direct

}  // namespace troupe
