#pragma once

#include <cstdint>

#include <troupe/lib/kernel.hpp>
#include <troupe/troupe.hpp>

namespace troupe::cg {

/// Points of a box that are neighbours have different colours of so many.
inline constexpr int kColours = 8;

/// The rows of one colour, as kernels take them by value. They are consecutive, in slices of
/// kSliceRows; in a slice entry k of row i is element kSliceRows k + i, and all rows of a colour
/// have the same number of entries: first those of lower colours, then those of the last colour,
/// which are the points of the coarser grid, then those of the other higher ones. Entry k of all
/// rows of a slice is of one colour. Missing entries are 0. The diagonal is not among them.
struct RowsOfColour {
  std::int32_t first = 0, end = 0;                ///< rows
  std::int32_t foreign = 0;                       ///< rows of the colours before that have a halo
  std::int32_t lower = 0, coarse = 0, upper = 0;  ///< entries of a row
  std::int64_t entries = 0;                       ///< where the first slice begins

  [[nodiscard]] std::int64_t rows() const { return end - first; }
  [[nodiscard]] std::int64_t width() const { return std::int64_t{lower} + coarse + upper; }
};
struct ColouredRows {
  RowsOfColour of[kColours];
};
/// For the rows of each colour where among their entries those of each other colour begin, and how
/// many these are: element kColours row colour + column colour.
struct ColourSections {
  std::int32_t begin[kColours * kColours] = {}, width[kColours * kColours] = {};
};

/// The kernels of a rating; hpcg_kernels.cpp and hpcg_making_kernels.cpp say what each computes.
class HpcgKernels {
 public:
  /// `index_bytes`: of the reference's indices. Waits for the compiler. Throws Exception.
  HpcgKernels(Device& device, std::size_t index_bytes);

  // The problem.
  Kernel make_rows, make_entries, make_foreign, fine_rows;
  // Its rows in the order of colours.
  Kernel count_rows, number_rows, measure, fill_own, find_bases, list_boundary, fill_foreign;
  Kernel renumber, match_coarse, permute, exaggerate, randomise;
  /// The kernels of products and cycles that read the matrix. There is a set for each way in which
  /// it stores columns: see ColouredGrid.
  struct OfMatrix {
    Kernel fill_offsets, multiply, forward, backward, restrict_residual, forward_again,
        backward_again;
  };
  OfMatrix narrow, wide;
  // The others, and updates of vectors.
  Kernel lift, gather, gather_lifted, foreign_sums, add_foreign, less_foreign, correct_first;
  Kernel direction, update;

  static constexpr std::int64_t kThreads = 256;  ///< of a block
  /// How a kernel is launched that has a thread for each of n elements, and that computes the same
  /// from the same arguments.
  [[nodiscard]] static LaunchOptions each(std::int64_t n) { return threads(n, true); }
  /// How one is that changes what it reads.
  [[nodiscard]] static LaunchOptions each_once(std::int64_t n) { return threads(n, false); }

 private:
  static LaunchOptions threads(std::int64_t n, bool repeatable);
};

/// The source of those that make a problem and its coloured form.
extern const char* const kHpcgMakingKernels;

}  // namespace troupe::cg
