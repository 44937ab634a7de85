#include "lib/sparse/cpu.hpp"

/// Built where there is no LAPACKE.
namespace troupe::host::cpu {
namespace {

Result<void> no_lapacke(std::string_view name) {
  return Error{Errc::unsupported, 0, std::string(name) + ": built without LAPACKE"};
}

}  // namespace

Sparse::Sparse(Services& its_services) : services(its_services) {}

Dependencies tridiagonal_dependencies() {
  return {};
}

Result<void> run(const sparse::Gtsv& op, const Call&, Sparse&) {
  return no_lapacke(op.kName);
}
Result<void> run(const sparse::GtsvStrided& op, const Call&, Sparse&) {
  return no_lapacke(op.kName);
}
Result<void> run(const sparse::GtsvInterleaved& op, const Call&, Sparse&) {
  return no_lapacke(op.kName);
}
Result<void> run(const sparse::GpsvInterleaved& op, const Call&, Sparse&) {
  return no_lapacke(op.kName);
}

TROUPE_HANDLERS(Sparse)

}  // namespace troupe::host::cpu
