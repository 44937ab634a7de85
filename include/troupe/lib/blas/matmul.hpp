#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include <troupe/lib/blas/gemm_ex.hpp>
#include <troupe/lib/blas/transform.hpp>

/// Products of matrices with something done to the result on its way to memory, by cuBLASLt
/// (https://docs.nvidia.com/cuda/cublas/#using-the-cublaslt-api).
namespace troupe::blas {

/// What is done to X = alpha op(A) op(B) + beta C before it becomes D. `bias` has an element for
/// each row of D; relu(x) = max(x, 0); gelu(x) = x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2.
enum class Epilogue : std::uint32_t {
  none,           ///< D = X
  relu,           ///< D = relu(X)
  gelu,           ///< D = gelu(X)
  bias,           ///< D = X + bias
  relu_bias,      ///< D = relu(X + bias)
  gelu_bias,      ///< D = gelu(X + bias)
  relu_aux,       ///< relu; aux: a bit for each element, 1 where X >= 0
  relu_aux_bias,  ///< relu_bias; aux: where X + bias >= 0
  gelu_aux,       ///< gelu; aux = X
  gelu_aux_bias,  ///< gelu_bias; aux = X + bias
  drelu,          ///< D = X where aux has a 1, else 0
  drelu_bgrad,    ///< drelu; bias = the sum of D's columns
  dgelu,          ///< D = X gelu'(aux)
  dgelu_bgrad,    ///< dgelu; bias = the sum of D's columns
  bgrad_a,        ///< D = X; bias = the sum of op(A)'s columns
  bgrad_b         ///< D = X; bias = the sum of op(B)'s rows, an element for each column of D
};
inline constexpr std::size_t kEpilogueCount = 16;

enum class EpilogueUse : std::uint8_t { none, read, write };
constexpr EpilogueUse bias_use(Epilogue epilogue) noexcept {
  switch (epilogue) {
    case Epilogue::bias:
    case Epilogue::relu_bias:
    case Epilogue::gelu_bias:
    case Epilogue::relu_aux_bias:
    case Epilogue::gelu_aux_bias: return EpilogueUse::read;
    case Epilogue::drelu_bgrad:
    case Epilogue::dgelu_bgrad:
    case Epilogue::bgrad_a:
    case Epilogue::bgrad_b: return EpilogueUse::write;
    default: return EpilogueUse::none;
  }
}
constexpr EpilogueUse aux_use(Epilogue epilogue) noexcept {
  if (epilogue >= Epilogue::relu_aux && epilogue <= Epilogue::gelu_aux_bias)
    return EpilogueUse::write;
  return epilogue >= Epilogue::drelu && epilogue <= Epilogue::dgelu_bgrad ? EpilogueUse::read
                                                                          : EpilogueUse::none;
}
/// Its aux is a matrix of bits, not of numbers.
constexpr bool has_mask(Epilogue epilogue) noexcept {
  return epilogue == Epilogue::relu_aux || epilogue == Epilogue::relu_aux_bias ||
         epilogue == Epilogue::drelu || epilogue == Epilogue::drelu_bgrad;
}

/// How many elements of an A or B of f8 have one scale, and where that stands; L = k / 128,
/// rounded up.
enum class ScaleMode : std::uint32_t {
  scalar,         ///< of all
  vector,         ///< of a row of op(A) or a column of op(B): m or n scales
  block128,       ///< of 128 elements of such a row or column: m x L or n x L, column-major
  block128x128,   ///< of 128 rows or columns, too: L x m / 128 or L x n / 128, rounded up,
                  ///< column-major; the leading dimension is L rounded up to a multiple of 4
  block32_ue8m0,  ///< MX formats: unsupported
  block16_ue4m3   ///< of f4: unsupported
};
inline constexpr std::size_t kScaleModeCount = 6;

constexpr bool is_f8(DType dtype) noexcept {
  return dtype == DType::f8e4m3 || dtype == DType::f8e5m2;
}
/// Whether there are products of matrices of a and b, with c added, into one of d.
constexpr bool multiplies(DType a, DType b, DType c, DType d) noexcept {
  if (is_f8(a)) {
    if (!is_f8(b) || (a == DType::f8e5m2 && b == a)) return false;
    if (is_f8(d)) return (c == DType::f16 || c == DType::bf16) && (d == DType::f8e4m3 || a != b);
    return c == d && (d == DType::f16 || d == DType::bf16 || d == DType::f32);
  }
  if (b != a || c != d) return false;
  if (a == DType::f16 || a == DType::bf16) return d == a || d == DType::f32;
  if (a == DType::i8) return d == DType::i32 || d == DType::i8;
  return d == a && (a == DType::f32 || a == DType::f64 || a == DType::c64 || a == DType::c128);
}
/// What is computed in unless a call says otherwise.
constexpr Compute usual_compute(DType a) noexcept {
  if (a == DType::f64 || a == DType::c128) return Compute::f64;
  return a == DType::i8 ? Compute::i32 : Compute::f32;
}
/// What alpha and beta are.
constexpr DType matmul_scale_type(DType a, DType d) noexcept {
  if (a == DType::i8) return d;  // but i8, of which there are no scalars: see below
  return a == DType::f64 || a == DType::c64 || a == DType::c128 ? a : DType::f32;
}
/// What bias is: D's type; where A is of 8 bits 16 bits.
constexpr DType bias_type(DType a, DType c, DType d) noexcept {
  if (!is_f8(a)) return d;
  return d == DType::f32 ? DType::bf16 : c;
}

/// D = scale_d epilogue(alpha scale_a scale_b op(A) op(B) + beta C) for `batch` matrices that lie
/// strides apart, each column- or row-major. D may be C. Factors are of f32; of f64, c64 and c128
/// in their own type; into i32 of i32, and then 0 or 1 by value, with one batch and n <= 65536. Of
/// integers C and D have the same order and leading dimension.
///
/// aux has n columns ld_aux elements apart: bits, the first of a byte its lowest, ld_aux a multiple
/// of 128; or numbers of D's type, ld_aux a multiple of 8. A batch's aux stand one behind another;
/// one bias serves them all, and a bias that is written allows one batch. Epilogues are for f16,
/// bf16, f32 and f8; those with an aux, and those that write a bias, for a column-major D.
///
/// f8: all are column-major; op(A) is a transpose and op(B) is not; m, n, k, the leading dimensions
/// and the addresses are multiples of 16; the tail has scales and where the largest absolute values
/// of the epilogue's result, before it is scaled, are put: each one element of f32. Results beyond
/// the range saturate. Scales of A and B may be more than one, see ScaleMode: both vectors, or both
/// of blocks of which at most one is 128 x 128; they are aligned to 16 bytes, the batch is one, and
/// D is of 16 or 32 bits.
struct Matmul {
  static constexpr std::string_view kName = "blas.matmul";
  static constexpr DTypes kDTypes =
      DTypes::of({DType::f16, DType::bf16, DType::f32, DType::f64, DType::c64, DType::c128,
                  DType::i8, DType::f8e4m3, DType::f8e5m2});
  static constexpr Traits kTraits = kComputesRecorded;
  static constexpr std::string_view kTail = "scale";
  /// What an operand of the tail is.
  enum Part : std::uint32_t { scale_a, scale_b, scale_d, amax_d };
  static constexpr std::uint32_t kParts = 4;

