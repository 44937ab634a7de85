#include <cmath>
#include <cstring>
#include <numbers>
#include <vector>

#include "common/core/narrow_float.hpp"
#include "lib/blas/common/products_cpu.hpp"

/// Products with epilogues on the cpu engine: X in f32, then what the epilogue does to it, rounded
/// once.
namespace troupe::host::cpu {
namespace {

using blas::Epilogue;

float in_f32(float x) {
  return x;
}
template <class T>
float in_f32(T x) {
  return widen(x);
}
template <class T>
T rounded(float x) {
  if constexpr (std::is_same_v<T, float>)
    return x;
  else
    return narrow<T>(x);
}

/// In the tanh form; see blas::Epilogue.
float gelu(float x) {
  const float inner = std::sqrt(2 / std::numbers::pi_v<float>) * (x + 0.044715f * x * x * x);
  const float part = 0.5f * (1 + std::tanh(inner));
  return part == 0 ? 0 : x * part;  // also at minus infinity
}
float gelu_slope(float x) {
  // Further out it is 1 or 0 exactly, and the powers below overflow.
  if (std::abs(x) > 64) return x > 0 ? 1.0f : 0.0f;
  const float root = std::sqrt(2 / std::numbers::pi_v<float>);
  const float tanh = std::tanh(root * (x + 0.044715f * x * x * x));
  return 0.5f * (1 + tanh) + 0.5f * x * (1 - tanh * tanh) * root * (1 + 3 * 0.044715f * x * x);
}

/// Matrices of any type by a function of row and column.
template <class T>
std::vector<float> widened_all(const T* matrix, std::int64_t rows, std::int64_t columns,
                               std::int64_t leading) {
  std::vector<float> all(static_cast<std::size_t>(rows * columns));
  for (std::int64_t j = 0; j < columns; ++j) {
    for (std::int64_t i = 0; i < rows; ++i)
      all[static_cast<std::size_t>(j * rows + i)] = in_f32(matrix[j * leading + i]);
  }
  return all;
}

/// Multiplies op(A) or op(B) of f8 by its scales, unless there is only one. `matrix` has k rows.
void scale_all(std::vector<float>& matrix, std::int64_t k, std::int64_t columns,
               blas::ScaleMode mode, const float* scales) {
  const auto blocks = (k + 127) / 128;
  for (std::int64_t j = 0; j < columns && mode != blas::ScaleMode::scalar; ++j) {
    for (std::int64_t l = 0; l < k; ++l) {
      const auto which = mode == blas::ScaleMode::vector ? j
                         : mode == blas::ScaleMode::block128
                             ? l / 128 * columns + j
                             : j / 128 * ((blocks + 3) / 4 * 4) + l / 128;
      matrix[static_cast<std::size_t>(j * k + l)] *= scales[which];
    }
  }
}

/// The addresses of a call, and its scalars.
struct Addresses {
  const std::byte *a, *b, *c;
  std::byte *d, *bias, *aux;
  const float *scale_a = nullptr, *scale_b = nullptr, *scale_d = nullptr;
  float* amax_d = nullptr;

  Addresses(const blas::Matmul& op, const Call& call)
      : a(call.at(op.a)),
        b(call.at(op.b)),
        c(op.c.present() ? call.at(op.c) : nullptr),
        d(call.at(op.d)),
        bias(op.bias.present() ? call.at(op.bias) : nullptr),
        aux(op.aux.present() ? call.at(op.aux) : nullptr) {
    for (const auto& part : call.tail()) {
      auto* const at = call.at<float>(part.range);
      switch (part.tag) {
        case blas::Matmul::scale_a: scale_a = at; break;
        case blas::Matmul::scale_b: scale_b = at; break;
        case blas::Matmul::scale_d: scale_d = at; break;
        default: amax_d = at;
      }
    }
  }
};

/// One element of aux, of matrix number `of` in the batch.
class Mask {
 public:
  Mask(const blas::Matmul& op, std::byte* aux, std::int64_t of)
      : leading_(op.ld_aux), aux_(aux + of * op.n * op.ld_aux / 8) {}
  [[nodiscard]] bool get(std::int64_t i, std::int64_t j) const {
    const auto bit = j * leading_ + i;
    return (static_cast<unsigned>(aux_[bit / 8]) >> (bit % 8) & 1u) != 0;
  }
  void set(std::int64_t i, std::int64_t j, bool value) const {
    const auto bit = j * leading_ + i;
    const auto one = std::byte{1} << static_cast<int>(bit % 8);
    aux_[bit / 8] = value ? aux_[bit / 8] | one : aux_[bit / 8] & ~one;
  }

