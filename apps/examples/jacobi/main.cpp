#include <cmath>
#include <cstdio>
#include <vector>

#include <troupe/lib/kernel.hpp>
#include <troupe/troupe.hpp>

// The problem of NVIDIA's multi-gpu-programming-models: Jacobi's iteration for Laplace's equation,
// periodic from top to bottom, by rows over all ranks, until the norm of a step is small enough. A
// device host may be killed on the way. The result is compared with that of one device alone.

using namespace troupe;

namespace {

constexpr auto kSource = R"(
extern "C" __global__ void edges(int first, int rows, int ny, int nx, float* a, float* b) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const float value = sin(2 * 3.14159265358979323846 * (first + row) / (ny - 1));
  a[row * nx] = a[row * nx + nx - 1] = b[row * nx] = b[row * nx + nx - 1] = value;
}

template <bool wants_norm>
__global__ void sweep(int rows, int nx, const float* in, float* out, float* squares) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  float change = 0;
  if (row > 0 && row <= rows && column > 0 && column < nx - 1) {
    const int at = row * nx + column;
    out[at] = 0.25f * (in[at - 1] + in[at + 1] + in[at - nx] + in[at + nx]);
    change = out[at] - in[at];
  }
  if (!wants_norm) return;
  __shared__ float part[256];
  const int own = threadIdx.y * blockDim.x + threadIdx.x;
  part[own] = change * change;
  for (int half = 128; half > 0; half /= 2) {
    __syncthreads();
    if (own < half) part[own] += part[own + half];
  }
  if (own == 0) atomicAdd(squares, part[0]);
}
)";

/// Some rows of the grid, and one more above and below them.
struct Part {
  int first, rows;  ///< of the grid's inner rows
  GpuRef<float> a, b, squares;
  const GpuRef<float>& before(std::int64_t step) const { return step % 2 == 0 ? a : b; }
  const GpuRef<float>& after(std::int64_t step) const { return step % 2 == 0 ? b : a; }
};

class Solver {
 public:
  Solver(Runtime& runtime, int nx, int ny)
      : device_(runtime.device()), world_(runtime.world()), nx_(nx), ny_(ny) {
    const auto module =
        device_.compile(kSource, {.names = {"edges", "sweep<false>", "sweep<true>"}}).get();
    edges_ = module.kernel("edges");
    sweep_ = module.kernel("sweep<false>"), sweep_with_norm_ = module.kernel("sweep<true>");
  }

  /// What rank `rank` of `size` has.
  Part make(int rank, int size) {
    const int first = (ny_ - 2) * rank / size, rows = (ny_ - 2) * (rank + 1) / size - first;
    const auto length = std::int64_t{rows + 2} * nx_;
    Part part{first, rows, device_.alloc<float>(length), device_.alloc<float>(length),
              device_.alloc<float>(1)};
    device_.fill(part.a, 0.0f), device_.fill(part.b, 0.0f);
    device_.launch(edges_, {.grid = rows / 128 + 1, .block = 128}, first, rows + 2, ny_, nx_,
                   update(part.a), update(part.b));
    return part;
  }

  void step(const Part& part, std::int64_t step, bool wants_norm) {
    if (wants_norm) device_.fill(part.squares, 0.0f);
    device_.launch(wants_norm ? sweep_with_norm_ : sweep_,
                   {.grid = {(nx_ + 31) / 32, (part.rows + 8) / 8}, .block = {32, 8}}, part.rows,
                   nx_, read(part.before(step)), update(part.after(step)), update(part.squares));
  }
  /// The rows above and below, from the ranks that have them.
  void exchange(const Part& part, std::int64_t step) {
    const auto row = [&](int i) { return part.after(step).slice(std::int64_t{i} * nx_, nx_); };
    const int rank = world_.rank(), size = world_.size();
    const Rank above((rank + size - 1) % size), below((rank + 1) % size);
    const Transfer<float> sends[] = {{row(1), above}, {row(part.rows), below}},
                          receives[] = {{row(part.rows + 1), below}, {row(0), above}};
    size == 1 ? wrap(part, step) : (void)world_.exchange<float>(sends, receives);
  }
  /// The same of a part that is the whole.
  void wrap(const Part& part, std::int64_t step) {
    const auto row = [&](int i) { return part.after(step).slice(std::int64_t{i} * nx_, nx_); };
    device_.copy(row(part.rows), row(0)), device_.copy(row(1), row(part.rows + 1));
  }
  /// The norm over all ranks, of a step that was asked for it.
  double norm(const Part& part) {
    world_.all_reduce(part.squares, ReduceOp::sum);
    return std::sqrt(device_.download(part.squares)[0]);
  }