  OpDType dtype;  ///< of A
  OpDType b_dtype, c_dtype, d_dtype;
  Compute compute{};
  Epilogue epilogue{};
  Transpose transpose_a{}, transpose_b{};
  std::uint32_t fast_accumulation = 0;  ///< 1: f8 is added up in fewer bits
  Order order_a{}, order_b{}, order_c{}, order_d{};
  ScaleMode scale_mode_a{}, scale_mode_b{};
  std::int64_t m = 0, n = 0, k = 0, lda = 0, ldb = 0, ldc = 0, ldd = 0, ld_aux = 0;
  std::int64_t batch = 1, stride_a = 0, stride_b = 0, stride_c = 0, stride_d = 0;
  Scalar alpha, beta;
  Operand a, b, c, d, bias, aux;  ///< c may be absent if beta is 0 by value

  static constexpr std::array kOperands{read("alpha", &Matmul::alpha), read("beta", &Matmul::beta),
                                        read("a", &Matmul::a),         read("b", &Matmul::b),
                                        read("c", &Matmul::c),         update("d", &Matmul::d),
                                        update("bias", &Matmul::bias), update("aux", &Matmul::aux)};
  static constexpr auto kInPlace = std::array{InPlace{"c", "d"}};  ///< with equal layouts
  Result<void> check() const;
  Result<void> check_parts(const Parts& parts) const;
  [[nodiscard]] DType scale() const noexcept {
    return dtype == DType::i8 && d_dtype == DType::i8 ? DType::f32
                                                      : matmul_scale_type(dtype, d_dtype);
  }
  [[nodiscard]] Access access(const Operand& range, Access declared) const noexcept {
    const auto of = [](EpilogueUse use) {
      return use == EpilogueUse::write ? Access::write : Access::read;
    };
    if (&range == &bias) return of(bias_use(epilogue));
    if (&range == &aux)
      return aux_use(epilogue) == EpilogueUse::write ? Access::update : Access::read;
    return &range == &d && is_whole() ? Access::write : declared;
  }
  /// D has no gaps.
  [[nodiscard]] bool is_whole() const noexcept {
    return ldd == (order_d == Order::column ? m : n) && (batch <= 1 || stride_d == m * n);
  }
  [[nodiscard]] std::uint64_t written(const Operand& range) const noexcept {
    if (&range == &bias && bias_use(epilogue) == EpilogueUse::write)
      return static_cast<std::uint64_t>(bias_length()) *
             size_of(bias_type(dtype, c_dtype, d_dtype));
    if (&range != &d || !is_whole()) return 0;
    return static_cast<std::uint64_t>(m * n * batch) * size_of(d_dtype);
  }
  [[nodiscard]] std::int64_t bias_length() const noexcept {
    return epilogue == Epilogue::bgrad_b ? n : m;
  }
  /// How many numbers a part of the tail has.
  [[nodiscard]] std::int64_t scales(std::uint32_t part) const noexcept {
    const auto mode = part == scale_a   ? scale_mode_a
                      : part == scale_b ? scale_mode_b
                                        : ScaleMode::scalar;
    const auto lines = part == scale_a ? m : n, blocks = (k + 127) / 128;
    switch (mode) {
      case ScaleMode::vector: return lines;
      case ScaleMode::block128: return lines * blocks;
      case ScaleMode::block128x128: return (blocks + 3) / 4 * 4 * ((lines + 127) / 128);
      default: return 1;
    }
  }
  [[nodiscard]] static std::uint64_t tail_written(const TailOperand& part) noexcept {
    return part.written() ? sizeof(float) : 0;
  }
};

}  // namespace troupe::blas

