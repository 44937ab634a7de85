#include "lib/dnn/convolution/cpu.hpp"
#include "lib/dnn/graph/cpu.hpp"

/// Where troupe is built without oneDNN.
namespace troupe::dnn {

class Convolver::Cache {};

Convolver::Convolver(int) {}
Convolver::~Convolver() = default;

bool Convolver::has(const Convolution&) const {
  return true;
}

Result<std::function<void()>> Convolver::prepare(const Convolution&, const ConvolutionOperands&) {
  return Error{Errc::unsupported, 0,
               "dnn.convolution: not installed: troupe was built without libdnnl-dev"};
}

std::string Convolver::version() {
  return "not installed";
}

const void* Convolver::symbol() {
  return nullptr;
}

bool convolves() noexcept {
  return false;
}

void compute_convolution(const NodeView&, Contents&) {}  // such graphs are refused

}  // namespace troupe::dnn