 private:
  Device& device_;
  World& world_;
  int nx_, ny_;
  Kernel edges_, sweep_, sweep_with_norm_;
};

int solve(Runtime& runtime) {
  auto& device = runtime.device();
  auto& world = runtime.world();
  const auto& config = runtime.config();
  const int nx = static_cast<int>(config.integer("nx")),
            ny = static_cast<int>(config.integer("ny"));
  const auto most = config.integer("niter"), check = config.integer("nccheck"),
             kill_at = config.integer("kill-at");
  Solver solver(runtime, nx, ny);
  auto part = solver.make(world.rank(), world.size());
  Checkpoint state(device);
  state.add("a", part.a), state.add("b", part.b), state.add_scratch(part.squares);
  std::int64_t taken = 0;
  bool killed = false;
  world.run(state, [&](std::int64_t step) {
    const bool wants_norm = step % check == 0;
    solver.step(part, step, wants_norm);
    solver.exchange(part, step);
    if (step == kill_at && world.rank() == world.size() - 1 && !std::exchange(killed, true))
      device.inject(memory::FaultKind::kill);
    taken = step + 1;
    const double norm = wants_norm ? solver.norm(part) : 1;
    if (wants_norm && world.rank() == 0 && step % 100 == 0)
      std::printf("%5lld, %f\n", static_cast<long long>(step), norm);
    return taken == most || norm <= 1e-8 ? Step::done : Step::again;
  });

  const auto whole = solver.make(0, 1);
  for (std::int64_t step = 0; step < taken; ++step)
    solver.step(whole, step, false), solver.wrap(whole, step);
  const auto rows = [&](const Part& of, int first) {
    return device.download(
        of.before(taken).slice(std::int64_t{first} * nx, std::int64_t{part.rows} * nx));
  };
  const bool right = rows(part, 1) == rows(whole, part.first + 1);
  const auto all = world.gather_values(right ? 1 : 0);
  const bool all_right = all == std::vector<int>(all.size(), 1);
  const auto recovered = world.recoveries().size();
  if (world.rank() == 0)
    std::printf("%d ranks, %d x %d, %lld iterations, %zu faults overcome: %s\n", world.size(), ny,
                nx, static_cast<long long>(taken), recovered, all_right ? "right" : "wrong");
  const bool as_ordered = (kill_at >= 0 && kill_at < taken) == (recovered != 0);
  return all_right && as_ordered ? kExitSuccess : kExitFailure;
}

}  // namespace

int main(int argc, char** argv) {
  return run_program(
      argc, argv,
      {"jacobi",
       "Jacobi's iteration, as in NVIDIA's multi-gpu-programming-models.",
       {{"nx", OptionType::integer, "16384", "N", "columns", {}, "3", "65536"},
        {"ny", OptionType::integer, "16384", "N", "rows", {}, "3", "65536"},
        {"niter", OptionType::integer, "1000", "N", "iterations at most", {}, "1"},
        {"nccheck", OptionType::integer, "1", "N", "iterations from norm to norm", {}, "1"},
        {"kill-at",
         OptionType::integer,
         "-1",
         "ITERATION",
         "kill the last rank's device host then; -1: never",
         {},
         "-1"}}},
      solve);
}
