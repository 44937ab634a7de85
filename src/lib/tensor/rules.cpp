#include <troupe/lib/operation_table.hpp>
#include <troupe/lib/tensor.hpp>

#include <algorithm>
#include <bit>
#include <string>

#include "common/wire/checker.hpp"

namespace troupe::tensor {

using wire::checker;

namespace {

using wire::Checker;

/// The modes that a tensor has, of more than one element, by ascending stride.
class ByStride {
 public:
  ByStride(std::size_t count, const PerMode& extents, const PerMode& strides) noexcept {
    for (std::size_t i = 0; i < count; ++i) {
      if (extents[i] == 1 || strides[i] == 0) continue;
      auto to = count_++;
      for (; to > 0 && strides[order_[to - 1]] > strides[i]; --to) order_[to] = order_[to - 1];
      order_[to] = static_cast<std::uint8_t>(i);
    }
  }
  [[nodiscard]] const std::uint8_t* begin() const noexcept { return order_.data(); }
  [[nodiscard]] const std::uint8_t* end() const noexcept { return order_.data() + count_; }

 private:
  std::size_t count_ = 0;
  std::array<std::uint8_t, kMaxModes> order_;
};

/// What is wrong with the modes of one operation. Every command is checked: words are put together
/// for what is wrong alone.
class ModeChecks {
 public:
  template <std::size_t Tensors>
  ModeChecks(Checker& checks, const Loops<Tensors>& loops)
      : checks_(checks), extents_(loops.extents), count_(static_cast<std::size_t>(loops.count)) {
    if (loops.count < 0 || count_ > kMaxModes)
      checks.require(false, "more than " + std::to_string(kMaxModes) + " modes");
    if (!checks.ok()) return;
    std::int64_t smallest = 0, largest = 0, behind = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      smallest = std::min(smallest, extents_[i]), largest = std::max(largest, extents_[i]);
      for (const auto& strides : loops.strides)
        smallest = std::min(smallest, strides[i]), largest = std::max(largest, strides[i]);
    }
    for (std::size_t i = count_; i < kMaxModes; ++i) {
      behind |= extents_[i];
      for (const auto& strides : loops.strides) behind |= strides[i];
    }
    checks.require(smallest == 0, "an extent or a stride is negative")
        .require(largest <= Checker::kMaxCount, "an extent or a stride is too large")
        .require(behind == 0, "an extent or a stride behind the last mode is not 0");
  }

  /// `operand` must hold such a tensor.
  ModeChecks& tensor(std::string_view name, const Operand& operand, const PerMode& strides,
                     DType dtype) {
    if (!checks_.ok()) return *this;
    if (lacks_elements(strides)) {
      checks_.holds(name, operand, 0, size_of(dtype));
      return *this;
    }
    std::int64_t covered = 1;  // elements from the first to the end of the last
    for (const auto i : ByStride(count_, extents_, strides)) {
      std::int64_t step = 0;
      if (strides[i] < covered) return refuse(name, ": elements of it lie in one place");
      if (__builtin_mul_overflow(extents_[i] - 1, strides[i], &step) ||
          step > Checker::kMaxCount - covered)
        return refuse(name, " is too large");
      covered += step;
    }
    checks_.holds(name, operand, covered, size_of(dtype));
    return *this;
  }
  /// True if a tensor has a mode of no elements.
  [[nodiscard]] bool lacks_elements(const PerMode& strides) const {
    for (std::size_t i = 0; i < count_; ++i) {
      if (extents_[i] == 0 && strides[i] > 0) return true;
    }
    return false;
  }
  /// `holds(i)` for each mode of other than one element.
  template <class Holds>
  ModeChecks& each(const Holds& holds, std::string_view otherwise) {
    for (std::size_t i = 0; i < count_ && checks_.ok(); ++i)
      checks_.require(extents_[i] == 1 || holds(i), otherwise);
    return *this;
  }

 private:
  ModeChecks& refuse(std::string_view name, std::string_view what) {
    checks_.require(false, std::string(name) + std::string(what));
    return *this;
  }

