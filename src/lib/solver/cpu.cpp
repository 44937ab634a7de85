#include "lib/solver/cpu.hpp"

#include <cblas.h>

namespace troupe::host::cpu {

Solver::Solver(Services& its_services) : services(its_services) {
  ::openblas_set_num_threads(std::max(1, services.threads()));  // whether blas is open or not
  // A NaN comes out of a factorisation as it does elsewhere.
  LAPACKE_set_nancheck(0);
}

Dependencies Solver::stands_on() const {
  lapack_int major = 0, minor = 0, patch = 0;
  LAPACKE_ilaver(&major, &minor, &patch);
  return {
      {"LAPACK", std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch),
       &LAPACKE_ilaver},
      {"OpenBLAS", ::openblas_get_config(), &::openblas_get_config}};
}

}  // namespace troupe::host::cpu

TROUPE_MODULE_HALF(troupe::host::cpu::Solver, cpu)
