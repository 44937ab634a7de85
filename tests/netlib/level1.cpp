#include "shim.hpp"

namespace troupe::netlib {
namespace {

template <class T>
void axpy(int n, T alpha, const T* x, int incx, T* y, int incy) {
  auto& on = device();
  const Vector<const T> u(on, x, n, incx);
  const Vector<T> v(on, y, n, incy);
  on.blas().axpy(alpha, u.ref(), v.ref()).get();
  v.download();
}
template <class T>
void copy(int n, const T* x, int incx, T* y, int incy) {
  if (incx == 0 || incy == 0) {  // which operations do not have: element by element
    const auto at = [n](int increment, int i) {
      return increment < 0 ? (i + 1 - n) * increment : i * increment;
    };
    for (int i = 0; i < n; ++i) copy(1, x + at(incx, i), 1, y + at(incy, i), 1);
    return;
  }
  auto& on = device();
  const Vector<const T> u(on, x, n, incx);
  const Vector<T> v(on, y, n, incy);
  on.blas().copy(u.ref(), v.ref()).get();
  v.download();
}
template <class T>
void swap(int n, T* x, int incx, T* y, int incy) {
  auto& on = device();
  const Vector<T> u(on, x, n, incx), v(on, y, n, incy);
  on.blas().swap(u.ref(), v.ref()).get();
  u.download(), v.download();
}
/// Scaling and reductions do nothing with increments that are not positive.
template <class T, class F>
void scal(int n, F alpha, T* x, int incx) {
  if (incx <= 0) return;
  auto& on = device();
  const Vector<T> u(on, x, n, incx);
  if constexpr (std::is_same_v<T, F>) {
    on.blas().scal(alpha, u.ref()).get();
  } else {
    on.blas().scal_real(alpha, u.ref()).get();
  }
  u.download();
}
template <class T>
T dot(int n, const T* x, int incx, const T* y, int incy, bool conjugated = false) {
  auto& on = device();
  const Vector<const T> u(on, x, n, incx), v(on, y, n, incy);
  const auto result = on.alloc<T>(1);
  if constexpr (ComplexElement<T>) {
    (conjugated ? on.blas().dotc(u.ref(), v.ref(), result)
                : on.blas().dot(u.ref(), v.ref(), result))
        .get();
  } else {
    on.blas().dot(u.ref(), v.ref(), result).get();
  }
  return on.download(result)[0];
}
/// The product of f32 vectors that is added up in f64.
double dot_in_f64(int n, const float* x, int incx, const float* y, int incy) {
  const auto widened = [n](const float* v, int increment) {
    return n > 0 ? std::vector<double>(v, v + (n - 1) * std::abs(increment) + 1)
                 : std::vector<double>(1);
  };
  return dot<double>(n, widened(x, incx).data(), incx, widened(y, incy).data(), incy);
}
/// The order of elements does not matter to a norm.
template <class T>
RealOf<T> nrm2(int n, const T* x, int incx) {
  auto& on = device();
  const Vector<const T> u(on, x, n, std::abs(incx));
  const auto result = on.alloc<RealOf<T>>(1);
  on.blas().nrm2(u.ref(), result).get();
  return on.download(result)[0];
}
template <class T>
RealOf<T> asum(int n, const T* x, int incx) {
  if (incx <= 0) return 0;
  auto& on = device();
  const Vector<const T> u(on, x, n, incx);
  const auto result = on.alloc<RealOf<T>>(1);
  on.blas().asum(u.ref(), result).get();
  return on.download(result)[0];
}
template <class T>
int iamax(int n, const T* x, int incx) {
  if (incx <= 0) return 0;
  auto& on = device();
  const Vector<const T> u(on, x, n, incx);
  const auto result = on.alloc<std::int64_t>(1);
  on.blas().iamax(u.ref(), result).get();
  return static_cast<int>(on.download(result)[0]) + 1;
}
template <class T>
void rot(int n, T* x, int incx, T* y, int incy, T c, T s) {
  auto& on = device();
  const Vector<T> u(on, x, n, incx), v(on, y, n, incy);
  on.blas().rot(u.ref(), v.ref(), c, s).get();
  u.download(), v.download();
}
template <class T>
void rotg(T* a, T* b, RealOf<T>* c, T* s) {
  auto& on = device();
  const Array<T> da(on, a, 1), db(on, b, 1), ds(on, s, 1);
  const Array<RealOf<T>> dc(on, c, 1);
  on.blas().rotg(da.ref(), db.ref(), dc.ref(), ds.ref()).get();
  da.download(), db.download(), dc.download(), ds.download();
}
template <class T>
void rotm(int n, T* x, int incx, T* y, int incy, const T* param) {
  auto& on = device();
  const Vector<T> u(on, x, n, incx), v(on, y, n, incy);
  const Array<const T> h(on, param, 5);
  on.blas().rotm(u.ref(), v.ref(), h.ref()).get();
  u.download(), v.download();
}
template <class T>
void rotmg(T* d1, T* d2, T* x1, const T* y1, T* param) {
  auto& on = device();
  const Array<T> e1(on, d1, 1), e2(on, d2, 1), x(on, x1, 1), h(on, param, 5);
  const Array<const T> y(on, y1, 1);
  on.blas().rotmg(e1.ref(), e2.ref(), x.ref(), y.ref(), h.ref()).get();
  e1.download(), e2.download(), x.download(), h.download();
}

}  // namespace
}  // namespace troupe::netlib