 private:
  std::int64_t leading_;
  std::byte* aux_;
};

/// What the epilogue makes of x, element (i, j) of X. Bias is of B, aux of D unless it is a mask.
template <class B, class D>
float apply(const blas::Matmul& op, const Addresses& at, std::int64_t of, std::int64_t i,
            std::int64_t j, float x) {
  if (blas::bias_use(op.epilogue) == blas::EpilogueUse::read)
    x += in_f32(reinterpret_cast<const B*>(at.bias)[i]);
  auto* const numbers = reinterpret_cast<D*>(at.aux) + (of * op.n + j) * op.ld_aux + i;
  switch (op.epilogue) {
    case Epilogue::relu:
    case Epilogue::relu_bias: return std::max(x, 0.0f);
    case Epilogue::relu_aux:
    case Epilogue::relu_aux_bias: Mask(op, at.aux, of).set(i, j, x >= 0); return std::max(x, 0.0f);
    case Epilogue::gelu:
    case Epilogue::gelu_bias: return gelu(x);
    case Epilogue::gelu_aux:
    case Epilogue::gelu_aux_bias: *numbers = rounded<D>(x); return gelu(x);
    case Epilogue::drelu:
    case Epilogue::drelu_bgrad: return Mask(op, at.aux, of).get(i, j) ? x : 0.0f;
    case Epilogue::dgelu:
    case Epilogue::dgelu_bgrad: return x * gelu_slope(in_f32(*numbers));
    default: return x;
  }
}

/// A of A, B of B; C and D of their types; bias of Bias.
template <class A, class B, class C, class D, class Bias>
void multiply_in_f32(const blas::Matmul& op, float alpha, float beta, const Addresses& at) {
  const bool plain_a = op.transpose_a == blas::Transpose::no,
             plain_b = op.transpose_b == blas::Transpose::no;
  const auto rows_a = plain_a ? op.m : op.k, columns_a = plain_a ? op.k : op.m;
  const auto rows_b = plain_b ? op.k : op.n, columns_b = plain_b ? op.n : op.k;
  const auto scale = [](const float* where, blas::ScaleMode mode = blas::ScaleMode::scalar) {
    return where != nullptr && mode == blas::ScaleMode::scalar ? *where : 1.0f;
  };
  const float scale_d = scale(at.scale_d);
  const float scalar =
      alpha * scale(at.scale_a, op.scale_mode_a) * scale(at.scale_b, op.scale_mode_b);
  const blas::Gemm gemm{DType::f32,
                        op.transpose_a,
                        op.transpose_b,
                        op.m,
                        op.n,
                        op.k,
                        std::max<std::int64_t>(1, rows_a),
                        std::max<std::int64_t>(1, rows_b),
                        std::max<std::int64_t>(1, op.m),
                        {},
                        {},
                        {},
                        {},
                        {}};
  float largest = 0;
  for (std::int64_t of = 0; of < op.batch; ++of) {
    auto a =
        widened_all(reinterpret_cast<const A*>(at.a) + of * op.stride_a, rows_a, columns_a, op.lda);
    auto b =
        widened_all(reinterpret_cast<const B*>(at.b) + of * op.stride_b, rows_b, columns_b, op.ldb);
    scale_all(a, rows_a, columns_a, op.scale_mode_a, at.scale_a);
    scale_all(b, rows_b, columns_b, op.scale_mode_b, at.scale_b);
    std::vector<float> x(static_cast<std::size_t>(op.m * op.n));
    multiply(gemm, scalar, a.data(), b.data(), 0.0f, x.data());
    const auto* const c = reinterpret_cast<const C*>(at.c) + of * op.stride_c;
    auto* const d = reinterpret_cast<D*>(at.d) + of * op.stride_d;
    std::vector<float> sums(static_cast<std::size_t>(op.m));
    for (std::int64_t j = 0; j < op.n; ++j) {
      for (std::int64_t i = 0; i < op.m; ++i) {
        auto value = x[static_cast<std::size_t>(j * op.m + i)];
        if (beta != 0) value += beta * in_f32(c[j * op.ldc + i]);
        value = apply<Bias, D>(op, at, of, i, j, value);
        sums[static_cast<std::size_t>(i)] += value;
        largest = std::isnan(value) ? value : std::max(largest, std::abs(value));
        d[j * op.ldd + i] = rounded<D>(value * scale_d);
      }
    }
    if (blas::bias_use(op.epilogue) != blas::EpilogueUse::write) continue;
    const bool of_b = op.epilogue == Epilogue::bgrad_b;
    if (of_b || op.epilogue == Epilogue::bgrad_a) {
      const bool plain = of_b ? plain_b : !plain_a;  // a sum runs down a column in memory
      const auto& matrix = of_b ? b : a;
      const auto rows = of_b ? rows_b : rows_a;
      sums.assign(static_cast<std::size_t>(op.bias_length()), 0);
      for (std::int64_t i = 0; i < op.bias_length(); ++i) {
        for (std::int64_t l = 0; l < op.k; ++l)
          sums[static_cast<std::size_t>(i)] +=
              matrix[static_cast<std::size_t>(plain ? i * rows + l : l * rows + i)];
      }
    }
    std::transform(sums.begin(), sums.end(), reinterpret_cast<Bias*>(at.bias),
                   [](float sum) { return rounded<Bias>(sum); });
  }
  if (at.amax_d != nullptr) *at.amax_d = largest;
}

/// In the operation's own type, without an epilogue.
template <FieldElement T>
void multiply_plainly(blas::Matmul op, T alpha, T beta, const Addresses& at) {
  const auto ldc = op.ldc;
  for (std::int64_t of = 0; of < op.batch; ++of) {
    const auto* const c = reinterpret_cast<const T*>(at.c) + of * op.stride_c;
    auto* const d = reinterpret_cast<T*>(at.d) + of * op.stride_d;
    if (beta != T(0) && c != d) {
      for (std::int64_t j = 0; j < op.n; ++j) std::copy_n(c + j * ldc, op.m, d + j * op.ldd);
    }
    op.ldc = op.ldd;
    multiply(op, alpha, reinterpret_cast<const T*>(at.a) + of * op.stride_a,
             reinterpret_cast<const T*>(at.b) + of * op.stride_b, beta, d);
  }
}

/// A product of integers, rounded to the nearest, ties to even, within their range.
void multiply_bytes(const blas::Matmul& op, float alpha, float beta, const Addresses& at) {
  const auto* const a = reinterpret_cast<const std::int8_t*>(at.a);
  const auto* const b = reinterpret_cast<const std::int8_t*>(at.b);
  for (std::int64_t of = 0; of < op.batch; ++of) {
    const auto* const c = reinterpret_cast<const std::int8_t*>(at.c) + of * op.stride_c;
    auto* const d = reinterpret_cast<std::int8_t*>(at.d) + of * op.stride_d;
    for (std::int64_t j = 0; j < op.n; ++j) {
      for (std::int64_t i = 0; i < op.m; ++i) {
        const auto dot = static_cast<std::int32_t>(
            integer_dot(op, a + of * op.stride_a, b + of * op.stride_b, i, j));
        auto value = alpha * static_cast<float>(dot);
        if (beta != 0) value += beta * static_cast<float>(c[j * op.ldc + i]);
        d[j * op.ldd + i] = integer_of<std::int8_t>(value);
      }
    }
  }
}
void multiply_words(const blas::Matmul& op, std::int32_t alpha, std::int32_t beta,
                    const Addresses& at) {
  const auto* const c = reinterpret_cast<const std::int32_t*>(at.c);
  auto* const d = reinterpret_cast<std::int32_t*>(at.d);
  for (std::int64_t j = 0; j < op.n; ++j) {
    for (std::int64_t i = 0; i < op.m; ++i) {
      const auto before = beta == 0 ? 0u : static_cast<std::uint32_t>(c[j * op.ldc + i]);
      const auto dot = integer_dot(op, reinterpret_cast<const std::int8_t*>(at.a),
                                   reinterpret_cast<const std::int8_t*>(at.b), i, j);
      d[j * op.ldd + i] =
          static_cast<std::int32_t>(static_cast<std::uint32_t>(alpha) * dot + before);
    }
  }
}

/// A batch of matrices in memory, of elements of `size` bytes.
struct Matrices {
  std::int64_t rows, columns, leading, stride, batch;
  std::int64_t size;

