#include "lib/sparse/sparse_cpu.hpp"

/// Built where there is no LAPACKE.
namespace troupe::host::cpu {
namespace {

Result<void> no_lapacke(std::string_view name) {
  return Error{Errc::unsupported, 0, std::string(name) + ": built without LAPACKE"};
}

}  // namespace

Sparse::Sparse(Services& services) : services_(services) {}

Dependencies Sparse::stands_on() const {
  return {};
}

Result<void> Sparse::run(const sparse::Gtsv& op, const Call&) {
  return no_lapacke(op.kName);
}
Result<void> Sparse::run(const sparse::GtsvStrided& op, const Call&) {
  return no_lapacke(op.kName);
}
Result<void> Sparse::run(const sparse::GtsvInterleaved& op, const Call&) {
  return no_lapacke(op.kName);
}
Result<void> Sparse::run(const sparse::GpsvInterleaved& op, const Call&) {
  return no_lapacke(op.kName);
}

}  // namespace troupe::host::cpu
