#include <cstdio>
#include <vector>

#include <troupe/lib/kernel.hpp>
#include <troupe/troupe.hpp>

// Jacobi's iteration on a square, by rows over all ranks, with a kernel of the program's own. A
// device host may be killed on the way; the result is compared with one computed on the host.

using namespace troupe;

namespace {

constexpr auto kSource = R"(
extern "C" __global__ void jacobi(int rows, int n, const float* in, float* out) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= rows || column >= n) return;
  const int at = row * n + column;
  const bool inner = row > 0 && row < rows - 1 && column > 0 && column < n - 1;
  out[at] = inner ? 0.25f * (in[at - 1] + in[at + 1] + in[at - n] + in[at + n]) : in[at];
}
)";

/// The left and the right edge are 1, all else begins as 0.
std::vector<float> beginning(int rows, int n) {
  std::vector<float> values(static_cast<std::size_t>(rows) * static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < values.size(); i += static_cast<std::size_t>(n))
    values[i] = values[i + static_cast<std::size_t>(n) - 1] = 1.0f;
  return values;
}

/// The same on the host, all rows.
std::vector<float> expected(int rows, int n, std::int64_t steps) {
  auto in = beginning(rows, n), out = in;
  const auto width = static_cast<std::size_t>(n);
  for (std::int64_t step = 0; step < steps; ++step) {
    for (std::size_t row = 1; row + 1 < static_cast<std::size_t>(rows); ++row) {
      for (std::size_t at = row * width + 1; at < row * width + width - 1; ++at)
        out[at] = 0.25f * (in[at - 1] + in[at + 1] + in[at - width] + in[at + width]);
    }
    std::swap(in, out);
  }
  return in;
}

int solve(Runtime& runtime) {
  auto& device = runtime.device();
  auto& world = runtime.world();
  const int n = static_cast<int>(runtime.config().integer("n"));
  const auto steps = runtime.config().integer("steps"),
             kill_at = runtime.config().integer("kill-at");
  const int rank = world.rank(), size = world.size(), inner = n, rows = inner + 2;

  const auto jacobi = device.compile(kSource, {.names = {"jacobi"}}).get().kernel("jacobi");
  auto a = device.alloc<float>(std::int64_t{rows} * n), b = device.alloc<float>(a.length());
  device.upload<float>(beginning(rows, n), a), device.upload<float>(beginning(rows, n), b);
  Checkpoint state(device);
  state.add("a", a), state.add("b", b);
  bool killed = false;
  world.run(state, [&](std::int64_t step) {
    const auto &in = step % 2 == 0 ? a : b, &out = step % 2 == 0 ? b : a;
    const auto row = [&](std::int64_t i) { return in.slice(i * n, n); };
    std::vector<Transfer<float>> sends, receives;
    if (rank > 0)
      sends.push_back({row(1), Rank(rank - 1)}), receives.push_back({row(0), Rank(rank - 1)});
    if (rank + 1 < size)
      sends.push_back({row(inner), Rank(rank + 1)}),
          receives.push_back({row(inner + 1), Rank(rank + 1)});
    if (size > 1) world.exchange<float>(sends, receives);
    device.launch(jacobi,
                  {.grid = {(n + 31) / 32, (rows + 7) / 8}, .block = {32, 8}, .repeatable = true},
                  rows, n, read(in), write(out));
    if (step == kill_at && rank == size - 1 && !std::exchange(killed, true))
      device.inject(memory::FaultKind::kill);
    return step + 1 < steps ? Step::again : Step::done;
  });

  const auto values = device.download(steps % 2 == 0 ? a : b);
  const auto all = expected(inner * size + 2, n, steps);
  const auto first = static_cast<std::size_t>(rank * inner + 1) * static_cast<std::size_t>(n);
  const auto count = static_cast<std::size_t>(inner) * static_cast<std::size_t>(n);
  const bool right =
      std::equal(values.begin() + n, values.begin() + n + static_cast<std::ptrdiff_t>(count),
                 all.begin() + static_cast<std::ptrdiff_t>(first));
  const auto wrong = world.gather_values(right ? 0 : 1);
  const auto recovered = world.recoveries().size();
  if (rank == 0)
    std::printf("%d ranks, %lld steps, %zu faults overcome: %s\n", size,
                static_cast<long long>(steps), recovered,
                wrong == std::vector<int>(wrong.size()) ? "right" : "wrong");
  const bool as_ordered = (kill_at >= 0 && kill_at < steps) == (recovered != 0);
  return wrong == std::vector<int>(wrong.size()) && as_ordered ? kExitSuccess : kExitFailure;
}

}  // namespace

int main(int argc, char** argv) {
  return run_program(
      argc, argv,
      {"stencil",
       "Jacobi's iteration with a kernel of its own.",
       {{"n", OptionType::integer, "128", "N", "columns, and rows of each rank", {}, "2"},
        {"steps", OptionType::integer, "200", "N", "iterations", {}, "1"},
        {"kill-at",
         OptionType::integer,
         "-1",
         "STEP",
         "kill the last rank's device host then; -1: never",
         {},
         "-1"}}},
      solve);
}
