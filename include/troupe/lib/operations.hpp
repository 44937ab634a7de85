#pragma once

/// The libraries that come with troupe.
#include <troupe/lib/blas.hpp>
#include <troupe/lib/collective.hpp>
#include <troupe/lib/direct.hpp>
#include <troupe/lib/dnn.hpp>
#include <troupe/lib/fft.hpp>
#include <troupe/lib/file.hpp>
#include <troupe/lib/function.hpp>
#include <troupe/lib/kernel.hpp>
#include <troupe/lib/memory.hpp>
#include <troupe/lib/primitives.hpp>
#include <troupe/lib/rng.hpp>
#include <troupe/lib/solver.hpp>
#include <troupe/lib/sparse.hpp>
#include <troupe/lib/tensor.hpp>
#include <troupe/lib/vector.hpp>
