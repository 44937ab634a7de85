#include <vector>

#include "lib/blas/common/checks.hpp"

/// The checks of lists of matrices, and of products that say what they are computed in.
namespace troupe::blas {
namespace {

/// One list of a record's tail.
struct List {
  std::string_view name;
  Access access;
  std::int64_t span;  ///< elements that each of its operands must hold
  std::size_t size;   ///< of an element
};

/// The span of a matrix whose extents are in order; 0 if they are not.
std::int64_t span_of_matrix(Checker& checks, std::int64_t rows, std::int64_t columns,
                            std::int64_t leading) {
  checks.require(rows >= 0 && columns >= 0, "a matrix has a negative extent")
      .require(leading >= std::max<std::int64_t>(1, rows),
               "a leading dimension is smaller than the number of rows");
  std::int64_t last = 0;
  if (!checks.ok() || rows == 0 || columns == 0) return 0;
  checks.require(
      !__builtin_mul_overflow(columns - 1, leading, &last) && last <= Checker::kMaxCount - rows,
      "a matrix is too large");
  return checks.ok() ? last + rows : 0;
}
std::int64_t span_of_vector(Checker& checks, std::int64_t n, std::int64_t increment) {
  checks.require(n >= 0, "a length is negative")
      .require(increment != 0 && increment != INT64_MIN, "an increment is zero or too large");
  return checks.ok() ? span_of_matrix(checks, n == 0 ? 0 : 1, n, std::abs(increment)) : 0;
}

/// That the tail holds these lists, each of `batch` operands.
Checker& lists(Checker& checks, const Parts& parts, std::int64_t batch,
               const std::vector<List>& wanted) {
  const auto needed = batch * std::ssize(wanted);
  checks.require(std::ssize(parts.tail) == needed,
                 std::to_string(parts.tail.size()) + " matrices, not " + std::to_string(needed));
  if (!checks.ok()) return checks;
  for (std::size_t i = 0; i < parts.tail.size() && checks.ok(); ++i) {
    const auto which = i / static_cast<std::size_t>(batch);
    const auto& part = parts.tail[i];
    checks.require(part.tag == which, "a matrix is out of order")
        .require(part.access == wanted[which].access, "a matrix with the wrong access");
    if (checks.ok() && wanted[which].span > 0)
      checks.holds(wanted[which].name, part.range, wanted[which].span, wanted[which].size);
  }
  return checks;
}

Checker& batch_in_bounds(Checker& checks, std::int64_t batch) {
  return checks.require(batch >= 0 && batch <= kMaxBatch, "the batch is negative or above 2^31");
}

}  // namespace

Result<void> GemmEx::check() const {
  auto checks = checker(*this);
  if (!checks.ok()) return checks.result();
  if (!combines(dtype, c_dtype, compute)) {
    return Error{Errc::unsupported, 0,
                 std::string(kName) + ": there is no such product of matrices of " +
                     std::string(to_string(dtype))};
  }
  const auto scale = scale_type(dtype, compute);
  scalar(checks, "alpha", alpha, scale);
  scalar(checks, "beta", beta, scale);
  checks.require(known(transpose_a) && known(transpose_b), "unknown transposition");
  const bool plain_a = transpose_a == Transpose::no, plain_b = transpose_b == Transpose::no;
  checks.matrix("a", a, plain_a ? m : k, plain_a ? k : m, lda)
      .matrix("b", b, plain_b ? k : n, plain_b ? n : k, ldb);
  const auto span = span_of_matrix(checks, m, n, ldc);
  if (checks.ok() && span > 0) checks.holds("c", c, span, size_of(c_dtype));
  if (compute == Compute::i32) {
    checks
        .require(lda % 4 == 0 && ldb % 4 == 0,
                 "leading dimensions of integers are multiples of four")
        .require(a.offset % 4 == 0 && b.offset % 4 == 0, "a or b is not aligned to four bytes");
  }
  return checks.result();
}

Result<void> GemvBatched::check() const {
  auto checks = checker(*this);
  if (!checks.ok()) return checks.result();
  const bool narrow = dtype == DType::f16 || dtype == DType::bf16;
  if (y_dtype != dtype && !(narrow && y_dtype == DType::f32)) {
    return Error{
        Errc::unsupported, 0,
        std::string(kName) + ": no results of another type of " + std::string(to_string(dtype))};
  }
  scalar(checks, "alpha", alpha, scalar_type(dtype));
  scalar(checks, "beta", beta, scalar_type(dtype));
  batch_in_bounds(checks, batch)
      .require(known(transpose), "unknown transposition")
      .require(stride_a >= 0 && stride_x >= 0 && stride_y >= 0, "a stride is negative");
  const auto span_a = span_of_matrix(checks, m, n, lda);
  const auto span_x = span_of_vector(checks, length_x(), incx);
  const auto span_y = span_of_vector(checks, length_y(), incy);
  if (!checks.ok() || (!a.present() && !x.present() && !y.present())) return checks.result();
  checks.require(batch <= 1 || stride_y >= span_y, "the vectors of y overlap");
  strided(checks, "a", a, span_a, stride_a, batch);
  strided(checks, "x", x, span_x, stride_x, batch);
  std::int64_t last = 0;
  if (batch > 0 && span_y > 0) {
    checks.require(
        !__builtin_mul_overflow(batch - 1, stride_y, &last) && last <= Checker::kMaxCount - span_y,
        "y is too large");
    if (checks.ok()) checks.holds("y", y, last + span_y, size_of(y_dtype));
  }
  return checks.result();
}

Result<void> GemvBatched::check_parts(const Parts& parts) const {
  auto checks = checker(*this);
  if (parts.tail.empty()) {
    return checks
        .require(batch == 0 || (a.present() && x.present() && y.present()), "a, x or y is missing")
        .result();
  }
  checks.require(!a.present() && !x.present() && !y.present(),
                 "matrices in the tail and elsewhere");
  const auto span_a = span_of_matrix(checks, m, n, lda);
  const auto span_x = span_of_vector(checks, length_x(), incx);
  const auto span_y = span_of_vector(checks, length_y(), incy);
  return lists(checks, parts, batch,
               {{"a", Access::read, span_a, size_of(dtype)},
                {"x", Access::read, span_x, size_of(dtype)},
                {"y", access_of_y(), span_y, size_of(y_dtype)}})
      .result();
}

Result<void> GemmGrouped::check() const {
  return checker(*this)
      .require(groups >= 0 && groups <= static_cast<std::int64_t>(kMaxGroups),
               "too many groups, or fewer than none")
      .result();
}

Result<void> GemmGrouped::check_parts(const Parts& parts) const {
  auto checks = checker(*this);
  const auto count = static_cast<std::size_t>(groups);
  checks.require(parts.data.size() == count * sizeof(GemmGroup),
                 std::to_string(parts.data.size()) + " inline bytes, not those of " +
                     std::to_string(count) + " groups");
  if (!checks.ok()) return checks.result();
  std::int64_t products = 0;
  const std::span shapes(reinterpret_cast<const GemmGroup*>(parts.data.data()), count);
  for (const auto& group : shapes) {
    batch_in_bounds(checks, group.batch)
        .require(known(group.transpose_a) && known(group.transpose_b), "unknown transposition")
        .require(group.k >= 0, "a matrix has a negative extent");
    products += checks.ok() ? group.batch : 0;
  }
  checks.require(
      std::ssize(parts.tail) == 3 * products,
      std::to_string(parts.tail.size()) + " matrices, not " + std::to_string(3 * products));
  if (!checks.ok()) return checks.result();
  std::size_t first = 0;
  for (const auto& group : shapes) {
    const bool plain_a = group.transpose_a == Transpose::no,
               plain_b = group.transpose_b == Transpose::no;
    const auto span_a = span_of_matrix(checks, plain_a ? group.m : group.k,
                                       plain_a ? group.k : group.m, group.lda),
               span_b = span_of_matrix(checks, plain_b ? group.k : group.n,
                                       plain_b ? group.n : group.k, group.ldb),
               span_c = span_of_matrix(checks, group.m, group.n, group.ldc);
    const List of[] = {
        {"a", Access::read, span_a, size_of(dtype)},
        {"b", Access::read, span_b, size_of(dtype)},
        {"c", group.beta == 0 ? Access::write : Access::update, span_c, size_of(dtype)}};
    for (std::size_t list = 0; list < 3; ++list) {
      for (std::int64_t i = 0; i < group.batch && checks.ok(); ++i) {
        const auto& part = parts.tail[list * static_cast<std::size_t>(products) + first +
                                      static_cast<std::size_t>(i)];
        checks.require(part.tag == list, "a matrix is out of order")
            .require(part.access == of[list].access, "a matrix with the wrong access");
        if (checks.ok() && of[list].span > 0)
          checks.holds(of[list].name, part.range, of[list].span, of[list].size);
      }
    }
    first += static_cast<std::size_t>(group.batch);
  }
  return checks.result();
}

Result<void> TrsmBatched::check() const {
  auto checks = checker(*this);
  return batch_in_bounds(checks, batch)
      .require(known(side), "unknown side")
      .require(known(uplo), "unknown uplo")
      .require(known(transpose), "unknown transposition")
      .require(known(diagonal), "unknown kind of diagonal")
      .scalar("alpha", alpha)
      .result();
}

Result<void> TrsmBatched::check_parts(const Parts& parts) const {
  auto checks = checker(*this);
  if (batch == 0 && parts.tail.empty()) return checks.result();
  const auto order = side == Side::left ? m : n;
  const auto span_a = span_of_matrix(checks, order, order, lda),
             span_b = span_of_matrix(checks, m, n, ldb);
  return lists(checks, parts, batch,
               {{"a", Access::read, span_a, size_of(dtype)},
                {"b", Access::update, span_b, size_of(dtype)}})
      .result();
}

Result<void> GetrfBatched::check() const {
  auto checks = checker(*this);
  batch_in_bounds(checks, batch)
      .require(n >= 0, "a matrix has a negative extent")
      .require(std::max(n, lda) <= INT32_MAX, "an extent is above 2^31 - 1");
  if (checks.ok() && pivots.present())
    checks.holds("pivots", pivots, n * batch, sizeof(std::int32_t));
  if (checks.ok()) checks.holds("info", info, batch, sizeof(std::int32_t));
  return checks.result();
}

Result<void> GetrfBatched::check_parts(const Parts& parts) const {
  auto checks = checker(*this);
  if (batch == 0 && parts.tail.empty()) return checks.result();
  const auto span = span_of_matrix(checks, n, n, lda);
  return lists(checks, parts, batch, {{"a", Access::update, span, size_of(dtype)}}).result();
}

Result<void> LapackBatched::check() const {
  auto checks = checker(*this);
  batch_in_bounds(checks, batch)
      .require(task <= Task::gels, "unknown task")
      .require(known(transpose), "unknown transposition")
      .require(task == Task::geqrf || task == Task::gels || m == n, "a matrix is not square")
      .require(task != Task::gels || m >= n, "a matrix has more columns than rows")
      .require(task != Task::matinv || n <= 32, "n is above 32")
      .require(nrhs >= 0 && n >= 0, "a matrix has a negative extent")
      .require(std::max({m, n, nrhs, lda, ldb}) <= INT32_MAX, "an extent is above 2^31 - 1")
      .require(task == Task::getrs || task == Task::getri || !pivots.present(), "it has no pivots")
      .require(tells_info() || !info.present(), "it has no info");
  if (!checks.ok()) return checks.result();
  if (pivots.present()) checks.holds("pivots", pivots, n * batch, sizeof(std::int32_t));
  if (tells_info()) checks.holds("info", info, batch, sizeof(std::int32_t));
  return checks.result();
}

Result<void> LapackBatched::check_parts(const Parts& parts) const {
  auto checks = checker(*this);
  if (batch == 0 && parts.tail.empty()) return checks.result();
  const auto access = list_access();
  const bool inverse = task == Task::getri || task == Task::matinv;
  const auto span_a = span_of_matrix(checks, m, n, lda);
  const auto span_b = task == Task::geqrf ? std::min(m, n)
                                          : span_of_matrix(checks, task == Task::gels ? m : n,
                                                           inverse ? n : nrhs, ldb);
  return lists(checks, parts, batch,
               {{"a", access[0], span_a, size_of(dtype)},
                {task == Task::geqrf ? "tau" : "the second", access[1], span_b, size_of(dtype)}})
      .result();
}

}  // namespace troupe::blas
