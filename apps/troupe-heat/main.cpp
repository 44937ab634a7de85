// Conduction of heat in a box, divided among the ranks along all three axes, by an explicit scheme
// whose exact solution is known.
//
//   mpirun -n N troupe-heat [--points 256] [--steps 1000] [--fault kill@500:0] [--json FILE]

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>

#include <troupe/lib/kernel.hpp>
#include <troupe/troupe.hpp>

#include "job_report.hpp"
#include "report.hpp"

namespace troupe::heat {
namespace {

// A rank's points have no margin: `pack` copies a face to where its neighbour gets it from, and
// `shell` reads those of all neighbours from one buffer, in the order of the sides. Bit n of
// `sides`: there is a neighbour at side n; beyond the others it is cold.
constexpr auto kSource = R"(
struct Box { int nx, ny, nz; };
typedef long long Index;
__device__ Index index_of(Box b, int x, int y, int z) { return x + b.nx * (y + (Index)b.ny * z); }

// The point of a face that this thread has; false: there is none.
__device__ bool point_of(Box b, int side, int* x, int* y, int* z, int* at) {
  *at = blockIdx.x * blockDim.x + threadIdx.x;
  const int along = side < 2 ? b.ny : b.nx, across = side < 4 ? b.nz : b.ny, last = side & 1;
  const int i = *at % along, j = *at / along;
  *x = side < 2 ? last * (b.nx - 1) : i;
  *y = side < 2 ? i : side < 4 ? last * (b.ny - 1) : j;
  *z = side < 4 ? j : last * (b.nz - 1);
  return j < across;
}

template <class T>
__global__ void pack(Box b, int side, const T* u, T* out) {
  int x, y, z, at;
  if (point_of(b, side, &x, &y, &z, &at)) out[at] = u[index_of(b, x, y, z)];
}

// All points but those that need a neighbour's.
template <class T>
__global__ void inner(Box b, int sides, T courant, const T* u, T* out) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  const int z = blockIdx.z;
  const bool first[] = {x == 0, y == 0, z == 0};
  const bool last[] = {x == b.nx - 1, y == b.ny - 1, z == b.nz - 1};
  if (x >= b.nx || y >= b.ny) return;
  for (int axis = 0; axis < 3; ++axis)
    if ((first[axis] && sides >> 2 * axis & 1) || (last[axis] && sides >> 2 * axis & 2)) return;
  const Index row = b.nx, plane = row * b.ny, at = index_of(b, x, y, z);
  T sum = 0;
  if (!first[0]) sum += u[at - 1];
  if (!last[0]) sum += u[at + 1];
  if (!first[1]) sum += u[at - row];
  if (!last[1]) sum += u[at + row];
  if (!first[2]) sum += u[at - plane];
  if (!last[2]) sum += u[at + plane];
  out[at] = u[at] + courant * (sum - 6 * u[at]);
}

// The points of a face. Those of an edge belong to two, and get the same value twice.
template <class T>
__global__ void shell(Box b, int sides, int side, T courant, const T* u, const T* others, T* out) {
  int x, y, z, unused;
  if (!point_of(b, side, &x, &y, &z, &unused)) return;
  const int across_x = b.ny * b.nz, across_y = b.nx * b.nz, across_z = b.nx * b.ny;
  const T* const lower_x = others;
  const T* const upper_x = lower_x + across_x;
  const T* const lower_y = upper_x + across_x;
  const T* const upper_y = lower_y + across_y;
  const T* const lower_z = upper_y + across_y;
  const T* const upper_z = lower_z + across_z;
  const Index row = b.nx, plane = row * b.ny, at = index_of(b, x, y, z);
  T sum = 0;
  if (x > 0) sum += u[at - 1]; else if (sides & 1) sum += lower_x[y + b.ny * z];
  if (x < b.nx - 1) sum += u[at + 1]; else if (sides & 2) sum += upper_x[y + b.ny * z];
  if (y > 0) sum += u[at - row]; else if (sides & 4) sum += lower_y[x + b.nx * z];
  if (y < b.ny - 1) sum += u[at + row]; else if (sides & 8) sum += upper_y[x + b.nx * z];
  if (z > 0) sum += u[at - plane]; else if (sides & 16) sum += lower_z[x + b.nx * y];
  if (z < b.nz - 1) sum += u[at + plane]; else if (sides & 32) sum += upper_z[x + b.nx * y];
  out[at] = u[at] + courant * (sum - 6 * u[at]);
}
)";

