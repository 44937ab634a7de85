#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include <troupe/troupe.hpp>

#include "tridiagonal.hpp"

// Heat in many rods, by implicit steps: each is one call of a library from outside troupe's tree. A
// device host may be killed and a call may fail on the way; the result is compared with one that
// the host has computed.

using namespace troupe;

namespace {

using Values = std::vector<double>;

/// Rods whose matrices differ, one behind the other.
struct Rods {
  std::int64_t n;
  Values lower, diagonal, upper, heat;

  Rods(std::int64_t rows, std::int64_t batch, int rank) : n(rows) {
    for (std::int64_t i = 0; i < rows * batch; ++i) {
      const double conducts = 1.0 + static_cast<double>(i / rows) / 8.0 + rank;
      lower.push_back(-conducts), upper.push_back(-conducts);
      diagonal.push_back(1.0 + 2.0 * conducts);
      heat.push_back(i % rows == rows / 2 ? 1000.0 : 1.0);
    }
  }
  /// One step on the host.
  void step() {
    Values ratio(static_cast<std::size_t>(n));
    for (std::size_t first = 0; first < heat.size(); first += ratio.size()) {
      double last_ratio = 0, last = 0;
      for (std::size_t i = 0; i < ratio.size(); ++i) {
        const auto at = first + i;
        const double below = i == 0 ? 0 : lower[at], pivot = diagonal[at] - below * last_ratio;
        ratio[i] = last_ratio = upper[at] / pivot;
        heat[at] = last = (heat[at] - below * last) / pivot;
      }
      for (std::size_t i = ratio.size() - 1; i-- > 0;)
        heat[first + i] -= ratio[i] * heat[first + i + 1];
    }
  }
};

bool close(const Values& a, const Values& b, double tolerance) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](double x, double y) {
    return std::abs(x - y) <= tolerance * std::max(1.0, std::abs(y));
  });
}

/// What another rank needs to ask this one's device for the residual.
struct Tokens {
  GpuToken lower, diagonal, upper, x, b, r;
};

/// One of the ranks: its rods on its device.
class Conduction {
 public:
  explicit Conduction(Runtime& runtime)
      : device_(runtime.device()),
        world_(runtime.world()),
        struck_(world_.rank() == world_.size() - 1),
        rods_(runtime.config().integer("n"), runtime.config().integer("rods"), world_.rank()),
        matrices_{upload(rods_.lower), upload(rods_.diagonal), upload(rods_.upper), rods_.n},
        heat_(upload(rods_.heat)),
        before_(upload(rods_.heat)) {}

  /// Whether a call of the library gets through at all; says why not.
  bool has_library() {
    const auto outcome = tridiagonal::on(device_).solve(matrices_, heat_, before_).wait();
    if (!outcome.ok())
      std::printf("rank %d: %s\n", world_.rank(), outcome.error().to_string().c_str());
    return outcome.ok();
  }

  /// A call that fails costs what it was to write; the library is opened anew for the next.
  void fail_once() {
    device_.inject_library_fault("tridiagonal");
    const auto failed = tridiagonal::on(device_).solve(matrices_, heat_, before_);
    expect(failed.wait().code() == Errc::library, "the error of a call that was to fail");
    (void)device_.take_error();  // a run would end of it
    before_.renew();
    const auto again = tridiagonal::on(device_).solve(matrices_, heat_, before_);
    expect(again.wait().ok(), "the call after it");
  }

  /// Steps of a run: what a fault undoes is repeated from the last commit.
  void run(std::int64_t steps, std::int64_t kill_at) {
    Checkpoint state(device_);
    state.add("heat", heat_), state.add("before", before_);
    bool killed = false;
    world_.run(state, [&](std::int64_t step) {
      const auto &from = step % 2 == 0 ? heat_ : before_, &to = step % 2 == 0 ? before_ : heat_;
      tridiagonal::on(device_).solve(matrices_, from, to);
      if (struck_ && step == kill_at && !std::exchange(killed, true))
        device_.inject(memory::FaultKind::kill);
      return step + 1 < steps ? Step::again : Step::done;
    });
    if (steps % 2 != 0) std::swap(heat_, before_);
    for (std::int64_t step = 0; step < steps; ++step) rods_.step();
  }

