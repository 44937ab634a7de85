#pragma once

#include "device_host/engine/cpu/library.hpp"
#include "plugin/module.hpp"

/// For a library's half on the cpu engine: a class derived from host::LibraryHalfOf, made from
/// host::cpu::Services&. Once in its module, in namespace scope:
///
///     TROUPE_LIBRARY_HALF(mine::Half)
#define TROUPE_LIBRARY_HALF(Half) TROUPE_DETAIL_LIBRARY_HALF(Half, cpu)