  Checker& checks_;
  const PerMode& extents_;
  std::size_t count_;
};

bool is_complex(DType dtype) {
  return dtype == DType::c64 || dtype == DType::c128;
}
void add_unary(Checker& checks, DType dtype, std::initializer_list<Unary> all) {
  for (const auto one : all) {
    checks.require(static_cast<std::size_t>(one) < kUnaryCount, "unknown unary operator")
        .require(!is_complex(dtype) || one <= Unary::conj,
                 "complex numbers have identity and conj alone");
  }
}
/// Of what is added up.
void add_simple_unary(Checker& checks, std::initializer_list<Unary> all) {
  for (const auto one : all)
    checks.require(one <= Unary::conj, "its unary operators are identity and conj");
}
void add_binary(Checker& checks, DType dtype, std::initializer_list<Binary> all) {
  for (const auto one : all) {
    checks.require(static_cast<std::size_t>(one) < kBinaryCount, "unknown binary operator")
        .require(!is_complex(dtype) || one <= Binary::mul,
                 "complex numbers are neither large nor small");
  }
}
/// Of functions of elements.
void add_result(Checker& checks, DType dtype, DType d_dtype) {
  checks.require(kDTypes.has(d_dtype) && combines(dtype, d_dtype),
                 "c and d are of the type of a, or of half its bits");
}
void add_scalar(Checker& checks, const char* name, const Scalar& scalar) {
  if (scalar.device.present())
    checks.require(false,
                   std::string(name) + " is an element of device memory: the host must know it");
}
void add_compute(Checker& checks, DType dtype, Compute compute) {
  checks.require(static_cast<std::size_t>(compute) < kComputeCount, "unknown precision");
  if (!computes(dtype, compute))
    checks.require(false, "products of " + std::string(to_string(dtype)) + " are not computed so");
}
/// What is added: of the result's layout, absent only where its factor is 0.
void add_addend(ModeChecks& modes, std::string_view name, const Operand& operand,
                const Scalar& factor, const PerMode& strides, DType dtype) {
  if (operand.present() || !factor.is_zero(scalar_type(dtype)))
    modes.tensor(name, operand, strides, dtype);
}

}  // namespace

std::uint64_t whole_bytes(std::int64_t count, const PerMode& extents, const PerMode& strides,
                          DType dtype) noexcept {
  std::int64_t covered = 1;
  for (const auto i : ByStride(static_cast<std::size_t>(count), extents, strides)) {
    if (strides[i] != covered) return 0;
    covered *= extents[i];
  }
  return static_cast<std::uint64_t>(covered) * size_of(dtype);
}

Result<void> Contract::check() const {
  auto checks = checker(*this);
  if (!checks.ok()) return checks.result();
  add_compute(checks, dtype, compute);
  checks
      .require(real == RealFactor::none ||
                   (real <= RealFactor::b && dtype == DType::c128 && compute == Compute::standard),
               "a real factor is of f64, the others of c128, and they are computed so")
      .require(static_cast<std::size_t>(algorithm.method) < kMethodCount && algorithm.compiled <= 1,
               "unknown algorithm")
      .require(algorithm.rank < kMostRanks, "the rank of its kernel is 0 to 63");
  add_simple_unary(checks, {unary_a, unary_b});
  add_scalar(checks, "alpha", alpha);
  add_scalar(checks, "beta", beta);
  ModeChecks modes(checks, loops);
  const auto& [in_a, in_b, in_d] = loops.strides;
  modes
      .each([&](auto i) { return in_d[i] == 0 || in_a[i] + in_b[i] > 0; },
            "a mode of d is in neither a nor b")
      .each([&](auto i) { return in_d[i] > 0 || (in_a[i] > 0 && in_b[i] > 0); },
            "a mode that d does not have is not in both a and b");
  modes.tensor("a", a, in_a, a_dtype()).tensor("b", b, in_b, b_dtype());
  add_addend(modes, "c", c, beta, in_d, dtype);
  modes.tensor("d", d, in_d, dtype);
  return checks.result();
}

Result<void> TuneContract::check() const {
  auto checks = checker(*this);
  checks.require(dtype.value == product.dtype.value, "the dtype is not that of the product")
      .require(candidates >= 1 && candidates <= kMostCandidates, "candidates are 1 to 256")
      .require(repeats >= 1 && repeats <= kMostRepeats, "repeats are 1 to 1000")
      .require(again <= 1, "it is measured again or not")
      .require(std::has_single_bit(alignment_d) && alignment_d <= 256,
               "an alignment is no power of two up to 256");
  constexpr std::size_t kWord = alignof(ContractTuning);
  constexpr std::int64_t kWords = sizeof(ContractTuning) / kWord;
  if (checks.ok()) checks.holds("outcome", outcome, kWords, kWord);
  if (!checks.ok()) return checks.result();
  auto whole = product;
  whole.a = a, whole.b = b, whole.d = {1, 0, 0, 0, 0, std::uint64_t{1} << 62};  // large enough
  auto sound = whole.check();
  if (sound.ok()) return sound;
  const auto& error = sound.error();
  return Error{error.code, error.native,
               std::string(kName) + error.message.substr(Contract::kName.size())};
}

