#pragma once

#include <troupe/lib/dnn/lrn.hpp>

namespace troupe::dnn {

/// Normalisation of an operation that checks out. T is the type of its dtype.
template <class T>
void lrn(const Lrn& op, const T* x, T* y);
/// Its gradient.
template <class T>
void lrn_backward(const LrnBackward& op, const T* x, const T* y, const T* dy, T* dx);

}  // namespace troupe::dnn
