#pragma once

/// Everything an application includes, with the libraries that most use; the others stand beside
/// them in troupe/lib.
#include <troupe/checkpoint.hpp>
#include <troupe/config.hpp>
#include <troupe/device.hpp>
#include <troupe/lib/blas.hpp>
#include <troupe/lib/rng.hpp>
#include <troupe/lib/sparse.hpp>
#include <troupe/lib/vector.hpp>
#include <troupe/runtime.hpp>
#include <troupe/sequence.hpp>
#include <troupe/world.hpp>