Result<void> ContractTrinary::check() const {
  auto checks = checker(*this);
  if (!checks.ok()) return checks.result();
  add_compute(checks, dtype, compute);
  add_simple_unary(checks, {unary_a, unary_b, unary_c});
  add_scalar(checks, "alpha", alpha);
  add_scalar(checks, "beta", beta);
  ModeChecks modes(checks, loops);
  const auto& [in_a, in_b, in_c, in_e] = loops.strides;
  const auto inputs = [&](std::size_t i) {
    return (in_a[i] > 0 ? 1 : 0) + (in_b[i] > 0 ? 1 : 0) + (in_c[i] > 0 ? 1 : 0);
  };
  modes
      .each([&](auto i) { return in_e[i] == 0 || inputs(i) > 0; },
            "a mode of e is in none of a, b and c")
      .each([&](auto i) { return in_e[i] > 0 || inputs(i) >= 2; },
            "a mode that e does not have is not in two of a, b and c");
  modes.tensor("a", a, in_a, dtype).tensor("b", b, in_b, dtype).tensor("c", c, in_c, dtype);
  add_addend(modes, "d", d, beta, in_e, dtype);
  modes.tensor("e", e, in_e, dtype);
  return checks.result();
}

Result<void> Reduce::check() const {
  auto checks = checker(*this);
  if (!checks.ok()) return checks.result();
  add_binary(checks, dtype, {reduction});
  add_simple_unary(checks, {unary_a});
  add_scalar(checks, "alpha", alpha);
  add_scalar(checks, "beta", beta);
  ModeChecks modes(checks, loops);
  modes.each([&](auto i) { return loops.strides[kA][i] > 0; }, "a mode is not in a");
  if (checks.ok() && (reduction == Binary::max || reduction == Binary::min) &&
      modes.lacks_elements(loops.strides[kA]) && !modes.lacks_elements(loops.strides[kD]))
    checks.require(false, "no elements have a largest or a smallest one");
  modes.tensor("a", a, loops.strides[kA], dtype);
  add_addend(modes, "c", c, beta, loops.strides[kD], dtype);
  modes.tensor("d", d, loops.strides[kD], dtype);
  return checks.result();
}

Result<void> Permute::check() const {
  auto checks = checker(*this);
  if (!checks.ok()) return checks.result();
  checks.require(kDTypes.has(b_dtype) && converts(dtype, b_dtype),
                 "there is no conversion between these types");
  add_unary(checks, dtype, {unary_a});
  add_scalar(checks, "alpha", alpha);
  ModeChecks modes(checks, loops);
  modes.each([&](auto i) { return loops.strides[kB][i] > 0; }, "a mode is not in b");
  modes.tensor("a", a, loops.strides[kA], dtype).tensor("b", b, loops.strides[kB], b_dtype);
  return checks.result();
}

Result<void> ElementwiseBinary::check() const {
  auto checks = checker(*this);
  if (!checks.ok()) return checks.result();
  add_result(checks, dtype, d_dtype);
  add_binary(checks, dtype, {function});
  add_unary(checks, dtype, {unary_a, unary_c});
  add_scalar(checks, "alpha", alpha);
  add_scalar(checks, "gamma", gamma);
  ModeChecks modes(checks, loops);
  modes.each([&](auto i) { return loops.strides[kD][i] > 0; }, "a mode is not in d");
  modes.tensor("a", a, loops.strides[kA], dtype)
      .tensor("c", c, loops.strides[kD], d_dtype)
      .tensor("d", d, loops.strides[kD], d_dtype);
  return checks.result();
}

Result<void> ElementwiseTrinary::check() const {
  auto checks = checker(*this);
  if (!checks.ok()) return checks.result();
  add_result(checks, dtype, d_dtype);
  add_binary(checks, dtype, {function_ab, function_abc});
  add_unary(checks, dtype, {unary_a, unary_b, unary_c});
  add_scalar(checks, "alpha", alpha);
  add_scalar(checks, "beta", beta);
  add_scalar(checks, "gamma", gamma);
  ModeChecks modes(checks, loops);
  modes.each([&](auto i) { return loops.strides[kD][i] > 0; }, "a mode is not in d");
  modes.tensor("a", a, loops.strides[kA], dtype)
      .tensor("b", b, loops.strides[kB], dtype)
      .tensor("c", c, loops.strides[kD], d_dtype)
      .tensor("d", d, loops.strides[kD], d_dtype);
  return checks.result();
}

std::span<const OperationInfo* const> operations() noexcept {
  return tables_of(Operations{});
}

}  // namespace troupe::tensor
