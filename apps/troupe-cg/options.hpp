#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/ordered_fault.hpp>
#include <troupe/troupe.hpp>

namespace troupe::cg {

/// What the residual is multiplied by in each iteration: nothing; the inverse of the diagonal; a
/// multigrid cycle, see Multigrid. The numbers stand in saved states.
enum class Preconditioner : std::int64_t { none = 0, jacobi = 1, multigrid = 2 };
/// As the option --precond has it.
std::string_view to_string(Preconditioner preconditioner) noexcept;

/// What troupe-cg was asked to do.
struct Options {
  std::string matrix;  ///< a Matrix Market file; empty: the stencil
  std::array<std::int64_t, 3> stencil{};
  Preconditioner preconditioner = Preconditioner::none;
  DType dtype = DType::f64;
  double tolerance = 1e-8;
  std::int64_t max_iterations = 10000;
  std::int64_t check_every = 10;
  std::int64_t commit_every = 50;
  std::vector<OrderedFault> faults;
  bool history = false;
  bool record = true;   ///< iterations run as recorded sequences
  bool hpcg = false;    ///< a rating run: see rate()
  double seconds = 60;  ///< of its timed sets, at least
  std::string json;
  std::uint64_t seed = 1;
};

/// The command-line options of troupe-cg, without those every troupe program has.
std::vector<OptionSpec> option_specs();
/// Errors: Errc::invalid with one line that names the option.
Result<Options> parse_options(const Config& config);

}  // namespace troupe::cg