namespace troupe {

namespace detail {
template <class A, class D>
using MatmulScaleOf =
    std::conditional_t<std::is_same_v<A, std::int8_t>,
                       std::conditional_t<std::is_same_v<D, std::int32_t>, std::int32_t, float>,
                       std::conditional_t<FieldElement<A>, A, float>>;
}  // namespace detail

/// A buffer of any type, as an option of a call.
struct AnyBuffer {
  Operand range;
  DType dtype{};
  AnyBuffer() = default;
  template <class Ref>
  requires requires(const Ref& ref) { ref.operand(); }
  AnyBuffer(const Ref& ref) : range(ref.operand()), dtype(dtype_of<typename Ref::value_type>) {}
};

/// What BlasMatmul::matmul() does beside multiplying.
struct MatmulOptions {
  blas::Transpose transpose_a = blas::Transpose::no, transpose_b = blas::Transpose::no;
  blas::Order order_a = blas::Order::column, order_b = blas::Order::column,
              order_c = blas::Order::column, order_d = blas::Order::column;
  /// Nothing: f32; f64 of f64 and c128, i32 of i8.
  std::optional<blas::Compute> compute = {};
  blas::Epilogue epilogue = blas::Epilogue::none;
  AnyBuffer bias = {};      ///< read, or written, as the epilogue says
  AnyBuffer aux = {};       ///< likewise; bits in a buffer of u8
  std::int64_t ld_aux = 0;  ///< 0: the least that is allowed
  /// So many matrices, strides apart. A stride of 0: the matrices stand one behind another.
  std::int64_t batch = 1, stride_a = 0, stride_b = 0, stride_c = 0, stride_d = 0;
  /// Scales in f32 for operands of f8: one, or as many as the mode says; absent: 1.
  AnyBuffer scale_a = {}, scale_b = {}, scale_d = {};
  blas::ScaleMode scale_mode_a = blas::ScaleMode::scalar, scale_mode_b = blas::ScaleMode::scalar;
  AnyBuffer amax_d = {};           ///< of f8 results: where their largest absolute value is put
  bool fast_accumulation = false;  ///< f8: quicker, and up to 2 % less precise
};

namespace blas {
/// What is wrong with the types of the buffers among the options; empty: nothing.
std::string wrong_type(const Matmul& op, const MatmulOptions& options);
}  // namespace blas

namespace detail {
/// A product of matrices, and what its arguments' lengths must be.
template <class Refs>
class MatmulProduct {
 public:
  template <Element T>
  using Matrix = MatrixRef<typename Refs::template To<T>>;
  template <Element T>
  using ScalarArgument = ScalarOf<typename Refs::template To<T>>;

