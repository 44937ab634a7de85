// What a program may have names for beside troupe's, and calls as a user writes them: it only has
// to compile.
#include <troupe/actor.hpp>
#include <troupe/bundle.hpp>
#include <troupe/distributed.hpp>
#include <troupe/lib/direct.hpp>
#include <troupe/lib/dnn.hpp>
#include <troupe/lib/fft.hpp>
#include <troupe/lib/function.hpp>
#include <troupe/lib/kernel.hpp>
#include <troupe/lib/primitives.hpp>
#include <troupe/lib/primitives/custom.hpp>
#include <troupe/lib/primitives/custom_each.hpp>
#include <troupe/lib/solver.hpp>
#include <troupe/lib/tensor.hpp>
#include <troupe/ordered_fault.hpp>
#include <troupe/remote_device.hpp>
#include <troupe/saved_state.hpp>
#include <troupe/troupe.hpp>

#include <complex>
#include <functional>
#include <vector>

using std::function, std::vector;
using namespace troupe;

// Names that programs of MPI and numerics have at global scope.
using Real = double;
using Complex = std::complex<Real>;
using Index = long;
using Number = Real;
using Integer = int;
struct Vector {
  vector<Real> values;
};
struct Narrow {};
int rank = 0, size_of_world = 1;
function<Real(Index)> initial = [](Index i) { return static_cast<Real>(i); };

Vector start(Index n) {
  Vector made;
  for (Index i = 0; i < n; ++i) made.values.push_back(initial(i) + static_cast<Number>(rank));
  return made;
}

Future<void> calls(Device& device, World& world) {
  const auto d = device.alloc<double>(8);
  const auto f = device.alloc<float>(8);
  const auto z = device.alloc<Complex>(8);
  const auto x = start(8);
  device.upload(x.values, d);
  device.upload(vector<float>(8), f);
  device.fill(d, 0);
  device.fill(f, 1);
  device.fill(z, 0);
  world.send(d, 1);
  world.receive(d, 1);
  world.broadcast(d, 0);
  vector<Transfer<double>> sends{{d, 1}}, receives{{d, 0}};
  world.exchange(sends, receives);
  device.vector().axpby(1.0, d, 0.0, d);
  return device.blas().gemm(d, d, d, {.m = 2, .n = 2, .k = 2});
}
