#include "lib/sparse/cpu.hpp"

/// Operations on sparse vectors on the cpu engine.
namespace troupe::host::cpu {
namespace {

/// Calls visit(i, j) for each element i of a sparse vector that is within the dense one, at j.
template <class I, class Visit>
void each_element(std::int64_t count, std::int64_t length, const I* index, Visit&& visit) {
  for (std::int64_t i = 0; i < count; ++i) {
    const auto j = static_cast<std::int64_t>(index[i]);
    if (j >= 0 && j < length) visit(i, j);
  }
}

template <class T>
T conjugate_of(T x) {
  if constexpr (ComplexElement<T>) {
    return std::conj(x);
  } else {
    return x;
  }
}

}  // namespace

Result<void> run(const sparse::Gather& op, const Call& call, Sparse& library) {
  return with_number(op.dtype, [&](auto zero) {
    return with_index(op.index_dtype, [&](auto zero_index) {
      using T = decltype(zero);
      return library.services.submit(
          call, [count = op.count, index = call.at<const decltype(zero_index)>(op.index),
                 source = call.at<const T>(op.source), destination = call.at<T>(op.destination)] {
            for (std::int64_t i = 0; i < count; ++i) destination[i] = source[index[i]];
          });
    });
  });
}

Result<void> run(const sparse::Scatter& op, const Call& call, Sparse& library) {
  return with_number(op.dtype, [&](auto zero) {
    return with_index(op.index_dtype, [&](auto zero_index) {
      using T = decltype(zero);
      return library.services.submit(
          call, [op, index = call.at<const decltype(zero_index)>(op.index),
                 x = call.at<const T>(op.x), y = call.at<T>(op.y)] {
            each_element(op.count, op.length, index,
                         [&](std::int64_t i, std::int64_t j) { y[j] = x[i]; });
          });
    });
  });
}

Result<void> run(const sparse::Axpby& op, const Call& call, Sparse& library) {
  return with_number(op.dtype, [&](auto zero) {
    return with_index(op.index_dtype, [&](auto zero_index) {
      using T = decltype(zero);
      return library.services.submit(
          call, [op, alpha = ScalarValue<T>(op.alpha, call), beta = ScalarValue<T>(op.beta, call),
                 index = call.at<const decltype(zero_index)>(op.index), x = call.at<const T>(op.x),
                 y = call.at<T>(op.y)] {
            const T factor = alpha.get(), old = beta.get();
            for (std::int64_t j = 0; j < op.length; ++j) y[j] = old == T(0) ? T(0) : old * y[j];
            if (factor == T(0)) return;
            each_element(op.count, op.length, index,
                         [&](std::int64_t i, std::int64_t j) { y[j] += factor * x[i]; });
          });
    });
  });
}

Result<void> run(const sparse::Rot& op, const Call& call, Sparse& library) {
  return with_number(op.dtype, [&](auto zero) {
    return with_index(op.index_dtype, [&](auto zero_index) {
      using T = decltype(zero);
      return library.services.submit(
          call, [op, cosine = ScalarValue<RealOf<T>>(op.c, call), sine = ScalarValue<T>(op.s, call),
                 index = call.at<const decltype(zero_index)>(op.index), x = call.at<T>(op.x),
                 y = call.at<T>(op.y)] {
            const auto c = cosine.get();
            const T s = sine.get();
            each_element(op.count, op.length, index, [&](std::int64_t i, std::int64_t j) {
              const T old_x = x[i], old_y = y[j];
              x[i] = c * old_x + s * old_y;
              y[j] = c * old_y - conjugate_of(s) * old_x;
            });
          });
    });
  });
}

Result<void> run(const sparse::Spvv& op, const Call& call, Sparse& library) {
  return with_number(op.dtype, [&](auto zero) {
    return with_index(op.index_dtype, [&](auto zero_index) {
      using T = decltype(zero);
      return library.services.submit(
          call,
          [op, index = call.at<const decltype(zero_index)>(op.index), x = call.at<const T>(op.x),
           y = call.at<const T>(op.y), result = call.at<T>(op.result)] {
            const bool conjugate = op.conjugate == blas::Conjugate::yes;
            T sum{};
            each_element(op.count, op.length, index, [&](std::int64_t i, std::int64_t j) {
              sum += (conjugate ? conjugate_of(x[i]) : x[i]) * y[j];
            });
            *result = sum;
          });
    });
  });
}

TROUPE_HANDLERS(Sparse)

}  // namespace troupe::host::cpu