  blas::Matmul op;
  std::vector<Length> lengths;

  template <Element A, Element B, Element D>
  static MatmulProduct without_c(const Matrix<A>& a, const Matrix<B>& b, const Matrix<D>& d,
                                 const MatmulOptions& options) {
    constexpr auto c = blas::is_f8(dtype_of<D>) ? DType::bf16 : dtype_of<D>;
    static_assert(blas::multiplies(dtype_of<A>, dtype_of<B>, c, dtype_of<D>),
                  "there is no product of matrices of these types");
    auto op = product(a, b, d, options);
    using Scale = MatmulScaleOf<A, D>;
    op.c_dtype = c;
    op.ldc = op.ldd, op.stride_c = op.stride_d, op.order_c = op.order_d;
    op.alpha = ScalarArgument<Scale>(Scale(1)).wire(),
    op.beta = ScalarArgument<Scale>(Scale(0)).wire();
    return {op, shapes_of(a, b, d, options)};
  }
  template <Element A, Element B, Element C, Element D>
  static MatmulProduct with_c(const ScalarArgument<MatmulScaleOf<A, D>>& alpha, const Matrix<A>& a,
                              const Matrix<B>& b, const ScalarArgument<MatmulScaleOf<A, D>>& beta,
                              const Matrix<C>& c, const Matrix<D>& d,
                              const MatmulOptions& options) {
    static_assert(blas::multiplies(dtype_of<A>, dtype_of<B>, dtype_of<C>, dtype_of<D>),
                  "there is no product of matrices of these types");
    auto op = product(a, b, d, options);
    op.c_dtype = dtype_of<C>;
    op.ldc = c.leading, op.c = c.buffer.operand(), op.order_c = options.order_c;
    op.stride_c = options.stride_c != 0 ? options.stride_c : blas::stride_of(c, op.order_c);
    op.alpha = alpha.wire(), op.beta = beta.wire();
    auto lengths = shapes_of(a, b, d, options);
    lengths.push_back({"a column of c", c.rows, d.rows});
    lengths.push_back({"a row of c", c.columns, d.columns});
    return {op, std::move(lengths)};
  }

