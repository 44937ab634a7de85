#include "lib/blas/cpu.hpp"

/// Built where there is no LAPACKE.
namespace troupe::host::cpu {

namespace {

Result<void> missing(std::string_view name) {
  return Error{Errc::unsupported, 0, std::string(name) + ": built without LAPACKE"};
}

}  // namespace

Result<void> run(const blas::GetrfBatched& op, const Call&, Blas&) {
  return missing(op.kName);
}
Result<void> run(const blas::LapackBatched& op, const Call&, Blas&) {
  return missing(op.kName);
}

TROUPE_HANDLERS(Blas)

}  // namespace troupe::host::cpu
