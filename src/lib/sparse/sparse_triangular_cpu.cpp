#include <algorithm>
#include <vector>

#include "lib/sparse/sparse_cpu.hpp"

/// Triangular systems on the cpu engine: forward and backward substitution.
namespace troupe::host::cpu {
namespace {

template <class T>
T conjugated_if(bool conjugate, T x) {
  if constexpr (ComplexElement<T>) {
    return conjugate ? std::conj(x) : x;
  } else {
    return x;
  }
}

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
      : n_(op.n),
        nonzeros_(op.nonzeros),
        lower_((op.uplo == blas::Uplo::lower) != (op.storage == sparse::Storage::csc)),
        unit_(op.diagonal == blas::Diagonal::unit),
        transposed_((op.transpose != blas::Transpose::no) != (op.storage == sparse::Storage::csc)),
        conjugate_(op.transpose == blas::Transpose::conjugate),
        outer_(outer),
        inner_(inner),
        value_(value),
        by_place_(op.storage == sparse::Storage::coo) {}

  /// To be called on the thread that solves: it reads the matrix. Afterwards lines are known.
  void find_lines() {
    if (!by_place_) return;
    line_begin_.assign(static_cast<std::size_t>(n_) + 1, 0);
    for (std::int64_t k = 0; k < nonzeros_; ++k) {
      if (is_line(outer_[k])) ++line_begin_[static_cast<std::size_t>(outer_[k]) + 1];
    }
    for (std::size_t i = 1; i < line_begin_.size(); ++i) line_begin_[i] += line_begin_[i - 1];
  }

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
  [[nodiscard]] bool is_line(I i) const { return i >= 0 && static_cast<std::int64_t>(i) < n_; }
  /// Calls visit(j, element) for each element of the line in the triangle and on the diagonal.
  /// Wrong indices lead to no memory of others.
  template <class Visit>
  void each_element(std::int64_t line, Visit&& visit) const {
    const auto at = [&](std::int64_t i) {
      const auto begin = by_place_ ? line_begin_[static_cast<std::size_t>(i)]
                                   : static_cast<std::int64_t>(outer_[i]);
      return std::clamp<std::int64_t>(begin, 0, nonzeros_);
    };
    for (std::int64_t k = at(line), end = at(line + 1); k < end; ++k) {
      const auto j = static_cast<std::int64_t>(inner_[k]);
      const bool counts = lower_ ? j >= 0 && j <= line : j >= line && j < n_;
      if (counts) visit(j, conjugated_if(conjugate_, value_[k]));
    }
  }
  [[nodiscard]] T solved(std::int64_t line, T right, const Column<T>& x) const {
    T diagonal{};
    each_element(line, [&](std::int64_t j, T element) {
      if (j == line) {
        diagonal = element;
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
      if (j == line) diagonal = element;
    });
    if (!unit_) x[line] /= diagonal;
    each_element(line, [&](std::int64_t j, T element) {
      if (j != line) x[j] -= element * x[line];
    });
  }

  std::int64_t n_, nonzeros_;
  bool lower_, unit_, transposed_, conjugate_;
  const I *outer_, *inner_;
  const T* value_;
  bool by_place_;
  std::vector<std::int64_t> line_begin_;  ///< of a matrix that is stored by places
};

template <class Op, class F>
Result<void> with_triangle(const Op& op, const Call& call, F&& f) {
  return with_number(op.dtype, [&](auto zero) {
    return with_index(op.index_dtype, [&](auto zero_index) {
      using T = decltype(zero);
      using I = decltype(zero_index);
      return f(zero, Triangle<T, I>(op, call.at<const I>(op.outer), call.at<const I>(op.inner),
                                    call.at<const T>(op.value)));
    });
  });
}

}  // namespace

Result<void> Sparse::run(const sparse::Spsv& op, const Call& call) {
  return with_triangle(op, call, [&]<class T>(T, const auto& triangle) {
    return services_.submit(
        call, [triangle, alpha = ScalarValue<T>(op.alpha, call),
               b = Column<const T>{call.at<const T>(op.b), 1}, x = Column<T>{call.at<T>(op.x), 1}] {
          auto known = triangle;
          known.find_lines();
          known.solve(alpha.get(), b, x);
        });
  });
}

Result<void> Sparse::run(const sparse::Spsm& op, const Call& call) {
  return with_triangle(op, call, [&]<class T>(T, const auto& triangle) {
    return services_.submit(call, [triangle, op, alpha = ScalarValue<T>(op.alpha, call),
                                   b = call.at<const T>(op.b), x = call.at<T>(op.x)] {
      auto known = triangle;
      known.find_lines();
      const bool b_by_column = op.order_b == blas::Order::column;
      const bool x_by_column = op.order_x == blas::Order::column;
      for (std::int64_t j = 0; j < op.columns; ++j) {
        known.solve(alpha.get(),
                    Column<const T>{b + j * (b_by_column ? op.ldb : 1), b_by_column ? 1 : op.ldb},
                    Column<T>{x + j * (x_by_column ? op.ldx : 1), x_by_column ? 1 : op.ldx});
      }
    });
  });
}

}  // namespace troupe::host::cpu
