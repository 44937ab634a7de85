#include <string>

#include "lib/sparse/common/checks.hpp"

/// What holds for sparse matrices of all formats, and their products with vectors.
namespace troupe::sparse {
namespace {

std::string_view name_of(Format format) {
  switch (format) {
    case Format::csr: return "CSR";
    case Format::csc: return "CSC";
    case Format::coo: return "coordinate";
    case Format::bsr: return "block CSR";
    case Format::sell: return "sliced ELL";
    default: return "blocked ELL";
  }
}

Checker& extents(Checker& checks, const Form& form) {
  const bool sliced = form.format == Format::sell;
  checks.require(is_index(form.index_dtype), "indices must be i32 or i64")
      .require(form.rows >= 0 && form.columns >= 0 && form.nonzeros >= 0 && form.stored >= 0,
               "a negative extent")
      .require(std::max(form.rows, form.columns) < Checker::kMaxCount &&
                   form.stored <= Checker::kMaxCount,
               "the matrix is too large")
      .require(sliced ? form.nonzeros <= form.stored : form.nonzeros == form.stored,
               "more nonzeros than entries")
      .require((form.rows > 0 || form.stored == 0) && (form.columns > 0 || form.nonzeros == 0),
               "there are entries, but no rows or no columns")
      .require(form.block >= 1, "a block or a slice needs a row")
      .require(form.block == 1 || sliced || form.blocked(), "the format has no blocks")
      .require(form.width == 0 || form.format == Format::blocked_ell, "the format has no width")
      .require(form.order == BlockOrder::row ||
                   (form.order == BlockOrder::column && form.format == Format::bsr),
               "an unknown order, or one of a format without blocks");
  if (!checks.ok()) return checks;
  if (sliced) {
    checks.require(form.stored % form.block == 0,
                   "the last slice is not padded to slice_rows rows");
  } else if (form.blocked()) {
    checks
        .require(form.rows % form.block == 0 && form.columns % form.block == 0,
                 "rows or columns are no multiple of the block's extent")
        .require(form.stored % form.block == 0 && form.stored / form.block % form.block == 0,
                 "the values do not fill their blocks");
  }
  if (form.format == Format::blocked_ell) {
    checks.require(form.width >= 0, "a negative extent")
        .require(form.stored == product_of(form.rows, product_of(form.width, form.block)),
                 "the values are not those of width blocks in each row of blocks");
  }
  if (!checks.ok()) return checks;
  return form.blocked()
             ? within_indices(
                   checks, form.index_dtype,
                   {form.rows / form.block, form.columns / form.block, form.inner_length()})
             : within_indices(checks, form.index_dtype, {form.rows, form.columns, form.stored});
}

}  // namespace

Checker& sparse_matrix(Checker& checks, const Form& form, std::initializer_list<Format> taken,
                       const Operand& outer, const Operand& inner, const Operand& value) {
  checks.require(form.format <= Format::blocked_ell, "unknown format");
  if (std::find(taken.begin(), taken.end(), form.format) == taken.end())
    checks.require(false, "it takes no matrix in " + std::string(name_of(form.format)) + " form");
  if (!checks.ok() || !extents(checks, form).ok()) return checks;
  const auto index_size = size_of(form.index_dtype);
  if (form.format != Format::blocked_ell)
    checks.holds(form.outer_name(), outer, form.outer_length(), index_size);
  return checks.holds(form.inner_name(), inner, form.inner_length(), index_size)
      .holds("value", value, form.stored);
}

Result<void> Spmv::check() const {
  auto checks = checker(*this);
  checks.require(transpose <= blas::Transpose::conjugate, "unknown transposition")
      .scalar("alpha", alpha)
      .scalar("beta", beta);
  sparse_matrix(checks, a, {Format::csr, Format::csc, Format::coo, Format::bsr, Format::sell},
                outer, inner, value);
  if (!checks.ok()) return checks.result();
  return checks.holds("x", x, length_of_x()).holds("y", y, length_of_y()).result();
}

}  // namespace troupe::sparse
