#include "lib/blas/cpu.hpp"

TROUPE_MODULE_HALF(troupe::host::cpu::Blas, cpu)
