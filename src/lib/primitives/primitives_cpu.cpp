#include "lib/primitives/primitives_cpu.hpp"

TROUPE_MODULE_HALF(troupe::host::cpu::Primitives, cpu)
