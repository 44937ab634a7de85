#pragma once

/// Dense products of data that lies on the devices of many ranks.
#include <troupe/distributed/pgemm.hpp>