 private:
  template <Element A, Element B, Element D>
  static blas::Matmul product(const Matrix<A>& a, const Matrix<B>& b, const Matrix<D>& d,
                              const MatmulOptions& options) {
    const auto stride = [](std::int64_t given, const auto& matrix, blas::Order order) {
      return given != 0 ? given : blas::stride_of(matrix, order);
    };
    const bool plain_a = options.transpose_a == blas::Transpose::no;
    blas::Matmul op;
    op.dtype = dtype_of<A>, op.b_dtype = dtype_of<B>, op.d_dtype = dtype_of<D>;
    op.compute = options.compute.value_or(blas::usual_compute(dtype_of<A>));
    op.epilogue = options.epilogue;
    op.transpose_a = options.transpose_a, op.transpose_b = options.transpose_b;
    op.fast_accumulation = options.fast_accumulation ? 1 : 0;
    op.scale_mode_a = options.scale_mode_a, op.scale_mode_b = options.scale_mode_b;
    op.m = d.rows, op.n = d.columns, op.k = plain_a ? a.columns : a.rows;
    op.lda = a.leading, op.ldb = b.leading, op.ldd = d.leading;
    op.batch = options.batch;
    op.order_a = options.order_a, op.order_b = options.order_b, op.order_d = options.order_d;
    op.stride_a = stride(options.stride_a, a, op.order_a);
    op.stride_b = stride(options.stride_b, b, op.order_b);
    op.stride_d = stride(options.stride_d, d, op.order_d);
    op.a = a.buffer.operand(), op.b = b.buffer.operand(), op.d = d.buffer.operand();
    if (blas::bias_use(op.epilogue) != blas::EpilogueUse::none) op.bias = options.bias.range;
    if (blas::aux_use(op.epilogue) != blas::EpilogueUse::none) {
      const std::int64_t unit = blas::has_mask(op.epilogue) ? 128 : 8;
      op.aux = options.aux.range;
      op.ld_aux = options.ld_aux != 0 ? options.ld_aux : (op.m + unit - 1) / unit * unit;
    }
    return op;
  }
  template <Element A, Element B, Element D>
  static std::vector<Length> shapes_of(const Matrix<A>& a, const Matrix<B>& b, const Matrix<D>& d,
                                       const MatmulOptions& options) {
    const bool plain_a = options.transpose_a == blas::Transpose::no,
               plain_b = options.transpose_b == blas::Transpose::no;
    return {{"a column of op(a)", plain_a ? a.rows : a.columns, d.rows},
            {"a column of op(b)", plain_b ? b.rows : b.columns, plain_a ? a.columns : a.rows},
            {"a row of op(b)", plain_b ? b.columns : b.rows, d.columns}};
  }
};
}  // namespace detail

/// Products with epilogues; see blas::Matmul. Errors: invalid, unsupported (types that the library
/// does not combine, or no algorithm of it for these shapes), those of any command.
template <class Refs>
class BlasMatmul : public detail::Calls {
 public:
  template <Element T>
  using Matrix = MatrixRef<typename Refs::template To<T>>;
  template <Element T>
  using ScalarArgument = ScalarOf<typename Refs::template To<T>>;
  using Calls::Calls;

  /// D = epilogue(op(A) op(B))
  template <Element A, Element B, Element D>
  Future<void> matmul(const Matrix<A>& a, const Matrix<B>& b, const Matrix<D>& d,
                      const MatmulOptions& options = {}) const {
    return submit(Product::template without_c<A, B, D>(a, b, d, options), options);
  }
  /// D = epilogue(alpha op(A) op(B) + beta C)
  template <Element A, Element B, Element C, Element D>
  Future<void> matmul(ScalarArgument<detail::MatmulScaleOf<A, D>> alpha, const Matrix<A>& a,
                      const Matrix<B>& b, ScalarArgument<detail::MatmulScaleOf<A, D>> beta,
                      const Matrix<C>& c, const Matrix<D>& d,
                      const MatmulOptions& options = {}) const {
    return submit(Product::template with_c<A, B, C, D>(alpha, a, b, beta, c, d, options), options);
  }

 private:
  using Product = detail::MatmulProduct<Refs>;

  Future<void> submit(const Product& product, const MatmulOptions& options) const {
    const auto& op = product.op;
    std::vector<TailOperand> parts;
    const auto add = [&](blas::Matmul::Part part, const AnyBuffer& buffer, Access access) {
      if (buffer.range.present()) parts.push_back({buffer.range, part, access, {}});
    };
    add(blas::Matmul::scale_a, options.scale_a, Access::read);
    add(blas::Matmul::scale_b, options.scale_b, Access::read);
    add(blas::Matmul::scale_d, options.scale_d, Access::read);
    add(blas::Matmul::amax_d, options.amax_d, Access::write);
    if (const auto wrong = blas::wrong_type(op, options); !wrong.empty())
      return submitter_->refuse(
          {Errc::invalid, 0, std::string(blas::Matmul::kName) + ": " + wrong});
    return detail::submit_exact(*submitter_, info_of<blas::Matmul>,
                                std::as_bytes(std::span(&op, 1)), product.lengths, {},
                                Parts(parts, {}));
  }
};

}  // namespace troupe