  /// The same, column-major without gaps.
  [[nodiscard]] Matrices packed() const {
    return {rows, columns, std::max<std::int64_t>(1, rows), rows * columns, batch, size};
  }
};
/// Copies the elements of row-major matrices to column-major ones, or back.
void reorder(const Matrices& by_row, std::byte* rows, const Matrices& by_column, std::byte* columns,
             bool back) {
  for (std::int64_t of = 0; of < by_row.batch; ++of) {
    for (std::int64_t i = 0; i < by_row.rows; ++i) {
      for (std::int64_t j = 0; j < by_row.columns; ++j) {
        auto* const in_row = rows + (of * by_row.stride + i * by_row.leading + j) * by_row.size;
        auto* const in_column =
            columns + (of * by_column.stride + j * by_column.leading + i) * by_row.size;
        std::memcpy(back ? in_row : in_column, back ? in_column : in_row,
                    static_cast<std::size_t>(by_row.size));
      }
    }
  }
}
/// Calls multiply(op, at) for column-major matrices: those that are row-major as copies.
template <class Multiply>
void in_columns(blas::Matmul op, Addresses at, Multiply&& multiply) {
  std::array<std::vector<std::byte>, 4> copies;
  const auto copy = [&](std::vector<std::byte>& memory, blas::Order& order, const std::byte*& where,
                        std::int64_t rows, std::int64_t columns, std::int64_t& leading,
                        std::int64_t& stride, DType dtype, bool read) {
    const Matrices from{rows,   columns,  leading,
                        stride, op.batch, static_cast<std::int64_t>(size_of(dtype))};
    if (order == blas::Order::column || where == nullptr) return from;
    const auto to = from.packed();
    memory.resize(static_cast<std::size_t>(to.stride * to.batch * to.size));
    if (read) reorder(from, const_cast<std::byte*>(where), to, memory.data(), false);
    where = memory.data(), leading = to.leading, stride = to.stride, order = blas::Order::column;
    return from;
  };
  const bool plain_a = op.transpose_a == blas::Transpose::no,
             plain_b = op.transpose_b == blas::Transpose::no;
  copy(copies[0], op.order_a, at.a, plain_a ? op.m : op.k, plain_a ? op.k : op.m, op.lda,
       op.stride_a, op.dtype, true);
  copy(copies[1], op.order_b, at.b, plain_b ? op.k : op.n, plain_b ? op.n : op.k, op.ldb,
       op.stride_b, op.b_dtype, true);
  copy(copies[2], op.order_c, at.c, op.m, op.n, op.ldc, op.stride_c, op.c_dtype, true);
  const std::byte* d = at.d;
  auto* const result = at.d;
  const bool by_row = op.order_d == blas::Order::row;
  const auto there =
      copy(copies[3], op.order_d, d, op.m, op.n, op.ldd, op.stride_d, op.d_dtype, false);
  if (by_row) at.d = copies[3].data();
  multiply(op, at);
  if (by_row) reorder(there, result, there.packed(), copies[3].data(), true);
}

/// Calls visit(T{}) for the floating type of at most 32 bits that the dtype names.
template <class Visit>
Result<void> with_float(DType dtype, Visit&& visit) {
  switch (dtype) {
    case DType::f16: return visit(Half{});
    case DType::bf16: return visit(BFloat16{});
    case DType::f8e4m3: return visit(Float8E4M3{});
    case DType::f8e5m2: return visit(Float8E5M2{});
    default: return visit(float{});
  }
}

}  // namespace

/// OpenBLAS has one algorithm.
Result<void> run(const blas::TuneMatmul& op, const Call& call, Blas& library) {
  return library.services.submit(call, [outcome = call.at<blas::MatmulTuning>(op.outcome)] {
    *outcome = {};
    constexpr std::string_view kNothing = "nothing to choose";
    std::copy(kNothing.begin(), kNothing.end(), outcome->its_name.begin());
  });
}

Result<void> run(const blas::Matmul& op, const Call& call, Blas& library) {
  if (auto fits = require_int({op.m, op.n, op.k, op.lda, op.ldb, op.ldc, op.ldd}); !fits)
    return fits;
  if (op.m == 0 || op.n == 0 || op.batch == 0) return {};
  const Addresses at(op, call);
  const auto queue = [&]<class F>(F, auto&& work) {
    return library.services.submit(call, [op, work, at, alpha = ScalarValue<F>(op.alpha, call),
                                          beta = ScalarValue<F>(op.beta, call)] {
      in_columns(op, at, [&](const auto& by_column, const auto& places) {
        work(by_column, alpha.get(), beta.get(), places);
      });
    });
  };
  if (op.dtype == DType::i8) {
    return op.d_dtype == DType::i8 ? queue(float{}, multiply_bytes)
                                   : queue(std::int32_t{}, multiply_words);
  }
  if (op.dtype == DType::f64 || op.dtype == DType::c64 || op.dtype == DType::c128) {
    return with_number(op.dtype, [&]<class T>(T zero) {
      return queue(zero, [](const auto&... all) { multiply_plainly<T>(all...); });
    });
  }
  const auto in_f32 = [&]<class A, class B, class C, class D, class Bias>(A, B, C, D, Bias) {
    return queue(float{}, multiply_in_f32<A, B, C, D, Bias>);
  };
  if (op.dtype == DType::f32) return in_f32(0.0f, 0.0f, 0.0f, 0.0f, 0.0f);
  if (!blas::is_f8(op.dtype)) {
    return with_float(op.dtype, [&]<class A>(A a) {
      return op.d_dtype == DType::f32 ? in_f32(a, a, 0.0f, 0.0f, 0.0f) : in_f32(a, a, a, a, a);
    });
  }
  return with_float(op.dtype, [&]<class A>(A a) {
    return with_float(op.b_dtype, [&]<class B>(B b) {
      return with_float(op.d_dtype, [&]<class D>(D d) -> Result<void> {
        if constexpr (sizeof(A) == 1 && sizeof(B) == 1) {
          if constexpr (std::is_same_v<D, float>) return in_f32(a, b, d, d, BFloat16{});
          if constexpr (sizeof(D) == 2) return in_f32(a, b, d, d, d);
          if (op.c_dtype == DType::f16) return in_f32(a, b, Half{}, d, Half{});
          return in_f32(a, b, BFloat16{}, d, BFloat16{});
        } else {
          return Error{Errc::unsupported, 0, "blas.matmul: of f8 both matrices are"};
        }
      });
    });
  });
}

TROUPE_HANDLERS(Blas)

}  // namespace troupe::host::cpu
