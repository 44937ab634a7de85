#pragma once

#include <troupe/lib/sparse/form.hpp>

/// CSR matrices in blocked ELL form.
namespace troupe::sparse {

/// The CSR matrix of rows x columns, which are multiples of `block`, in blocked ELL form: see
/// BlockedEllMatrix. Every row of blocks gets `capacity` of them: one wherever the matrix has an
/// element there, their block columns ascending, then padding, with zeros. The columns within a row
/// of the matrix may stand in any order, and a place that occurs more than once has the sum of its
/// elements. The cpu engine leaves out
/// elements that are outside of the matrix; the cuda engine does not look: there the device may be
/// lost.
///
/// `width` tells how many blocks the row that has most of them has. ell_column and ell_value are
/// written if the capacity is at least that. Otherwise they stay as they are, and the command fails
/// unless on_failure is `report`. With a capacity of 0 these two and `value` may be absent: the
/// operation only counts then.
///
/// Errors, beside those of check(): invalid (the width is above the capacity).
struct Csr2BlockedEll {
  static constexpr std::string_view kName = "sparse.csr2blocked_ell";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = {.repeatable = true};

  OpDType dtype;
  OpDType index_dtype;
  OnFailure on_failure{};
  std::uint32_t reserved = 0;
  std::int64_t rows = 0, columns = 0, nonzeros = 0, block = 1;
  std::int64_t capacity = 0;  ///< in blocks of a row of them
  Operand row_begin, column, value, ell_column, ell_value;
  Operand width;  ///< std::int64_t

  static constexpr std::array kOperands{read("row_begin", &Csr2BlockedEll::row_begin),
                                        read("column", &Csr2BlockedEll::column),
                                        read("value", &Csr2BlockedEll::value),
                                        write("ell_column", &Csr2BlockedEll::ell_column),
                                        write("ell_value", &Csr2BlockedEll::ell_value),
                                        write("width", &Csr2BlockedEll::width)};
  static constexpr auto kCell = &Csr2BlockedEll::width;
  Result<void> check() const;
  [[nodiscard]] std::vector<IndexRule> index_rules() const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    return &operand == &width ? sizeof(std::int64_t) : 0;
  }
};

}  // namespace troupe::sparse

namespace troupe {

/// CSR matrices in blocked ELL form. What is written overlaps no argument. Errors: invalid, those
/// of any command.
template <class Refs>
class SparseBlockedEll : public detail::Calls {
 public:
  template <Element T>
  using Ref = typename Refs::template To<T>;
  using Calls::Calls;

  /// b = a in the buffers of `b`, with b.width blocks of b.block x b.block in each row of blocks:
  /// see sparse::Csr2BlockedEll. The future's value is the width that a needs. A caller who does
  /// not know it guesses, passes `report`, and comes again with a wider b where the value is above
  /// b.width. With a width of 0, b.column and b.value may be null references, to count first.
  ///
  /// Only on this rank's own device.
  template <FieldElement T, IndexElement I>
  Future<std::int64_t> csr2blocked_ell(
      const BasicCsrMatrix<Ref<T>, Ref<I>>& a, const BasicBlockedEllMatrix<Ref<T>, Ref<I>>& b,
      OnFailure on_failure = OnFailure::error) const requires std::same_as<Refs, LocalRefs> {
    sparse::Csr2BlockedEll op;
    op.dtype = dtype_of<T>, op.index_dtype = dtype_of<I>,
    op.on_failure = sparse::when_counting(!b.value, on_failure);
    op.rows = a.rows, op.columns = a.columns, op.nonzeros = a.column.length();
    op.block = b.block, op.capacity = b.width;
    op.row_begin = a.row_begin.operand(), op.column = a.column.operand();
    op.value = a.value.operand();
    op.ell_column = b.column.operand(), op.ell_value = b.value.operand();
    return detail::submit_exact_for_value<std::int64_t>(
        *submitter_, op,
        {{"b, in rows,", b.rows, a.rows},
         {"b, in columns,", b.columns, a.columns},
         {"a.row_begin", a.row_begin.length(), a.rows + 1},
         {"a.value", a.value.length(), a.column.length()}});
  }
};

}  // namespace troupe