/// The kernels' Box.
struct Extents {
  int nx, ny, nz;
};

template <Element T>
class Heat {
 public:
  Heat(Runtime& runtime, const Options& options)
      : world_(runtime.world()),
        device_(runtime.device()),
        options_(options),
        domain_(make_domain(options.points, world_.rank(), world_.size())),
        a_(device_.alloc<T>(domain_.count())),
        b_(device_.alloc<T>(domain_.count())),
        sent_(device_.alloc<T>(domain_.faces())),
        received_(device_.alloc<T>(domain_.faces())),
        faults_(runtime, options.faults) {}

  /// All steps; fills in the report.
  void run(Report& report) {
    report.domain = make_domain(options_.points, 0, world_.size());
    const auto exactly = exact(domain_, options_.courant, 0);
    const std::vector<T> begin(exactly.begin(), exactly.end());
    Checkpoint state(device_);
    Future<void> last;
    auto start = std::chrono::steady_clock::now();
    const auto prepare = [&] {
      // A fault in here brings another call, and may have taken the contents.
      for (auto* buffer : {&a_, &b_, &sent_, &received_}) buffer->restore();
      if (shell_.module() == nullptr) compile();
      // Neighbours are connected, and graphs are made, at the first use: that is not timed.
      device_.upload<T>(begin, a_);
      advance().get();
      device_.upload<T>(begin, a_);
      state.add("temperature", a_);
      state.add_scratch(b_), state.add_scratch(sent_), state.add_scratch(received_);
      start = std::chrono::steady_clock::now();
    };
    world_.run(
        state,
        [&](std::int64_t step) {
          if (step >= options_.steps) return Step::done;  // a saved state was that far
          faults_.strike(step, options_.together);
          last = advance();
          return step + options_.together < options_.steps ? Step::again : Step::done;
        },
        {.commit_every = options_.commit_every, .stride = options_.together, .prepare = prepare});
    if (last.valid()) last.get();
    world_.barrier();
    report.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    report.restarted_from = world_.restarted_from();
    report.steps = std::max(options_.steps, report.restarted_from);  // a saved state was that far
    report.steps_done = report.steps - std::max<std::int64_t>(0, report.restarted_from);
    report.recoveries = world_.recoveries();
    report.corruptions = world_.corruptions();
    compare(report);
  }

 private:
  void compile() {
    const std::string of_type = std::is_same_v<T, float> ? "<float>" : "<double>";
    const auto module =
        device_
            .compile(kSource, {.names = {"pack" + of_type, "inner" + of_type, "shell" + of_type}})
            .get();
    pack_ = module.kernel("pack" + of_type);
    inner_ = module.kernel("inner" + of_type);
    shell_ = module.kernel("shell" + of_type);
  }
  /// As many steps as are recorded together: a_ to b_ and back.
  Future<void> advance() {
    const auto all = [&] {
      Future<void> last;
      for (std::int64_t i = 0; i < options_.together; i += 2) {
        step(a_, b_);
        last = step(b_, a_);
      }
      return last;
    };
    if (!options_.record) return all();
    if (!sequence_) sequence_ = device_.record([&] { (void)all(); });
    return sequence_.run();
  }

