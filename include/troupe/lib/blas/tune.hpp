#pragma once

#include <algorithm>
#include <bit>
#include <string_view>

#include <troupe/lib/blas/matmul.hpp>

/// Which of cuBLASLt's algorithms is the fastest for a product, by measuring them.
namespace troupe::blas {

/// What has come of a measurement.
struct MatmulTuning {
  std::int64_t candidates = 0;  ///< that were measured; 0: there is nothing to choose
  double seconds = 0;           ///< of one product by the one that is the fastest
  double seconds_before = 0;    ///< by the one that cuBLASLt proposes first
  std::uint64_t workspace = 0;  ///< bytes that the fastest one uses
  std::array<char, 96> its_name{};

  /// What the fastest one is: its number and its parameters. On the cpu engine "nothing to choose".
  [[nodiscard]] std::string_view name() const noexcept {
    const std::string_view all(its_name.data(), its_name.size());
    return all.substr(0, all.find('\0'));
  }
};
static_assert(sizeof(MatmulTuning) == 128);

/// Measures a product on scratch memory, but for A and B. From then on this product is computed
/// with what was the fastest, on this rank's device: also by later device hosts, and in later runs
/// (--tuning-cache). Blocks its library meanwhile.
struct TuneMatmul {
  static constexpr std::string_view kName = "blas.tune_matmul";
  static constexpr DTypes kDTypes = Matmul::kDTypes;
  static constexpr Traits kTraits{.repeatable = true, .blocking = true, .not_prepared = true};
  static constexpr std::uint32_t kMostCandidates = 64, kMostRepeats = 1000;
  /// Bits of `given`: a part of the product's tail, or C; or C is D.
  static constexpr std::uint32_t kC = Matmul::kParts, kInPlaceC = kC + 1;

  OpDType dtype;  ///< that of the product
  std::uint32_t candidates = 0, repeats = 0;
  std::uint32_t given = 0, reserved = 0;
  /// The alignment of a, b, c, d, bias and aux, as alignment_of() says it.
  std::array<std::uint16_t, 8> alignments{};
  Matmul product;  ///< without operands
  Scalar alpha, beta;
  Operand a, b, outcome;

  static constexpr std::array kOperands{
      read("alpha", &TuneMatmul::alpha), read("beta", &TuneMatmul::beta), read("a", &TuneMatmul::a),
      read("b", &TuneMatmul::b), write("outcome", &TuneMatmul::outcome)};
  static constexpr auto kCell = &TuneMatmul::outcome;
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    return &operand == &outcome ? sizeof(MatmulTuning) : 0;
  }
  [[nodiscard]] bool has(std::uint32_t bit) const noexcept { return (given >> bit & 1u) != 0; }
};

/// The largest power of two that divides an address, up to 256; that of nothing is 256.
constexpr std::uint16_t alignment_of(std::uint64_t address) noexcept {
  return static_cast<std::uint16_t>(
      1u << std::clamp(address == 0 ? 8 : std::countr_zero(address), 0, 8));
}

}  // namespace troupe::blas

namespace troupe {

/// How BlasTune::tune_matmul() measures.
struct TuneOptions {
  std::uint32_t candidates = 16;  ///< at most so many algorithms, those first that cuBLASLt prefers
  std::uint32_t repeats = 10;     ///< of each, three times
};

/// Measurements; see blas::TuneMatmul. Errors: as of the products; out_of_memory.
template <class Refs>
class BlasTune : public detail::Calls {
 public:
  template <Element T>
  using Matrix = MatrixRef<typename Refs::template To<T>>;
  template <Element T>
  using ScalarArgument = ScalarOf<typename Refs::template To<T>>;
  using Calls::Calls;

  /// The product that matmul() with the same arguments computes. What it writes is left alone.
  template <Element A, Element B, Element D>
  Future<blas::MatmulTuning> tune_matmul(const Matrix<A>& a, const Matrix<B>& b, const Matrix<D>& d,
                                         const MatmulOptions& options = {},
                                         const TuneOptions& how = {}) const {
    return tune(Product::template without_c<A, B, D>(a, b, d, options), options, how);
  }
  template <Element A, Element B, Element C, Element D>
  Future<blas::MatmulTuning> tune_matmul(ScalarArgument<detail::MatmulScaleOf<A, D>> alpha,
                                         const Matrix<A>& a, const Matrix<B>& b,
                                         ScalarArgument<detail::MatmulScaleOf<A, D>> beta,
                                         const Matrix<C>& c, const Matrix<D>& d,
                                         const MatmulOptions& options = {},
                                         const TuneOptions& how = {}) const {
    return tune(Product::template with_c<A, B, C, D>(alpha, a, b, beta, c, d, options), options,
                how);
  }

 private:
  using Product = detail::MatmulProduct<Refs>;

  Future<blas::MatmulTuning> tune(const Product& product, const MatmulOptions& options,
                                  const TuneOptions& how) const {
    const auto& whole = product.op;
    blas::TuneMatmul op;
    op.dtype = whole.dtype, op.candidates = how.candidates, op.repeats = how.repeats;
    std::size_t i = 0;
    for (const auto* range : {&whole.a, &whole.b, &whole.c, &whole.d, &whole.bias, &whole.aux})
      op.alignments[i++] = blas::alignment_of(range->offset);
    i = 0;
    for (const auto* part : {&options.scale_a, &options.scale_b, &options.scale_d, &options.amax_d})
      op.given |= (part->range.present() ? 1u : 0u) << i++;
    op.given |= (whole.c.present() ? 1u : 0u) << blas::TuneMatmul::kC;
    const bool in_place =
        whole.c.present() && whole.c.region == whole.d.region && whole.c.offset == whole.d.offset;
    op.given |= (in_place ? 1u : 0u) << blas::TuneMatmul::kInPlaceC;
    op.alpha = whole.alpha, op.beta = whole.beta, op.a = whole.a, op.b = whole.b;
    op.product = whole;
    op.product.alpha = op.product.beta = {};
    op.product.a = op.product.b = op.product.c = op.product.d = op.product.bias =
        op.product.aux = {};
    return detail::submit_with_cell<blas::MatmulTuning>(
        *submitter_, op, [&](const blas::TuneMatmul& with_cell) {
          return detail::submit_exact(*submitter_, info_of<blas::TuneMatmul>,
                                      std::as_bytes(std::span(&with_cell, 1)), product.lengths, {});
        });
  }
};

}  // namespace troupe
