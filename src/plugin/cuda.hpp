#pragma once

#include "device_host/engine/cuda/library.hpp"
#include "plugin/module.hpp"

/// For a library's half on the cuda engine: a class derived from host::LibraryHalfOf, made from
/// host::cuda::Services&. Once in its module, in namespace scope:
///
///     TROUPE_LIBRARY_HALF(mine::Half)
#define TROUPE_LIBRARY_HALF(Half) TROUPE_DETAIL_LIBRARY_HALF(Half, cuda)
