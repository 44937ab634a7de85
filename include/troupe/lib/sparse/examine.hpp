#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include <troupe/lib/index_rule.hpp>
#include <troupe/lib/sparse/form.hpp>

/// Whether indices in device memory are what operations demand of them.
namespace troupe::sparse {

/// What Examine has found wrong.
enum class Fault : std::int64_t {
  none = 0,
  wrong_begin,    ///< the first offset is not 0
  outer_outside,  ///< a place of `outer` is not below its bound, or it is negative
  descends,       ///< an element of `outer` is below the one before it
  wrong_end,      ///< the last offset is not the bound
  no_multiple,    ///< an offset is no multiple of the step
  inner_outside,
  not_sorted  ///< an element of `inner` is not above the one before it, which is in the same row
};

/// What the result cell of Examine says.
struct Finding {
  Fault fault = Fault::none;
  std::int64_t place = 0;   ///< which element of the array it is, from 0
  std::int64_t value = 0;   ///< what stands there
  std::int64_t before = 0;  ///< in front of it; only for faults of order
};

/// Looks whether an IndexRule holds, whose parts its fields are, and finds the first element of
/// which it does not. Of several faults it finds the one that comes first in Fault, and of these
/// the one at the lowest place: the same in every run, on every engine. Writes nothing else than
/// what it has found, and reads nothing outside of the arrays, whatever stands in them.
///
/// Errors, beside those of check(): invalid (the rule does not hold), unless on_failure is
/// `report`.
struct Examine {
  static constexpr std::string_view kName = "sparse.examine";
  static constexpr DTypes kDTypes = DTypes::of({DType::i32, DType::i64});
  static constexpr Traits kTraits = {.repeatable = true};
  /// Ends with a 0.
  using Name = std::array<char, 16>;

  OpDType dtype;              ///< of the indices
  std::uint32_t demands = 0;  ///< those of IndexRule, added up
  OnFailure on_failure{};
  std::int64_t step = 1;
  std::int64_t outer_length = 0, outer_bound = 0, inner_length = 0, inner_bound = 0;
  Name outer_name{}, inner_name{};
  Operand outer, inner;
  Operand found;  ///< Finding

  static constexpr std::array kOperands{read("outer", &Examine::outer),
                                        read("inner", &Examine::inner),
                                        write("found", &Examine::found)};
  static constexpr auto kCell = &Examine::found;
  Result<void> check() const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  /// Such as "column[17] is 900, outside of [0, 512)"; empty where nothing is wrong.
  [[nodiscard]] std::string describe(const Finding& finding) const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept { return sizeof(Finding); }
};

/// Without its result cell.
Examine examination_of(const IndexRule& rule, OnFailure on_failure);

/// What holds of the indices of every sound matrix; with `sorted`, also that they ascend within
/// each row of csr, coo and bsr, and each column of csc. In coo the rows ascend in any case.
IndexRule rule_of(const Form& form, const Operand& outer, const Operand& inner, bool sorted);

}  // namespace troupe::sparse

namespace troupe {

/// What SparseExamine::examine() looks for beside.
struct ExamineOptions {
  /// The columns within each row ascend, and none occurs twice (CSC: the rows within each column).
  /// Of sliced and blocked ELL the order is not looked at.
  bool sorted = false;
};

/// Whether the indices of a matrix are sound. Errors: invalid, those of any command.
template <class Refs>
class SparseExamine : public detail::Calls {
 public:
  using Calls::Calls;

  /// Fails with `invalid` where an index of the matrix is wrong, and says which: see
  /// sparse::Examine. `a`: a CsrMatrix, CscMatrix, CooMatrix, BsrMatrix, SellMatrix,
  /// BlockedEllMatrix or SparseRef. The values are not looked at.
  ///
  /// Only on this rank's own device.
  template <class Matrix>
  Future<void> examine(const Matrix& a, const ExamineOptions& options = {})
      const requires std::same_as<Refs, LocalRefs> &&
      sparse::MatrixOf<Matrix, Refs, typename sparse::ValuesOf<Matrix>::value_type> {
    const sparse::Form form = sparse::form_of(a);
    const auto lengths = sparse::lengths_of(form, a);
    const auto examination =
        sparse::examination_of(sparse::rule_of(form, sparse::outer_of(a).operand(),
                                               sparse::inner_of(a).operand(), options.sorted),
                               OnFailure::error);
    return detail::submit_exact_for_value<sparse::Finding>(*submitter_, examination,
                                                           {lengths[0], lengths[1], lengths[2]})
        .then([](const sparse::Finding&) {});
  }
};

}  // namespace troupe