using namespace troupe::netlib;

extern "C" {

#define TROUPE_LEVEL1(T, s)                                                         \
  void s##axpy_(const int* n, const T* alpha, const T* x, const int* incx, T* y,    \
                const int* incy) {                                                  \
    axpy<T>(*n, *alpha, x, *incx, y, *incy);                                        \
  }                                                                                 \
  void s##copy_(const int* n, const T* x, const int* incx, T* y, const int* incy) { \
    copy<T>(*n, x, *incx, y, *incy);                                                \
  }                                                                                 \
  void s##swap_(const int* n, T* x, const int* incx, T* y, const int* incy) {       \
    swap<T>(*n, x, *incx, y, *incy);                                                \
  }                                                                                 \
  void s##scal_(const int* n, const T* alpha, T* x, const int* incx) {              \
    scal<T, T>(*n, *alpha, x, *incx);                                               \
  }                                                                                 \
  int i##s##amax_(const int* n, const T* x, const int* incx) {                      \
    return iamax<T>(*n, x, *incx);                                                  \
  }                                                                                 \
  void s##rotg_(T* a, T* b, troupe::RealOf<T>* cosine, T* sine) {                   \
    rotg<T>(a, b, cosine, sine);                                                    \
  }
TROUPE_FOR_NUMBERS(TROUPE_LEVEL1)

#define TROUPE_LEVEL1_REAL(T, s)                                                              \
  T s##dot_(const int* n, const T* x, const int* incx, const T* y, const int* incy) {         \
    return dot<T>(*n, x, *incx, y, *incy);                                                    \
  }                                                                                           \
  T s##nrm2_(const int* n, const T* x, const int* incx) {                                     \
    return nrm2<T>(*n, x, *incx);                                                             \
  }                                                                                           \
  T s##asum_(const int* n, const T* x, const int* incx) {                                     \
    return asum<T>(*n, x, *incx);                                                             \
  }                                                                                           \
  void s##rot_(const int* n, T* x, const int* incx, T* y, const int* incy, const T* cosine,   \
               const T* sine) {                                                               \
    rot<T>(*n, x, *incx, y, *incy, *cosine, *sine);                                           \
  }                                                                                           \
  void s##rotm_(const int* n, T* x, const int* incx, T* y, const int* incy, const T* param) { \
    rotm<T>(*n, x, *incx, y, *incy, param);                                                   \
  }                                                                                           \
  void s##rotmg_(T* d1, T* d2, T* x1, const T* y1, T* param) {                                \
    rotmg<T>(d1, d2, x1, y1, param);                                                          \
  }
TROUPE_FOR_REALS(TROUPE_LEVEL1_REAL)

#define TROUPE_LEVEL1_COMPLEX(T, s)                                                    \
  T s##dotu_(const int* n, const T* x, const int* incx, const T* y, const int* incy) { \
    return dot<T>(*n, x, *incx, y, *incy);                                             \
  }                                                                                    \
  T s##dotc_(const int* n, const T* x, const int* incx, const T* y, const int* incy) { \
    return dot<T>(*n, x, *incx, y, *incy, true);                                       \
  }
TROUPE_FOR_COMPLEX(TROUPE_LEVEL1_COMPLEX)

float scnrm2_(const int* n, const std::complex<float>* x, const int* incx) {
  return nrm2(*n, x, *incx);
}
double dznrm2_(const int* n, const std::complex<double>* x, const int* incx) {
  return nrm2(*n, x, *incx);
}
float scasum_(const int* n, const std::complex<float>* x, const int* incx) {
  return asum(*n, x, *incx);
}
double dzasum_(const int* n, const std::complex<double>* x, const int* incx) {
  return asum(*n, x, *incx);
}
void csscal_(const int* n, const float* alpha, std::complex<float>* x, const int* incx) {
  scal(*n, *alpha, x, *incx);
}
void zdscal_(const int* n, const double* alpha, std::complex<double>* x, const int* incx) {
  scal(*n, *alpha, x, *incx);
}
double dsdot_(const int* n, const float* x, const int* incx, const float* y, const int* incy) {
  return dot_in_f64(*n, x, *incx, y, *incy);
}
float sdsdot_(const int* n, const float* b, const float* x, const int* incx, const float* y,
              const int* incy) {
  return static_cast<float>(double{*b} + dot_in_f64(*n, x, *incx, y, *incy));
}
}
