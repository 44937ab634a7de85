#include "lib/sparse/cpu.hpp"

TROUPE_MODULE_HALF(troupe::host::cpu::Sparse, cpu)
