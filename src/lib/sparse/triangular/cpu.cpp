#include "lib/sparse/cpu.hpp"
#include "lib/sparse/common/elements_cpu.hpp"

/// Triangular systems on the cpu engine: forward and backward substitution.
namespace troupe::host::cpu {
namespace {

/// The elements of a right side or of a solution, `step` apart.
template <class T>
struct Column {
  T* element;
  std::int64_t step;
  T& operator[](std::int64_t i) const { return element[i * step]; }
};

/// S x = alpha b or S^T x = alpha b, the lines of S being the matrix's rows, or its columns where
/// it is stored by columns. So S is the matrix or its transpose.
template <class T, class I>
class Triangle {
 public:
  template <class Op>
  Triangle(const Op& op, const I* outer, const I* inner, const T* value)
      : form_(op.a),
        n_(op.a.rows),
        lower_((op.uplo == blas::Uplo::lower) != (op.a.format == sparse::Format::csc)),
        unit_(op.diagonal == blas::Diagonal::unit),
        transposed_((op.transpose != blas::Transpose::no) != (op.a.format == sparse::Format::csc)),
        conjugate_(op.transpose == blas::Transpose::conjugate),
        outer_(outer),
        inner_(inner),
        value_(value) {}

  /// x may be b. Both ways each element is written after what depends on its old value was read.
  void solve(T alpha, const Column<const T>& b, const Column<T>& x) const {
    if (transposed_) {
      for (std::int64_t i = 0; i < n_; ++i) x[i] = alpha * b[i];
      // S^T has the other triangle.
      for (std::int64_t step = 0; step < n_; ++step) subtract(lower_ ? n_ - 1 - step : step, x);
    } else {
      for (std::int64_t step = 0; step < n_; ++step) {
        const auto i = lower_ ? step : n_ - 1 - step;
        x[i] = solved(i, alpha * b[i], x);
      }
    }
  }

 private:
  /// Calls visit(j, element) for each element of the line in the triangle and on the diagonal.
  template <class Visit>
  void each_element(std::int64_t line, Visit&& visit) const {
    each_in_line(form_, outer_, inner_, line, [&](std::int64_t j, std::int64_t place) {
      if (lower_ ? j <= line : j >= line) visit(j, conjugated(value_[place], conjugate_));
    });
  }
  [[nodiscard]] T solved(std::int64_t line, T right, const Column<T>& x) const {
    T diagonal{};
    each_element(line, [&](std::int64_t j, T element) {
      if (j == line) {
        diagonal += element;
      } else {
        right -= element * x[j];
      }
    });
    return unit_ ? right : right / diagonal;
  }
  /// Takes what the line's unknown contributes out of all other equations.
  void subtract(std::int64_t line, const Column<T>& x) const {
    T diagonal{};
    each_element(line, [&](std::int64_t j, T element) {
      if (j == line) diagonal += element;
    });
    if (!unit_) x[line] /= diagonal;
    each_element(line, [&](std::int64_t j, T element) {
      if (j != line) x[j] -= element * x[line];
    });
  }

  sparse::Form form_;
  std::int64_t n_;
  bool lower_, unit_, transposed_, conjugate_;
  const I *outer_, *inner_;
  const T* value_;
};

template <class Op, class F>
Result<void> with_triangle(const Op& op, const Call& call, F&& f) {
  return with_number(op.dtype, [&](auto zero) {
    return with_index(op.a.index_dtype, [&](auto zero_index) {
      using T = decltype(zero);
      using I = decltype(zero_index);
      return f(zero, Triangle<T, I>(op, call.at<const I>(op.outer), call.at<const I>(op.inner),
                                    call.at<const T>(op.value)));
    });
  });
}

}  // namespace

Result<void> run(const sparse::Spsv& op, const Call& call, Sparse& library) {
  return with_triangle(op, call, [&]<class T>(T, const auto& triangle) {
    return library.services.submit(
        call, [triangle, alpha = ScalarValue<T>(op.alpha, call),
               b = Column<const T>{call.at<const T>(op.b), 1},
               x = Column<T>{call.at<T>(op.x), 1}] { triangle.solve(alpha.get(), b, x); });
  });
}

Result<void> run(const sparse::Spsm& op, const Call& call, Sparse& library) {
  return with_triangle(op, call, [&]<class T>(T, const auto& triangle) {
    return library.services.submit(call, [triangle, op, alpha = ScalarValue<T>(op.alpha, call),
                                          b = call.at<const T>(op.b), x = call.at<T>(op.x)] {
      const bool b_by_column = op.order_b == blas::Order::column;
      const bool x_by_column = op.order_x == blas::Order::column;
      for (std::int64_t j = 0; j < op.columns; ++j) {
        triangle.solve(
            alpha.get(),
            Column<const T>{b + j * (b_by_column ? op.ldb : 1), b_by_column ? 1 : op.ldb},
            Column<T>{x + j * (x_by_column ? op.ldx : 1), x_by_column ? 1 : op.ldx});
      }
    });
  });
}

TROUPE_HANDLERS(Sparse)

}  // namespace troupe::host::cpu
