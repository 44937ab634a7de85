#pragma once

#include <troupe/lib/submit.hpp>

/// Many tridiagonal systems at once. A batch of systems of order n is four vectors of batch x n
/// elements, system behind system: row i of a system is
///
///     lower[i] x[i - 1] + diagonal[i] x[i] + upper[i] x[i + 1] = b[i]
///
/// where lower[0] and upper[n - 1] of each system are not read.
namespace tridiagonal {

using troupe::Operand;

/// x = the solutions, without pivoting (Thomas' algorithm: Golub and Van Loan, Matrix Computations,
/// 4.3.6). info: 0, or 1 + the first row of the batch whose pivot is zero.
struct Solve {
  static constexpr std::string_view kName = "tridiagonal.solve";
  static constexpr troupe::DTypes kDTypes = troupe::DTypes::reals();
  static constexpr troupe::Traits kTraits = {.repeatable = true};

  troupe::OpDType dtype;
  std::int64_t n = 0, batch = 0;
  Operand lower, diagonal, upper, b, x, info;

  static constexpr std::array kOperands{
      troupe::read("lower", &Solve::lower), troupe::read("diagonal", &Solve::diagonal),
      troupe::read("upper", &Solve::upper), troupe::read("b", &Solve::b),
      troupe::write("x", &Solve::x),        troupe::write("info", &Solve::info)};
  static constexpr auto kInPlace = std::array{troupe::InPlace{"b", "x"}};
  static constexpr auto kCell = &Solve::info;
  troupe::Result<void> check() const;
  troupe::Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    return &operand == &info ? sizeof(std::int32_t)
                             : static_cast<std::uint64_t>(n * batch) * size_of(dtype);
  }
};

/// r = b - A x. Other ranks may ask for it, and it may be part of a recorded sequence.
struct Residual {
  static constexpr std::string_view kName = "tridiagonal.residual";
  static constexpr troupe::DTypes kDTypes = troupe::DTypes::reals();
  static constexpr troupe::Traits kTraits = troupe::kComputesRecorded;

  troupe::OpDType dtype;
  std::int64_t n = 0, batch = 0;
  Operand lower, diagonal, upper, x, b, r;

  static constexpr std::array kOperands{
      troupe::read("lower", &Residual::lower), troupe::read("diagonal", &Residual::diagonal),
      troupe::read("upper", &Residual::upper), troupe::read("x", &Residual::x),
      troupe::read("b", &Residual::b),         troupe::write("r", &Residual::r)};
  static constexpr auto kInPlace = std::array{troupe::InPlace{"b", "r"}};
  troupe::Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return static_cast<std::uint64_t>(n * batch) * size_of(dtype);
  }
};

/// All of them; whoever includes this header knows them.
using Operations = troupe::List<Solve, Residual>;
std::span<const troupe::OperationInfo* const> operations() noexcept;
inline const troupe::Library kLibrary{operations()};

/// The matrices of a batch of systems of order n.
template <class Ref>
struct Matrices {
  Ref lower, diagonal, upper;
  std::int64_t n = 0;
};

/// The calls; from on(). `Refs` of a Device, or of another rank's device.
template <class Refs>
class Calls {
 public:
  template <class T>
  using Ref = typename Refs::template To<T>;

  explicit Calls(troupe::detail::Submitter& submitter) : submitter_(&submitter) {}

  /// x = the solutions for the right sides b; x may be b. The future's value is 0; a pivot that is
  /// zero fails it with Errc::numeric, whose native code is 1 + the row. On the rank's own device.
  template <troupe::RealElement T>
  troupe::Future<std::int32_t> solve(const Matrices<Ref<T>>& a, const Ref<T>& b,
                                     const Ref<T>& x) const {
    auto op = with_matrices<Solve, T>(a);
    op.b = b.operand(), op.x = x.operand();
    return troupe::detail::submit_exact_for_value<std::int32_t>(
        *submitter_, op,
        {{"b", b.length(), a.diagonal.length()}, {"x", x.length(), a.diagonal.length()}});
  }
  /// r = b - A x; r may be b.
  template <troupe::RealElement T>
  troupe::Future<void> residual(const Matrices<Ref<T>>& a, const Ref<T>& x, const Ref<T>& b,
                                const Ref<T>& r) const {
    auto op = with_matrices<Residual, T>(a);
    op.x = x.operand(), op.b = b.operand(), op.r = r.operand();
    return troupe::detail::submit_exact(*submitter_, op,
                                        {{"x", x.length(), a.diagonal.length()},
                                         {"b", b.length(), a.diagonal.length()},
                                         {"r", r.length(), a.diagonal.length()}});
  }

 private:
  template <class Op, class T>
  static Op with_matrices(const Matrices<Ref<T>>& a) {
    Op op;
    op.dtype = troupe::dtype_of<T>;
    op.n = a.n, op.batch = a.n > 0 ? a.diagonal.length() / a.n : 0;
    op.lower = a.lower.operand(), op.diagonal = a.diagonal.operand(), op.upper = a.upper.operand();
    return op;
  }

  troupe::detail::Submitter* submitter_;
};
template <class D>
Calls<troupe::RefsOf<D>> on(D&& device) {
  return Calls<troupe::RefsOf<D>>(device.submitter());
}

}  // namespace tridiagonal
