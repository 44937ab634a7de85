#include <troupe/lib/tensor.hpp>
