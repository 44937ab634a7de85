#pragma once

#include <complex>
#include <memory>

#include <troupe/lib/sparse.hpp>

#include "device_host/engine/cpu/library.hpp"
#include "lib/sparse/common/team_cpu.hpp"
#include "lib/sparse/looks/checked_product.hpp"

namespace troupe::host::cpu {

/// Calls visit(I{}) for i32 or i64; other dtypes are unsupported.
template <class Visit>
Result<void> with_index(DType dtype, Visit&& visit) {
  if (dtype == DType::i32) return visit(std::int32_t{});
  if (dtype == DType::i64) return visit(std::int64_t{});
  return Error{Errc::unsupported, 0, "indices are i32 or i64"};
}

/// The method that solves tridiagonal systems.
Dependencies tridiagonal_dependencies();

class Sparse;
/// True if a product is to be looked at.
bool is_looked_at(const OperationInfo& info, const std::byte* op, const Call& call,
                  Sparse& library);
/// Carries a product out, and looks at it if it is to be.
Result<void> run_or_look(const sparse::Spmv& op, const Call& call, Sparse& library);
Result<void> run_or_look(const sparse::Spmm& op, const Call& call, Sparse& library);

class Sparse final : public LibraryHalfOf<Sparse, sparse::Operations> {
 public:
  explicit Sparse(Services& its_services);
  [[nodiscard]] Dependencies stands_on() const override { return tridiagonal_dependencies(); }
  /// A product that is looked at does.
  [[nodiscard]] bool blocks(const OperationInfo& info, const std::byte* op,
                            const Call& call) override {
    return is_looked_at(info, op, call, *this);
  }

  // For its operations.

  template <ProductThatIsLookedAt Op>
  Result<void> run(const Op& op, const Call& call) {
    return run_or_look(op, call, *this);
  }

  Services& services;
  ProductLooks looks{services.product_checks()};
  const std::shared_ptr<Team> team = std::make_shared<Team>(services.threads());
};

}  // namespace troupe::host::cpu