  /// The faces travel while the points are computed that do not need them.
  Future<void> step(const GpuRef<T>& from, const GpuRef<T>& to) {
    const Extents box{static_cast<int>(domain_.points[0]), static_cast<int>(domain_.points[1]),
                      static_cast<int>(domain_.points[2])};
    const auto courant = static_cast<T>(options_.courant);
    std::vector<int> shared;  // sides with a neighbour
    std::vector<Transfer<T>> sends, receives;
    int sides = 0;
    for (int side = 0; side < 6; ++side) {
      const int there = domain_.neighbour(side);
      if (there < 0) continue;
      shared.push_back(side);
      sides |= 1 << side;
      const auto offset = domain_.face_offset(side), length = domain_.face(side / 2);
      sends.push_back({sent_.slice(offset, length), Rank(there)});
      receives.push_back({received_.slice(offset, length), Rank(there)});
      device_.launch(pack_, on_face(side), box, side, read(from), write(sends.back().data));
    }
    if (sides != 0) world_.exchange<T>(sends, receives);
    auto last = device_.launch(inner_,
                               {.grid = {(box.nx + 31) / 32, (box.ny + 7) / 8, box.nz},
                                .block = {32, 8},
                                .repeatable = true},
                               box, sides, courant, read(from), write(to));
    for (const int side : shared)
      last = device_.launch(shell_, on_face(side), box, sides, side, courant, read(from),
                            read(received_), write(to));
    return last;
  }

  [[nodiscard]] LaunchOptions on_face(int side) const {
    constexpr int kThreads = 256;
    return {.grid = (domain_.face(side / 2) + kThreads - 1) / kThreads,
            .block = kThreads,
            .repeatable = true};
  }

  /// With the scheme's exact solution. A step rounds each of its eight operations by half a unit at
  /// most, and does not enlarge what is off already: the scheme's new value is a mean of old ones.
  void compare(Report& report) {
    const auto values = device_.download(a_);
    const auto right = exact(domain_, options_.courant, report.steps);
    double error = 0;
    for (std::size_t i = 0; i < right.size(); ++i) {
      const double off = std::abs(static_cast<double>(values[i]) - right[i]);
      if (!(off <= error)) error = std::isnan(off) ? HUGE_VAL : off;
    }
    const auto errors = world_.gather_values(error);
    report.largest_error = *std::max_element(errors.begin(), errors.end());
    report.tolerance =
        8 * std::numeric_limits<T>::epsilon() * static_cast<double>(report.steps + 8);
  }

  World& world_;
  Device& device_;
  const Options& options_;
  const Domain domain_;
  GpuRef<T> a_, b_;            ///< before and after a step
  GpuRef<T> sent_, received_;  ///< faces: this rank's, and its neighbours'
  Kernel pack_, inner_, shell_;
  Sequence sequence_;
  FaultsOfRank faults_;
};

int run(Runtime& runtime) {
  auto& world = runtime.world();
  const auto options = parse_options(runtime.config()).take();
  world.agree(check_ranks(options.faults, world.size()));
  app::require_report_file(world, options.json);
  Report report;
  report.engine = runtime.device().info().engine;
  report.devices = app::devices_of(runtime);
  if (options.dtype == DType::f32) {
    Heat<float>(runtime, options).run(report);
  } else {
    Heat<double>(runtime, options).run(report);
  }
  return app::conclude(
      world, report.right(), options.json, [&] { return to_text(report, options); },
      [&] { return to_json(report, options); });
}

}  // namespace
}  // namespace troupe::heat

int main(int argc, char** argv) {
  using namespace troupe;
  const Program program{
      "troupe-heat",
      "Conduction of heat in a box, distributed over the devices of an MPI job along three axes, "
      "with kernels of its own, recorded as a sequence. Ends with 0 if the result is right.",
      heat::option_specs()};
  return run_program(argc, argv, program, heat::run, [](const Config& config) -> Result<void> {
    const auto options = heat::parse_options(config);
    return options.ok() ? Result<void>() : Result<void>(options.error());
  });
}
