#pragma once

/// Dense products and Fourier transforms of data that lies on the devices of many ranks.
#include <troupe/distributed/pfft3.hpp>
#include <troupe/distributed/pgemm.hpp>
