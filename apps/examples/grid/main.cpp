#include <cstdio>
#include <vector>

#include <troupe/troupe.hpp>

// The product of two matrices on a grid of ranks, by SUMMA: in step k the ranks of one column of
// the grid send a block of A along their rows, those of one row send a block of B along their
// columns, and every rank adds the product of the two to its block of C. Each row and each column
// of the grid is a group. A device host may be killed on the way; the result is compared with one
// computed on the host. (R. van de Geijn and J. Watts, "SUMMA: scalable universal matrix
// multiplication algorithm", 1997)

using namespace troupe;

namespace {

/// Elements of the whole matrices: small integers, so that the product is exact.
double a_at(std::int64_t i, std::int64_t k) {
  return static_cast<double>((i + 2 * k) % 5 - 2);
}
double b_at(std::int64_t k, std::int64_t j) {
  return static_cast<double>((3 * k + j) % 7 - 3);
}

/// A column-major block of n x n elements.
template <class At>
std::vector<double> block(std::int64_t n, const At& at) {
  std::vector<double> values;
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = 0; i < n; ++i) values.push_back(at(i, j));
  }
  return values;
}

/// As many rows as there are columns, or fewer.
int rows_of_grid(int ranks) {
  int rows = 1;
  for (int r = 1; r * r <= ranks; ++r) rows = ranks % r == 0 ? r : rows;
  return rows;
}

int multiply(Runtime& runtime) {
  auto& device = runtime.device();
  auto& world = runtime.world();
  const auto n = runtime.config().integer("n"), steps = runtime.config().integer("steps"),
             kill_at = runtime.config().integer("kill-at");
  const int columns = world.size() / rows_of_grid(world.size());
  auto row = world.split(world.rank() / columns), column = world.split(world.rank() % columns);
  // This rank's place in the grid: its block of C, and which blocks of A and B are its own.
  const std::int64_t i0 = column.rank() * n, j0 = row.rank() * n;

  std::vector<GpuRef<double>> mine_a, mine_b;
  const auto keep = [&](std::vector<GpuRef<double>>& blocks, const std::vector<double>& values) {
    device.upload<double>(values, blocks.emplace_back(device.alloc<double>(n * n))).get();
  };
  for (auto k = std::int64_t{row.rank()}; k < steps; k += row.size())
    keep(mine_a, block(n, [&](auto i, auto j) { return a_at(i0 + i, k * n + j); }));
  for (auto k = std::int64_t{column.rank()}; k < steps; k += column.size())
    keep(mine_b, block(n, [&](auto i, auto j) { return b_at(k * n + i, j0 + j); }));

  auto a = device.alloc<double>(n * n), b = device.alloc<double>(n * n);
  auto c = device.alloc<double>(n * n, "c");
  device.fill(c, 0.0);
  Checkpoint state(device);
  state.add("c", c), state.add_scratch(a), state.add_scratch(b);
  bool killed = false;
  const auto share = [&](std::int64_t k, Collectives& among,
                         const std::vector<GpuRef<double>>& blocks, const GpuRef<double>& panel) {
    const int owner = static_cast<int>(k % among.size());
    if (among.rank() == owner)
      device.copy(blocks[static_cast<std::size_t>(k / among.size())], panel);
    among.broadcast(panel, Rank(owner));
  };
  world.run(state,
            [&](std::int64_t k) {
              share(k, row, mine_a, a);
              share(k, column, mine_b, b);
              device.blas().gemm(a, b, c, {.m = n, .n = n, .k = n}, 1.0, 1.0);
              if (k == kill_at && world.rank() == world.size() - 1 && !std::exchange(killed, true))
                device.inject(memory::FaultKind::kill);
              return k + 1 < steps ? Step::again : Step::done;
            },
            {.commit_every = 8});

  const bool right = device.download(c) == block(n, [&](std::int64_t i, std::int64_t j) {
                       double sum = 0;
                       for (std::int64_t k = 0; k < steps * n; ++k)
                         sum += a_at(i0 + i, k) * b_at(k, j0 + j);
                       return sum;
                     });
  int wrong = 0;
  for (const bool one : world.gather_values(right)) wrong += one ? 0 : 1;
  const auto recovered = world.recoveries().size();
  if (world.rank() == 0)
    std::printf("%d x %d ranks, %lld steps, %zu faults overcome: %s\n", column.size(), row.size(),
                static_cast<long long>(steps), recovered, wrong == 0 ? "right" : "wrong");
  const bool as_ordered = (kill_at >= 0 && kill_at < steps) == (recovered != 0);
  return wrong == 0 && as_ordered ? kExitSuccess : kExitFailure;
}

}  // namespace

int main(int argc, char** argv) {
  return run_program(
      argc, argv,
      {"grid",
       "A product of matrices on a grid of ranks, whose rows and columns are groups.",
       {{"n", OptionType::integer, "64", "N", "rows and columns of each rank's blocks", {}, "1"},
        {"steps", OptionType::integer, "40", "N", "blocks along the inner dimension", {}, "1"},
        {"kill-at",
         OptionType::integer,
         "-1",
         "STEP",
         "kill the last rank's device host then; -1: never",
         {},
         "-1"}}},
      multiply);
}
