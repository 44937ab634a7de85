#pragma once

// What the fragments of the documents may use.
#include <complex>
#include <cstdio>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <troupe/actor.hpp>
#include <troupe/distributed.hpp>
#include <troupe/function.hpp>
#include <troupe/lib/direct.hpp>
#include <troupe/lib/dnn.hpp>
#include <troupe/lib/fft.hpp>
#include <troupe/lib/function.hpp>
#include <troupe/lib/kernel.hpp>
#include <troupe/lib/primitives.hpp>
#include <troupe/lib/rng/sequence.hpp>
#include <troupe/lib/rng/stream.hpp>
#include <troupe/lib/solver.hpp>
#include <troupe/lib/tensor.hpp>
#include <troupe/troupe.hpp>

using namespace troupe;
using namespace std::chrono_literals;
