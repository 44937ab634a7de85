#include "load.hpp"

#include <unistd.h>

#include <thread>
#include <utility>

#include "matrix_market.hpp"

namespace troupe::cg {
namespace {

/// Host memory that this rank may take: its share of what is available.
std::int64_t host_memory_limit(const World& world) {
  const auto available =
      static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
  return available / std::max(1, world.local_size());
}

template <class Narrow, class Wide>
Result<AnyProblem> choose(bool wide, Narrow make_narrow, Wide make_wide) {
  if (wide) {
    auto problem = make_wide();
    if (!problem) return problem.error();
    return AnyProblem(std::move(*problem));
  }
  auto problem = make_narrow();
  if (!problem) return problem.error();
  return AnyProblem(std::move(*problem));
}

template <class Read>
Result<AnyProblem> load_rows(const World& world, Read read) {
  auto rows = read();
  if (!rows) return rows.error();
  const RowBlocks blocks{rows->global_rows, world.size()};
  return choose(
      needs_64_bit(*rows), [&] { return partition<std::int32_t>(*rows, blocks, world.rank()); },
      [&] { return partition<std::int64_t>(*rows, blocks, world.rank()); });
}

}  // namespace

int host_threads(const World& world) {
  return std::max(
      1, static_cast<int>(std::thread::hardware_concurrency()) / std::max(1, world.local_size()));
}

StencilOptions stencil_options(const Options& options, const World& world, int ranks) {
  return {.nx = options.stencil[0],
          .ny = options.stencil[1],
          .nz = options.stencil[2],
          .ranks = ranks,
          .threads = host_threads(world),
          .memory_limit_bytes = host_memory_limit(world)};
}

Result<AnyProblem> load(const Options& options, const World& world, int ranks) {
  if (!options.matrix.empty()) {
    return load_rows(
        world, [&] { return read_matrix_market(options.matrix, world.rank(), world.size()); });
  }
  auto stencil = stencil_options(options, world, ranks);
  if (world.size() != ranks) {
    return load_rows(world, [&]() -> Result<LocalRows> {
      const auto size = stencil_size(stencil);
      if (!size) return size.error();
      return stencil_rows(stencil, {size->global_rows, world.size()}, world.rank());
    });
  }
  stencil.rank = world.rank();
  const auto size = stencil_size(stencil);
  if (!size) return size.error();
  return choose(
      size->needs_64_bit(), [&] { return make_stencil_problem<std::int32_t>(stencil); },
      [&] { return make_stencil_problem<std::int64_t>(stencil); });
}

}  // namespace troupe::cg
