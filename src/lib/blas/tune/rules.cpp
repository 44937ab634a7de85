#include <bit>

#include "lib/blas/common/checks.hpp"

namespace troupe::blas {
namespace {

/// In place of what the measurement provides itself.
Operand anywhere(std::uint32_t region) {
  return {region, 0, 0, 0, 0, std::uint64_t{1} << 62};
}

/// The product as it will be.
Result<void> check_product(const TuneMatmul& op) {
  auto product = op.product;
  product.alpha = op.alpha, product.beta = op.beta, product.a = op.a, product.b = op.b;
  product.d = anywhere(1), product.bias = anywhere(3), product.aux = anywhere(4);
  product.c = {};
  if (op.has(TuneMatmul::kC)) product.c = anywhere(op.has(TuneMatmul::kInPlaceC) ? 1 : 2);
  if (auto sound = product.check(); !sound) return sound;
  std::vector<TailOperand> tail;
  for (std::uint32_t part = 0; part < Matmul::kParts; ++part) {
    if (op.has(part)) {
      tail.push_back(
          {anywhere(5 + part), part, part == Matmul::amax_d ? Access::write : Access::read, {}});
    }
  }
  return product.check_parts(Parts(tail));
}

}  // namespace

Result<void> TuneMatmul::check() const {
  auto checks = checker(*this);
  checks.require(dtype.value == product.dtype.value, "the dtype is not that of the product")
      .require(candidates >= 1 && candidates <= kMostCandidates, "candidates are 1 to 64")
      .require(repeats >= 1 && repeats <= kMostRepeats, "repeats are 1 to 1000")
      .require(given >> (kInPlaceC + 1) == 0 && (!has(kInPlaceC) || has(kC)),
               "unknown operands of the product");
  for (std::size_t i = 0; i < 6; ++i)
    checks.require(std::has_single_bit(alignments[i]) && alignments[i] <= 256,
                   "an alignment is no power of two up to 256");
  if (checks.ok()) checks.holds("outcome", outcome, 1, sizeof(MatmulTuning));
  if (!checks.ok()) return checks.result();
  auto sound = check_product(*this);
  if (sound.ok()) return sound;
  const auto& error = sound.error();
  return Error{error.code, error.native,
               std::string(kName) +
                   error.message.substr(std::min(error.message.size(), Matmul::kName.size()))};
}

}  // namespace troupe::blas
