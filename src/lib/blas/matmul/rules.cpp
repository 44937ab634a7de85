#include <algorithm>

#include "lib/blas/common/checks.hpp"

namespace troupe::blas {
namespace {

/// What cuBLASLt asks of f8 on the GPUs that first had it.
void check_f8(Checker& checks, const Matmul& op) {
  constexpr std::int64_t kUnit = 16;
  const auto whole = [](std::int64_t number) { return number % kUnit == 0; };
  checks
      .require(op.order_a == Order::column && op.order_b == Order::column &&
                   op.order_c == Order::column && op.order_d == Order::column,
               "matrices of f8 are column-major")
      .require(op.transpose_a == Transpose::yes && op.transpose_b == Transpose::no,
               "of f8 a is transposed and b is not")
      .require(whole(op.m) && whole(op.n) && whole(op.k), "extents of f8 are multiples of 16")
      .require(whole(op.lda) && whole(op.ldb) &&
                   whole(op.ldd * static_cast<std::int64_t>(size_of(op.d_dtype))),
               "leading dimensions of f8 are multiples of 16 bytes");
  for (const auto* range : {&op.a, &op.b, &op.c, &op.d})
    checks.require(whole(static_cast<std::int64_t>(range->offset)),
                   "matrices of f8 are aligned to 16 bytes");
}

/// More than one scale of A or B.
void check_scale_modes(Checker& checks, const Matmul& op) {
  const auto a = op.scale_mode_a, b = op.scale_mode_b;
  if (a == ScaleMode::scalar && b == ScaleMode::scalar) return;
  const auto of_blocks = [](ScaleMode mode) {
    return mode == ScaleMode::block128 || mode == ScaleMode::block128x128;
  };
  checks.require(is_f8(op.dtype), "scales are for f8")
      .require((a == ScaleMode::vector && b == a) ||
                   (of_blocks(a) && of_blocks(b) &&
                    (a == ScaleMode::block128 || b == ScaleMode::block128)),
               "scales of a and b are scalars, vectors, or of blocks of which one at most is "
               "128 x 128")
      .require(op.batch == 1, "with scales of rows or blocks there is one batch")
      .require(!is_f8(op.d_dtype), "with scales of rows or blocks d is not of f8");
}

void check_i8(Checker& checks, const Matmul& op) {
  const auto by_value = [](const Scalar& scalar) {
    const auto value = scalar.as<std::int32_t>();
    return !scalar.device.present() && (value == 0 || value == 1);
  };
  checks
      .require(op.lda % 4 == 0 && op.ldb % 4 == 0 && op.ldd % 4 == 0,
               "leading dimensions of integers are multiples of four")
      // cuBLASLt 13.0 takes C to lie as D where B is transposed, whatever its layout says.
      .require(!op.c.present() || (op.ldc == op.ldd && op.order_c == op.order_d),
               "of integers c and d have the same order and leading dimension");
  for (const auto* range : {&op.a, &op.b})
    checks.require(range->offset % 4 == 0, "a or b is not aligned to four bytes");
  if (op.d_dtype != DType::i32) return;
  checks
      .require(by_value(op.alpha) && by_value(op.beta), "scalars of integers are 0 or 1, by value")
      .require(op.batch == 1 && op.n <= 65536, "of integers there is one batch, and n <= 65536");
}

void check_epilogue(Checker& checks, const Matmul& op) {
  if (op.epilogue == Epilogue::none) return;
  const auto bias = bias_use(op.epilogue);
  const auto d = op.d_dtype;
  checks.require(op.order_d == Order::column ||
                     (aux_use(op.epilogue) == EpilogueUse::none && bias != EpilogueUse::write),
                 "this epilogue is for a column-major d");
  const auto known_types = d == DType::f16 || d == DType::bf16 || d == DType::f32 || is_f8(d);
  if (!known_types || op.dtype == DType::i8) {
    checks.require(false, "there is no epilogue for this type");
    return;
  }
  if (bias != EpilogueUse::none) {
    checks.holds("bias", op.bias, op.bias_length(),
                 size_of(bias_type(op.dtype, op.c_dtype, op.d_dtype)));
  }
  checks.require(bias != EpilogueUse::write || op.batch == 1,
                 "a bias that is written allows one batch");
  if (aux_use(op.epilogue) == EpilogueUse::none) return;
  const bool mask = has_mask(op.epilogue);
  checks
      .require(
          op.ld_aux >= op.m && op.ld_aux % (mask ? 128 : 8) == 0 && op.ld_aux <= Checker::kMaxCount,
          "ld_aux is less than m, or no multiple of 128 (of a mask) or 8")
      .require(mask || !is_f8(d), "gelu of f8 has no aux");
  if (!checks.ok()) return;
  std::int64_t columns = 0, count = 0;
  if (__builtin_mul_overflow(op.n, op.batch, &columns) ||
      __builtin_mul_overflow(op.ld_aux, columns, &count) || count > Checker::kMaxCount) {
    checks.require(false, "aux is too large");
    return;
  }
  checks.holds("aux", op.aux, mask ? count / 8 : count, mask ? 1 : size_of(d));
}

bool computes(const Matmul& op) {
  if (op.dtype == DType::f32 || op.dtype == DType::c64) {
    return op.compute == Compute::f32 ||
           (op.compute >= Compute::tf32 && op.compute <= Compute::f32_by_bf16x9);
  }
  return op.compute == usual_compute(op.dtype);
}

}  // namespace

Result<void> Matmul::check() const {
  auto checks = checker(*this);
  if (!checks.ok()) return checks.result();
  for (const auto type : {b_dtype.value, c_dtype.value, d_dtype.value}) {
    if (static_cast<std::size_t>(type) >= kDTypeCount)
      return Error{Errc::invalid, 0, std::string(kName) + ": unknown dtype"};
  }
  if (!multiplies(dtype, b_dtype, c_dtype, d_dtype) || !computes(*this)) {
    return Error{Errc::unsupported, 0,
                 std::string(kName) + ": there is no such product of matrices of " +
                     std::string(to_string(dtype)) + " and " + std::string(to_string(b_dtype))};
  }
  for (const auto order : {order_a, order_b, order_c, order_d})
    checks.require(known(order), "unknown order");
  for (const auto mode : {scale_mode_a, scale_mode_b}) {
    checks.require(static_cast<std::size_t>(mode) < kScaleModeCount, "unknown scale mode");
    if (checks.ok() && mode >= ScaleMode::block32_ue8m0) {
      return Error{Errc::unsupported, 0,
                   std::string(kName) + ": there are no scales of blocks of 32 and 16 elements"};
    }
  }
  scalar(checks, "alpha", alpha, scale());
  scalar(checks, "beta", beta, scale());
  checks.require(known(transpose_a) && known(transpose_b), "unknown transposition")
      .require(static_cast<std::size_t>(epilogue) < kEpilogueCount, "unknown epilogue")
      .require(fast_accumulation <= 1, "unknown accumulation")
      .require(batch >= 0 && batch <= kMaxBatch, "the batch is negative or above 2^31");
  if (!checks.ok()) return checks.result();
  const bool plain_a = transpose_a == Transpose::no, plain_b = transpose_b == Transpose::no;
  check_batch(checks, "a", a, {plain_a ? m : k, plain_a ? k : m, lda, order_a}, stride_a, batch,
              dtype);
  check_batch(checks, "b", b, {plain_b ? k : n, plain_b ? n : k, ldb, order_b}, stride_b, batch,
              b_dtype);
  check_result_batch(checks, "d", d, {m, n, ldd, order_d}, stride_d, batch, d_dtype);
  if (!beta.is_zero(scale()) || c.present())
    check_batch(checks, "c", c, {m, n, ldc, order_c}, stride_c, batch, c_dtype);
  if (same_range(c, d))
    checks.require(ldc == ldd && order_c == order_d && stride_c == stride_d && c_dtype == d_dtype,
                   "in place c and d have the same layout");
  if (checks.ok()) check_epilogue(checks, *this);
  if (checks.ok() && is_f8(dtype)) check_f8(checks, *this);
  if (checks.ok()) check_scale_modes(checks, *this);
  if (checks.ok() && dtype == DType::i8) check_i8(checks, *this);
  return checks.result();
}

Result<void> Matmul::check_parts(const Parts& parts) const {
  auto checks = checker(*this);
  std::uint32_t seen = 0;
  for (const auto& part : parts.tail) {
    checks.require(part.tag < kParts && (seen >> part.tag & 1u) == 0, "unknown scale, or twice")
        .require(is_f8(dtype), "scales are for f8")
        .require(part.tag == scale_a || part.tag == scale_b || is_f8(d_dtype),
                 "a scale of d is for a d of f8")
        .require(part.access == (part.tag == amax_d ? Access::write : Access::read),
                 "a scale is read, and a largest value written");
    if (!checks.ok()) break;
    seen |= 1u << part.tag;
    const auto count = scales(part.tag);
    checks.holds("a scale", part.range, count, sizeof(float));
    checks.require(count == 1 || part.range.offset % 16 == 0, "scales are not aligned to 16 bytes");
  }
  const auto given = [&](ScaleMode mode, Part part) {
    return mode == ScaleMode::scalar || (seen >> part & 1u) != 0;
  };
  checks.require(given(scale_mode_a, scale_a) && given(scale_mode_b, scale_b),
                 "scales of rows or blocks are missing");
  return checks.result();
}

std::string wrong_type(const Matmul& op, const MatmulOptions& options) {
  if (op.bias.present() && options.bias.dtype != bias_type(op.dtype, op.c_dtype, op.d_dtype)) {
    return "bias is of " + std::string(to_string(options.bias.dtype)) + ", not " +
           std::string(to_string(bias_type(op.dtype, op.c_dtype, op.d_dtype)));
  }
  const auto aux = has_mask(op.epilogue) ? DType::u8 : op.d_dtype.value;
  if (op.aux.present() && options.aux.dtype != aux) {
    return "aux is of " + std::string(to_string(options.aux.dtype)) + ", not " +
           std::string(to_string(aux));
  }
  for (const auto* scale :
       {&options.scale_a, &options.scale_b, &options.scale_d, &options.amax_d}) {
    if (scale->range.present() && scale->dtype != DType::f32) return "a scale is not of f32";
  }
  return {};
}

}  // namespace troupe::blas
