#pragma once

#include <troupe/lib/dnn/softmax.hpp>

namespace troupe::dnn {

/// Softmax of an operation that checks out. T is the type of its dtype.
template <class T>
void softmax(const Softmax& op, const T* x, T* y);
/// Its gradient.
template <class T>
void softmax_backward(const SoftmaxBackward& op, const T* y, const T* dy, T* dx);

}  // namespace troupe::dnn
