#include "lib/solver/checks.hpp"

/// Eigenvalues.
namespace troupe::solver {

Result<void> Syevd::check() const {
  auto checks = checker(*this);
  checks.require(uplo <= Uplo::upper, "unknown uplo")
      .require(vectors <= Vectors::yes, "unknown vectors");
  square(failure_known(checks, *this), *this);
  array(checks, "w", w, n, real_type(dtype));
  return tells<std::int32_t>(checks, "info", info).result();
}
Result<void> Syevd::verdict(const std::byte* cell) const {
  return judge(
      *this, cell,
      std::to_string(told_in<std::int32_t>(cell)) + " off-diagonal elements have not converged");
}

}  // namespace troupe::solver
