#include "lib/primitives/cpu.hpp"

TROUPE_MODULE_HALF(troupe::host::cpu::Primitives, cpu)
