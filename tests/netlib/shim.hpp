#pragma once

#include <complex>
#include <cstdlib>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "device_rig.hpp"

/// BLAS's and LAPACK's Fortran interface (https://www.netlib.org/lapack), each call of which goes
/// through a device of troupe: what it is given is uploaded, the operation submitted, and the
/// result downloaded. Netlib's own test programs run on it without knowing. An error ends the
/// program.
namespace troupe::netlib {

using blas::Diagonal;
using blas::Side;
using blas::Transpose;
using blas::Uplo;

/// The device of this program: made on first use. Counts as a call, of that routine if it is named.
Device& device(std::string_view routine = {});

inline Transpose transpose_of(const char* letter) {
  switch (*letter) {
    case 'T':
    case 't': return Transpose::yes;
    case 'C':
    case 'c': return Transpose::conjugate;
    default: return Transpose::no;
  }
}
inline Uplo uplo_of(const char* letter) {
  return *letter == 'L' || *letter == 'l' ? Uplo::lower : Uplo::upper;
}
inline Side side_of(const char* letter) {
  return *letter == 'L' || *letter == 'l' ? Side::left : Side::right;
}
inline Diagonal diagonal_of(const char* letter) {
  return *letter == 'U' || *letter == 'u' ? Diagonal::unit : Diagonal::stored;
}

/// An array of the caller's and its copy on the device. What T is const is not written.
template <class T>
class Array {
 public:
  using Value = std::remove_const_t<T>;

  Array(Device& on, T* host, std::int64_t count)
      : device_(&on), host_(host), count_(count), ref_(on.alloc<Value>(count)) {
    if (count > 0) on.upload<Value>({host, static_cast<std::size_t>(count)}, ref_);
  }
  [[nodiscard]] const GpuRef<Value>& ref() const { return ref_; }
  void download() const {
    const auto values = device_->download(ref_);
    std::copy(values.begin(), values.end(), host_);
  }

 private:
  Device* device_;
  T* host_;
  std::int64_t count_;
  GpuRef<Value> ref_;
};

/// A vector; its increment is not zero.
template <class T>
class Vector {
 public:
  Vector(Device& on, T* host, std::int64_t n, std::int64_t increment)
      : memory_(on, host, n > 0 ? (n - 1) * std::abs(increment) + 1 : 0),
        n_(n > 0 ? n : 0),
        increment_(increment) {}
  [[nodiscard]] VectorRef<GpuRef<std::remove_const_t<T>>> ref() const {
    return {memory_.ref(), n_, increment_};
  }
  void download() const { memory_.download(); }

 private:
  Array<T> memory_;
  std::int64_t n_, increment_;
};

template <class T>
class Matrix {
 public:
  Matrix(Device& on, T* host, std::int64_t rows, std::int64_t columns, std::int64_t leading)
      : memory_(on, host, blas::span_of(rows, columns, leading)),
        rows_(rows),
        columns_(columns),
        leading_(leading) {}
  [[nodiscard]] MatrixRef<GpuRef<std::remove_const_t<T>>> ref() const {
    return {memory_.ref(), rows_, columns_, leading_};
  }
  void download() const { memory_.download(); }

 private:
  Array<T> memory_;
  std::int64_t rows_, columns_, leading_;
};

}  // namespace troupe::netlib

/// Calls X(type, letter) for the types of BLAS.
#define TROUPE_FOR_REALS(X) X(float, s) X(double, d)
#define TROUPE_FOR_COMPLEX(X) X(std::complex<float>, c) X(std::complex<double>, z)
#define TROUPE_FOR_NUMBERS(X) TROUPE_FOR_REALS(X) TROUPE_FOR_COMPLEX(X)
