#include "lib/blas/cpu.hpp"

#include <algorithm>
#include <cmath>
#include <complex>

#include "common/core/narrow.hpp"

/// Level 1 on the cpu engine.
namespace troupe::host::cpu {
namespace {

constexpr std::int64_t kPiece = std::int64_t{1} << 30;

/// Calls visit(first, count) for the pieces of a vector.
template <class Visit>
void in_pieces(std::int64_t n, Visit&& visit) {
  for (std::int64_t first = 0; first < n; first += kPiece)
    visit(first, to_int(std::min(kPiece, n - first)));
}
/// Where in memory a piece of a vector begins.
template <class T>
T* piece(T* x, std::int64_t n, std::int64_t increment, std::int64_t first, std::int64_t count) {
  return increment > 0 ? x + first * increment : x - (n - first - count) * increment;
}
/// Calls visit(count, x, y) for the pieces of two vectors.
template <class Op, class X, class Y, class Visit>
void piecewise(const Op& op, X* x, Y* y, Visit&& visit) {
  in_pieces(op.n, [&](std::int64_t first, int count) {
    visit(count, piece(x, op.n, op.incx, first, count), piece(y, op.n, op.incy, first, count));
  });
}
/// What BLAS takes for the absolute value when it looks for extremes.
template <class T>
RealOf<T> magnitude(const T& x) {
  return std::abs(std::real(x)) + (ComplexElement<T> ? std::abs(std::imag(x)) : RealOf<T>(0));
}

/// rotg of complex numbers: c = |a| / h, s = a / |a| conj(b) / h and r = a / |a| h, where h is the
/// length of (a, b); D. Bindel, J. Demmel, W. Kahan, O. Marques: On computing Givens rotations
/// reliably and efficiently, ACM TOMS 28 (2002). OpenBLAS is not asked: 0.3.26 gives a wrong r
/// (its issue 4909).
template <class R>
void rotate_to_axis(std::complex<R>& a, const std::complex<R>& b, R& c, std::complex<R>& s) {
  if (b == R(0)) {
    c = 1, s = 0;
    return;
  }
  const auto largest =
      std::max({std::abs(a.real()), std::abs(a.imag()), std::abs(b.real()), std::abs(b.imag())});
  const auto f = a / largest, g = b / largest;
  const auto length_f = std::abs(f), length = std::hypot(length_f, std::abs(g));
  const auto direction = length_f == 0 ? std::complex<R>(1) : f / length_f;
  c = length_f / length;
  s = direction * (std::conj(g) / length);
  a = direction * length * largest;
}

}  // namespace

Result<void> run(const blas::Axpy& op, const Call& call, Blas& library) {
  if (auto fits = require_int({op.incx, op.incy}); !fits) return fits;
  return with_number_or_narrow(op.dtype, [&]<class T>(T) {
    return library.services.submit(call, [op, alpha = ScalarValue<ScalarTypeOf<T>>(op.alpha, call),
                                          x = call.at<const T>(op.x), y = call.at<T>(op.y)] {
      const auto scalar = alpha.get();
      if constexpr (NarrowElement<T>) {
        for (std::int64_t i = 0; i < op.n && scalar != 0; ++i) {
          auto& out = element(y, op.n, op.incy, i);
          out = from_float<T>(scalar * to_float(element(x, op.n, op.incx, i)) + to_float(out));
        }
      } else {
        piecewise(op, x, y, [&](int count, const T* from, T* to) {
          Cblas<T>::axpy(count, pass(scalar), from, to_int(op.incx), to, to_int(op.incy));
        });
      }
    });
  });
}

Result<void> run(const blas::Dot& op, const Call& call, Blas& library) {
  if (auto fits = require_int({op.incx, op.incy}); !fits) return fits;
  return with_number_or_narrow(op.dtype, [&]<class T>(T) {
    return library.services.submit(
        call, [op, x = call.at<const T>(op.x), y = call.at<const T>(op.y),
               result = call.at<T>(op.result)] {
          if constexpr (NarrowElement<T>) {
            double sum = 0;
            for (std::int64_t i = 0; i < op.n; ++i)
              sum += double{to_float(element(x, op.n, op.incx, i))} *
                     double{to_float(element(y, op.n, op.incy, i))};
            *result = from_float<T>(static_cast<float>(sum));
          } else {
            std::conditional_t<ComplexElement<T>, std::complex<double>, double> sum = 0;
            // OpenBLAS 0.3.21 reads one element too many of complex vectors with gaps, which may be
            // where no memory is.
            if (ComplexElement<T> && (op.incx != 1 || op.incy != 1)) {
              const bool conjugated = op.conjugate == blas::Conjugate::yes;
              for (std::int64_t i = 0; i < op.n; ++i) {
                const T& u = element(x, op.n, op.incx, i);
                sum += (conjugated ? conjugate(u) : u) * element(y, op.n, op.incy, i);
              }
            } else {
              piecewise(op, x, y, [&](int count, const T* u, const T* v) {
                const int incx = to_int(op.incx), incy = to_int(op.incy);
                if constexpr (ComplexElement<T>) {
                  T part;
                  (op.conjugate == blas::Conjugate::yes ? Cblas<T>::dotc : Cblas<T>::dotu)(
                      count, u, incx, v, incy, reinterpret_cast<RealOf<T>*>(&part));
                  sum += part;
                } else {
                  sum += Cblas<T>::dot(count, u, incx, v, incy);
                }
              });
            }
            *result = static_cast<T>(sum);
          }
        });
  });
}

Result<void> run(const blas::Nrm2& op, const Call& call, Blas& library) {
  if (auto fits = require_int({op.incx}); !fits) return fits;
  return with_number_or_narrow(op.dtype, [&]<class T>(T) {
    return library.services.submit(
        call, [op, x = call.at<const T>(op.x), result = call.at<RealOf<T>>(op.result)] {
          double norm = 0;
          if constexpr (NarrowElement<T>) {
            for (std::int64_t i = 0; i < op.n; ++i) {
              const double value = to_float(x[i * op.incx]);  // whose square has room
              norm += value * value;
            }
            *result = from_float<T>(static_cast<float>(std::sqrt(norm)));
          } else {
            in_pieces(op.n, [&](std::int64_t first, int count) {
              norm = std::hypot(norm, static_cast<double>(Cblas<T>::nrm2(count, x + first * op.incx,
                                                                         to_int(op.incx))));
            });
            *result = static_cast<RealOf<T>>(norm);
          }
        });
  });
}

Result<void> run(const blas::Asum& op, const Call& call, Blas& library) {
  if (auto fits = require_int({op.incx}); !fits) return fits;
  return with_number(op.dtype, [&]<class T>(T) {
    return library.services.submit(
        call, [op, x = call.at<const T>(op.x), result = call.at<RealOf<T>>(op.result)] {
          double sum = 0;
          in_pieces(op.n, [&](std::int64_t first, int count) {
            const auto* const from = x + first * op.incx;
            // OpenBLAS 0.3.21 adds a wrong number of elements where complex ones stand side by
            // side, on processors that it calls Cooperlake. As twice as many reals they add up to
            // the same.
            if constexpr (ComplexElement<T>) {
              if (op.incx == 1) {
                const auto* const parts = reinterpret_cast<const RealOf<T>*>(from);
                sum += Cblas<RealOf<T>>::asum(count, parts, 1);
                sum += Cblas<RealOf<T>>::asum(count, parts + count, 1);
                return;
              }
            }
            sum += Cblas<T>::asum(count, from, to_int(op.incx));
          });
          *result = static_cast<RealOf<T>>(sum);
        });
  });
}

Result<void> run(const blas::Iamax& op, const Call& call, Blas& library) {
  if (auto fits = require_int({op.incx}); !fits) return fits;
  return with_number(op.dtype, [&]<class T>(T) {
    return library.services.submit(
        call, [op, x = call.at<const T>(op.x), result = call.at<std::int64_t>(op.result)] {
          std::int64_t best = -1;
          const auto consider = [&](std::int64_t i) {
            const auto value = magnitude(x[i * op.incx]);
            const auto so_far = best < 0 ? value : magnitude(x[best * op.incx]);
            if (best < 0 ||
                (op.which == blas::Iamax::Which::largest ? value > so_far : value < so_far)) {
              best = i;
            }
          };
          if (op.which == blas::Iamax::Which::smallest) {
            for (std::int64_t i = 0; i < op.n; ++i) consider(i);
          } else {
            in_pieces(op.n, [&](std::int64_t first, int count) {
              consider(first + static_cast<std::int64_t>(
                                   Cblas<T>::iamax(count, x + first * op.incx, to_int(op.incx))));
            });
          }
          *result = best;
        });
  });
}

Result<void> run(const blas::Scal& op, const Call& call, Blas& library) {
  if (auto fits = require_int({op.incx}); !fits) return fits;
  const auto scale = [&]<class T, class F>(T, F) {
    return library.services.submit(
        call, [op, alpha = ScalarValue<F>(op.alpha, call), x = call.at<T>(op.x)] {
          const auto scalar = alpha.get();
          if constexpr (NarrowElement<T>) {
            for (std::int64_t i = 0; i < op.n; ++i)
              x[i * op.incx] = from_float<T>(scalar * to_float(x[i * op.incx]));
          } else if (scalar == F(0)) {  // OpenBLAS forgets what is no number
            for (std::int64_t i = 0; i < op.n; ++i) x[i * op.incx] *= scalar;
          } else {
            in_pieces(op.n, [&](std::int64_t first, int count) {
              auto* const part = x + first * op.incx;
              if constexpr (std::is_same_v<T, F>) {
                Cblas<T>::scal(count, pass(scalar), part, to_int(op.incx));
              } else {
                Cblas<T>::scal_real(count, scalar, part, to_int(op.incx));
              }
            });
          }
        });
  };
  return with_number_or_narrow(op.dtype, [&]<class T>(T zero) {
    if constexpr (ComplexElement<T>) {
      if (op.kind == blas::ScalarKind::real) return scale(zero, RealOf<T>{});
    }
    return scale(zero, ScalarTypeOf<T>{});
  });
}

Result<void> run(const blas::Copy& op, const Call& call, Blas& library) {
  if (auto fits = require_int({op.incx, op.incy}); !fits) return fits;
  return with_number(op.dtype, [&]<class T>(T) {
    return library.services.submit(call, [op, x = call.at<const T>(op.x), y = call.at<T>(op.y)] {
      piecewise(op, x, y, [&](int count, const T* from, T* to) {
        Cblas<T>::copy(count, from, to_int(op.incx), to, to_int(op.incy));
      });
    });
  });
}

Result<void> run(const blas::Swap& op, const Call& call, Blas& library) {
  if (auto fits = require_int({op.incx, op.incy}); !fits) return fits;
  return with_number(op.dtype, [&]<class T>(T) {
    return library.services.submit(call, [op, x = call.at<T>(op.x), y = call.at<T>(op.y)] {
      piecewise(op, x, y, [&](int count, T* one, T* other) {
        Cblas<T>::swap(count, one, to_int(op.incx), other, to_int(op.incy));
      });
    });
  });
}

Result<void> run(const blas::Rot& op, const Call& call, Blas& library) {
  if (auto fits = require_int({op.incx, op.incy}); !fits) return fits;
  const auto rotate = [&]<class T, class S>(T, S) {
    return library.services.submit(
        call, [op, c = ScalarValue<RealOf<T>>(op.c, call), s = ScalarValue<S>(op.s, call),
               x = call.at<T>(op.x), y = call.at<T>(op.y)] {
          const auto cosine = c.get();
          const auto sine = s.get();
          if constexpr (RealElement<T>) {
            piecewise(op, x, y, [&](int count, T* u, T* v) {
              Cblas<T>::rot(count, u, to_int(op.incx), v, to_int(op.incy), cosine, sine);
            });
          } else {
            for (std::int64_t i = 0; i < op.n; ++i) {
              auto &u = element(x, op.n, op.incx, i), &v = element(y, op.n, op.incy, i);
              const T turned = cosine * u + sine * v;
              v = cosine * v - conjugate(sine) * u;
              u = turned;
            }
          }
        });
  };
  return with_number(op.dtype, [&]<class T>(T zero) {
    return op.sine == blas::ScalarKind::real ? rotate(zero, RealOf<T>{}) : rotate(zero, T{});
  });
}

Result<void> run(const blas::Rotg& op, const Call& call, Blas& library) {
  return with_number(op.dtype, [&]<class T>(T) {
    return library.services.submit(call, [a = call.at<T>(op.a), b = call.at<T>(op.b),
                                          c = call.at<RealOf<T>>(op.c), s = call.at<T>(op.s)] {
      if constexpr (ComplexElement<T>) {
        rotate_to_axis(*a, *b, *c, *s);
      } else {
        Cblas<T>::rotg(a, b, c, s);
      }
    });
  });
}

Result<void> run(const blas::Rotm& op, const Call& call, Blas& library) {
  if (auto fits = require_int({op.incx, op.incy}); !fits) return fits;
  return with_real(op.dtype, [&]<class T>(T) {
    return library.services.submit(
        call, [op, x = call.at<T>(op.x), y = call.at<T>(op.y), param = call.at<const T>(op.param)] {
          piecewise(op, x, y, [&](int count, T* u, T* v) {
            Cblas<T>::rotm(count, u, to_int(op.incx), v, to_int(op.incy), param);
          });
        });
  });
}

Result<void> run(const blas::Rotmg& op, const Call& call, Blas& library) {
  return with_real(op.dtype, [&]<class T>(T) {
    return library.services.submit(
        call, [d1 = call.at<T>(op.d1), d2 = call.at<T>(op.d2), x1 = call.at<T>(op.x1),
               y1 = call.at<const T>(op.y1),
               param = call.at<T>(op.param)] { Cblas<T>::rotmg(d1, d2, x1, *y1, param); });
  });
}

TROUPE_HANDLERS(Blas)

}  // namespace troupe::host::cpu
