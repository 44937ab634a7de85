// Conduction of heat in a box, divided among the ranks along all three axes, by an explicit scheme
// whose exact solution is known.
//
//   mpirun -n N troupe-heat [--points 256] [--steps 1000] [--fault kill@500:0] [--json FILE]

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>

#include <troupe/lib/kernel.hpp>
#include <troupe/troupe.hpp>

#include "report.hpp"

namespace troupe::heat {
namespace {

// A rank's points have no margin: `faces` copies its six faces to one buffer, which the neighbours
// get, and `advance` reads theirs from another one. Bit n of `sides`: there is a neighbour at side
// n; beyond other sides it is cold.
constexpr auto kSource = R"(
template <class T>
__global__ void faces(int nx, int ny, int nz, const T* u, T* out) {
  const int across_x = ny * nz, across_y = nx * nz, across_z = nx * ny;
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= 2 * (across_x + across_y + across_z)) return;
  T* const to = out + at;
  int x, y, z;
  if (at < 2 * across_x) {
    x = at < across_x ? 0 : nx - 1;
    at %= across_x;
    y = at % ny;
    z = at / ny;
  } else if ((at -= 2 * across_x) < 2 * across_y) {
    y = at < across_y ? 0 : ny - 1;
    at %= across_y;
    x = at % nx;
    z = at / nx;
  } else {
    at -= 2 * across_y;
    z = at < across_z ? 0 : nz - 1;
    at %= across_z;
    x = at % nx;
    y = at / nx;
  }
  *to = u[x + nx * (y + (long long)ny * z)];
}

template <class T>
__global__ void advance(int nx, int ny, int nz, int sides, T courant, const T* u, const T* others, T* out) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  const int z = blockIdx.z;
  if (x >= nx || y >= ny) return;
  const T* const lower_x = others;
  const T* const upper_x = lower_x + ny * nz;
  const T* const lower_y = upper_x + ny * nz;
  const T* const upper_y = lower_y + nx * nz;
  const T* const lower_z = upper_y + nx * nz;
  const T* const upper_z = lower_z + nx * ny;
  const long long row = nx, plane = row * ny, at = x + row * y + plane * z;
  T sum = 0;
  if (x > 0) sum += u[at - 1]; else if (sides & 1) sum += lower_x[y + ny * z];
  if (x < nx - 1) sum += u[at + 1]; else if (sides & 2) sum += upper_x[y + ny * z];
  if (y > 0) sum += u[at - row]; else if (sides & 4) sum += lower_y[x + nx * z];
  if (y < ny - 1) sum += u[at + row]; else if (sides & 8) sum += upper_y[x + nx * z];
  if (z > 0) sum += u[at - plane]; else if (sides & 16) sum += lower_z[x + nx * y];
  if (z < nz - 1) sum += u[at + plane]; else if (sides & 32) sum += upper_z[x + nx * y];
  out[at] = u[at] + courant * (sum - 6 * u[at]);
}
)";

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
        faults_(runtime, options.faults) {
    const std::string of_type = std::is_same_v<T, float> ? "<float>" : "<double>";
    const auto module =
        device_.compile(kSource, {.names = {"faces" + of_type, "advance" + of_type}}).get();
    faces_ = module.kernel("faces" + of_type);
    advance_ = module.kernel("advance" + of_type);
  }

  /// All steps; fills in the report.
  void run(Report& report) {
    report.domain = make_domain(options_.points, 0, world_.size());
    const auto begin = exact(domain_, options_.courant, 0);
    device_.upload<T>(std::vector<T>(begin.begin(), begin.end()), a_);
    Checkpoint state(device_);
    state.add("temperature", a_);
    state.add_scratch(b_), state.add_scratch(sent_), state.add_scratch(received_);
    const auto runs = options_.steps / options_.together;
    Future<void> last;
    world_.barrier();
    const auto start = std::chrono::steady_clock::now();
    world_.run(state,
               [&](std::int64_t step) {
                 if (step >= runs) return Step::done;  // a saved state was that far
                 faults_.strike(step * options_.together, options_.together);
                 last = advance();
                 return step + 1 < runs ? Step::again : Step::done;
               },
               {.commit_every = options_.commit_every / options_.together});
    if (last.valid()) last.get();
    world_.barrier();
    report.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const auto restarted = world_.restarted_from();
    report.restarted_from = restarted < 0 ? -1 : restarted * options_.together;
    report.steps = std::max(options_.steps, report.restarted_from);  // a saved state was that far
    report.steps_done = report.steps - std::max<std::int64_t>(0, report.restarted_from);
    report.recoveries = world_.recoveries();
    for (auto& one : report.recoveries) {
      if (one.iteration > 0) one.iteration *= options_.together;
      one.repeated_iterations *= options_.together;
    }
    compare(report);
  }

 private:
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

  Future<void> step(const GpuRef<T>& from, const GpuRef<T>& to) {
    constexpr int kThreads = 256;
    const auto nx = static_cast<int>(domain_.points[0]), ny = static_cast<int>(domain_.points[1]),
               nz = static_cast<int>(domain_.points[2]);
    int sides = 0;
    std::vector<Transfer<T>> sends, receives;
    for (int side = 0; side < 6; ++side) {
      const int there = domain_.neighbour(side);
      if (there < 0) continue;
      sides |= 1 << side;
      const auto offset = domain_.face_offset(side), length = domain_.face(side / 2);
      sends.push_back({sent_.slice(offset, length), Rank(there)});
      receives.push_back({received_.slice(offset, length), Rank(there)});
    }
    if (sides != 0) {
      device_.launch(faces_,
                     {.grid = (domain_.faces() + kThreads - 1) / kThreads,
                      .block = kThreads,
                      .repeatable = true},
                     nx, ny, nz, read(from), write(sent_));
      world_.exchange<T>(sends, receives);
    }
    return device_.launch(
        advance_,
        {.grid = {(nx + 31) / 32, (ny + 7) / 8, nz}, .block = {32, 8}, .repeatable = true}, nx, ny,
        nz, sides, static_cast<T>(options_.courant), read(from), read(received_), write(to));
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
  Kernel faces_, advance_;
  Sequence sequence_;
  FaultsOfRank faults_;
};

int run(Runtime& runtime) {
  auto& world = runtime.world();
  const auto options = parse_options(runtime.config()).take();
  world.agree(check_ranks(options.faults, world.size()));
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  Report report;
  report.engine = runtime.device().info().engine;
  report.devices = world.gather_text("rank " + std::to_string(world.rank()) + " on " + host + ": " +
                                     runtime.device().info().name);
  if (options.dtype == DType::f32) {
    Heat<float>(runtime, options).run(report);
  } else {
    Heat<double>(runtime, options).run(report);
  }
  Result<void> written;
  if (world.rank() == 0) {
    std::fputs(to_text(report, options).c_str(), stdout);
    std::fflush(stdout);
    if (!options.json.empty()) written = write_json(report, options);
  }
  world.agree(written);
  return report.right() ? kExitSuccess : kExitFailure;
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