  /// Outside of a run what was in flight when the device host died runs again where its inputs are
  /// still there: each step makes a buffer of its own.
  void replay(int steps) {
    std::vector<Future<std::int32_t>> all;
    for (int i = 0; struck_ && i < steps; ++i) {
      if (i == steps / 2) device_.inject(memory::FaultKind::kill);
      before_ = heat_, heat_ = device_.alloc<double>(before_.length());
      all.push_back(tridiagonal::on(device_).solve(matrices_, before_, heat_));
      rods_.step();
    }
    for (const auto& one : all) expect(one.wait().ok(), "a call that was to run again");
    world_.barrier();
    world_.wait_active().take();
  }

  /// The heat is the host's, and solves the equations, as another rank's request finds.
  void compare() {
    expect(close(device_.download(heat_), rods_.heat, 1e-10), "the heat");
    const auto rest = device_.alloc<double>(heat_.length());
    const auto all = world_.gather_values(
        Tokens{matrices_.lower.token(), matrices_.diagonal.token(), matrices_.upper.token(),
               heat_.token(), before_.token(), rest.token()});
    const int other = (world_.rank() + 1) % world_.size();
    const auto& theirs = all[static_cast<std::size_t>(other)];
    const auto ref = [](const GpuToken& token) { return RemoteRef<double>(token); };
    const tridiagonal::Matrices<RemoteRef<double>> a{ref(theirs.lower), ref(theirs.diagonal),
                                                     ref(theirs.upper), rods_.n};
    tridiagonal::on(world_.device(Rank(other)))
        .residual(a, ref(theirs.x), ref(theirs.b), ref(theirs.r))
        .get();
    world_.barrier();
    expect(close(device_.download(rest), Values(rods_.heat.size()), 1e-10), "the residual");
  }

  /// A system without a solution: the error has its number.
  void divide_by_zero() {
    auto diagonal = rods_.diagonal;
    const auto row = diagonal.size() - static_cast<std::size_t>(rods_.n);  // the first of the last
    diagonal[row] = 0;
    auto a = matrices_;
    a.diagonal = upload(diagonal);
    const auto x = device_.alloc<double>(heat_.length());
    const auto outcome = tridiagonal::on(device_).solve(a, heat_, x).wait();
    expect(outcome.code() == Errc::numeric && outcome.error().native == static_cast<int>(row) + 1,
           "the error of a matrix that is singular");
  }

  /// Whether all was right, on all ranks.
  bool right() {
    const auto all = world_.gather_values(right_ ? 1 : 0);
    return std::all_of(all.begin(), all.end(), [](int one) { return one == 1; });
  }

 private:
  GpuRef<double> upload(const Values& values) {
    const auto buffer = device_.alloc<double>(static_cast<std::int64_t>(values.size()));
    device_.upload<double>(values, buffer);
    return buffer;
  }
  void expect(bool holds, const char* what) {
    if (!holds) std::printf("rank %d: %s is wrong\n", world_.rank(), what);
    right_ &= holds;
  }

  Device& device_;
  World& world_;
  bool struck_, right_ = true;
  Rods rods_;
  tridiagonal::Matrices<GpuRef<double>> matrices_;
  GpuRef<double> heat_, before_;  ///< the newest step's, and the one before it
};

int conduct(Runtime& runtime) {
  const auto& config = runtime.config();
  const auto steps = config.integer("steps"), kill_at = config.integer("kill-at");
  Conduction conduction(runtime);
  if (!conduction.has_library()) return kExitFailure;
  if (config.flag("fail")) conduction.fail_once();
  conduction.run(steps, kill_at);
  if (kill_at >= 0) conduction.replay(20);
  conduction.compare();
  conduction.divide_by_zero();
  const bool right = conduction.right();
  auto& world = runtime.world();
  if (world.rank() == 0)
    std::printf("%d ranks, %lld steps, %zu faults overcome: %s\n", world.size(),
                static_cast<long long>(steps), world.recoveries().size(),
                right ? "right" : "wrong");
  return right ? kExitSuccess : kExitFailure;
}

}  // namespace

int main(int argc, char** argv) {
  using enum OptionType;
  return run_program(
      argc, argv,
      {"heat",
       "Heat in many rods, with a library from outside troupe.",
       {{"n", integer, "64", "N", "rows of a rod", {}, "2"},
        {"rods", integer, "16", "N", "rods of each rank", {}, "1"},
        {"steps", integer, "100", "N", "implicit steps", {}, "1"},
        {"kill-at",
         integer,
         "-1",
         "STEP",
         "kill the last rank's device host then, and once more after the run; -1: never",
         {},
         "-1"},
        {"fail", flag, "off", "on|off", "a call of the library fails before that"}}},
      conduct);
}
