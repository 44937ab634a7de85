#include <cublasLt.h>

#include <bit>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <tuple>

#include "lib/blas/matmul/plans_cuda.hpp"

/// Products with epilogues on the cuda engine. A handle of cuBLAS is one of cuBLASLt, and its
/// workspace serves both: they work on the same stream.
namespace troupe::host::cuda {
namespace {

cublasComputeType_t compute_of(blas::Compute compute) {
  switch (compute) {
    case blas::Compute::f64: return CUBLAS_COMPUTE_64F;
    case blas::Compute::i32: return CUBLAS_COMPUTE_32I;
    case blas::Compute::tf32: return CUBLAS_COMPUTE_32F_FAST_TF32;
    case blas::Compute::f32_by_f16: return CUBLAS_COMPUTE_32F_FAST_16F;
    case blas::Compute::f32_by_bf16: return CUBLAS_COMPUTE_32F_FAST_16BF;
#if CUBLAS_VERSION >= 130000
    case blas::Compute::f32_by_bf16x9: return CUBLAS_COMPUTE_32F_EMULATED_16BFX9;
#endif
    default: return CUBLAS_COMPUTE_32F;
  }
}

cublasLtEpilogue_t epilogue_of(blas::Epilogue epilogue) {
  constexpr std::array<cublasLtEpilogue_t, blas::kEpilogueCount> kEpilogues = {
      CUBLASLT_EPILOGUE_DEFAULT,   CUBLASLT_EPILOGUE_RELU,
      CUBLASLT_EPILOGUE_GELU,      CUBLASLT_EPILOGUE_BIAS,
      CUBLASLT_EPILOGUE_RELU_BIAS, CUBLASLT_EPILOGUE_GELU_BIAS,
      CUBLASLT_EPILOGUE_RELU_AUX,  CUBLASLT_EPILOGUE_RELU_AUX_BIAS,
      CUBLASLT_EPILOGUE_GELU_AUX,  CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
      CUBLASLT_EPILOGUE_DRELU,     CUBLASLT_EPILOGUE_DRELU_BGRAD,
      CUBLASLT_EPILOGUE_DGELU,     CUBLASLT_EPILOGUE_DGELU_BGRAD,
      CUBLASLT_EPILOGUE_BGRADA,    CUBLASLT_EPILOGUE_BGRADB};
  return kEpilogues[static_cast<std::size_t>(epilogue)];
}

#if CUBLAS_VERSION >= 120900
std::int32_t scale_mode_of(blas::ScaleMode mode) {
  switch (mode) {
    case blas::ScaleMode::vector: return CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F;
    case blas::ScaleMode::block128: return CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F;
    case blas::ScaleMode::block128x128: return CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F;
    default: return CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
  }
}
#endif

Result<void> set(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t attribute,
                 const auto& value) {
  TROUPE_CUDA_TRY(cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof value));
  return {};
}
Result<void> set(cublasLtMatmulPreference_t preference,
                 cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
  TROUPE_CUDA_TRY(
      cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value));
  return {};
}

}  // namespace

Places::Places(const blas::Matmul& op, const Call& call)
    : a(call.at(op.a)),
      b(call.at(op.b)),
      // What is not read still has to be aligned; of f8 it is not D, which is of another type.
      c(op.c.present()            ? call.at(op.c)
        : blas::is_f8(op.d_dtype) ? nullptr
                                  : call.at(op.d)),
      d(call.at(op.d)),
      bias(op.bias.present() ? call.at(op.bias) : nullptr),
      aux(op.aux.present() ? call.at(op.aux) : nullptr) {
  for (const auto& part : call.tail()) parts[part.tag] = call.at(part.range);
}

Alignments alignments_of(const Places& places) {
  const auto of = [](const void* address) {
    return blas::alignment_of(reinterpret_cast<std::uintptr_t>(address));
  };
  return {of(places.a), of(places.b), of(places.c), of(places.d), of(places.bias), of(places.aux)};
}

Result<void> set_places(cublasLtMatmulDesc_t description, const Places& places, ScalarsAt scalars) {
  const std::int32_t mode =
      scalars == ScalarsAt::host ? CUBLASLT_POINTER_MODE_HOST : CUBLASLT_POINTER_MODE_DEVICE;
  TROUPE_CUDA_PROPAGATE(set(description, CUBLASLT_MATMUL_DESC_POINTER_MODE, mode));
  if (places.bias != nullptr)
    TROUPE_CUDA_PROPAGATE(set(description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, places.bias));
  if (places.aux != nullptr)
    TROUPE_CUDA_PROPAGATE(set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, places.aux));
  constexpr cublasLtMatmulDescAttributes_t kParts[] = {
      CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER,
      CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, CUBLASLT_MATMUL_DESC_AMAX_D_POINTER};
  for (std::size_t i = 0; i < places.parts.size(); ++i) {
    if (places.parts[i] != nullptr)
      TROUPE_CUDA_PROPAGATE(set(description, kParts[i], places.parts[i]));
  }
  return {};
}

Result<void> describe(Matmuls::Plan& plan, const blas::Matmul& op) {
  const auto scale = type_of(op.scale());
  TROUPE_CUDA_TRY(cublasLtMatmulDescCreate(plan.description.out(), compute_of(op.compute), scale));
  const auto description = plan.description.get();
  TROUPE_CUDA_PROPAGATE(set(description, CUBLASLT_MATMUL_DESC_TRANSA, operation(op.transpose_a)));
  TROUPE_CUDA_PROPAGATE(set(description, CUBLASLT_MATMUL_DESC_TRANSB, operation(op.transpose_b)));
  TROUPE_CUDA_PROPAGATE(set(description, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(op.epilogue)));
  if (blas::bias_use(op.epilogue) != blas::EpilogueUse::none && blas::is_f8(op.dtype)) {
    const auto type =
        static_cast<std::int32_t>(type_in_lt(blas::bias_type(op.dtype, op.c_dtype, op.d_dtype)));
    TROUPE_CUDA_PROPAGATE(set(description, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type));
  }
  if (blas::aux_use(op.epilogue) != blas::EpilogueUse::none) {
    TROUPE_CUDA_PROPAGATE(set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, op.ld_aux));
    TROUPE_CUDA_PROPAGATE(
        set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, op.ld_aux * op.n));
  }
  if (blas::is_f8(op.dtype)) {
    TROUPE_CUDA_PROPAGATE(set(description, CUBLASLT_MATMUL_DESC_FAST_ACCUM,
                              static_cast<std::int8_t>(op.fast_accumulation)));
#if CUBLAS_VERSION >= 120900
    TROUPE_CUDA_PROPAGATE(
        set(description, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, scale_mode_of(op.scale_mode_a)));
    TROUPE_CUDA_PROPAGATE(
        set(description, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, scale_mode_of(op.scale_mode_b)));
#endif
  }
  const bool plain_a = op.transpose_a == blas::Transpose::no,
             plain_b = op.transpose_b == blas::Transpose::no;
  const LayoutOf d{op.d_dtype, op.m, op.n, op.ldd, op.order_d, op.stride_d, op.batch};
  auto c = d;
  c.dtype = op.c_dtype;
  if (op.c.present()) c.leading = op.ldc, c.order = op.order_c, c.stride = op.stride_c;
  TROUPE_CUDA_PROPAGATE(make_layout(plan.a, {op.dtype, plain_a ? op.m : op.k, plain_a ? op.k : op.m,
                                             op.lda, op.order_a, op.stride_a, op.batch}));
  TROUPE_CUDA_PROPAGATE(
      make_layout(plan.b, {op.b_dtype, plain_b ? op.k : op.n, plain_b ? op.n : op.k, op.ldb,
                           op.order_b, op.stride_b, op.batch}));
  TROUPE_CUDA_PROPAGATE(make_layout(plan.c, c));
  return make_layout(plan.d, d);
}

/// Sums of 16 and 8 bits are not added up in these.
static bool adds_up_narrowly(DType d) {
  return d == DType::f16 || d == DType::bf16 || blas::is_f8(d);
}

Result<std::size_t> propose(const Matmuls::Plan& plan, const blas::Matmul& op,
                            const Alignments& alignments, cublasLtHandle_t handle,
                            std::span<cublasLtMatmulHeuristicResult_t> proposed) {
  Matmuls::Preference preference;
  TROUPE_CUDA_TRY(cublasLtMatmulPreferenceCreate(preference.out()));
  const auto get = preference.get();
  TROUPE_CUDA_PROPAGATE(
      set(get, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{kWorkspaceBytes}));
  if (adds_up_narrowly(op.d_dtype)) {
    constexpr std::uint32_t kInWide = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    TROUPE_CUDA_PROPAGATE(set(get, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, kInWide));
  }
  constexpr cublasLtMatmulPreferenceAttributes_t kAlignments[] = {
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
  for (std::size_t i = 0; i < 4; ++i)
    TROUPE_CUDA_PROPAGATE(set(get, kAlignments[i], std::uint32_t{alignments[i]}));
  int count = 0;
  const auto status = cublasLtMatmulAlgoGetHeuristic(
      handle, plan.description.get(), plan.a.get(), plan.b.get(), plan.c.get(), plan.d.get(), get,
      static_cast<int>(proposed.size()), proposed.data(), &count);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE ||
      (status == CUBLAS_STATUS_SUCCESS && count == 0)) {
    return Error{
        Errc::unsupported, static_cast<int>(status),
        "blas.matmul: cuBLASLt has no algorithm for these types, shapes and this epilogue"};
  }
  if (status != CUBLAS_STATUS_SUCCESS) return failure(status, "cublasLtMatmulAlgoGetHeuristic");
  return static_cast<std::size_t>(count);
}

/// What was measured, if it still runs; else what cuBLASLt proposes.
static Result<void> choose(Matmuls::Plan& plan, const blas::Matmul& op,
                           const Alignments& alignments, cublasLtHandle_t handle,
                           const Matmuls::Choice* measured) {
  std::array<cublasLtMatmulHeuristicResult_t, 1> proposed{};
  if (measured != nullptr) {
    plan.algorithm = measured->algorithm;
    const auto status =
        cublasLtMatmulAlgoCheck(handle, plan.description.get(), plan.a.get(), plan.b.get(),
                                plan.c.get(), plan.d.get(), &plan.algorithm, proposed.data());
    if (status == CUBLAS_STATUS_SUCCESS && proposed[0].workspaceSize <= kWorkspaceBytes) return {};
  }
  const auto count = propose(plan, op, alignments, handle, proposed);
  if (!count) return count.error();
  plan.algorithm = proposed[0].algo;
  return {};
}

Matmuls::Key key_of(const blas::Matmul& op, const Places& places, const Alignments& alignment,
                    ScalarsAt scalars) {
  const auto number = [](auto value) { return static_cast<std::int64_t>(value); };
  std::int64_t types = 0, given = scalars == ScalarsAt::host ? 0 : 1;
  for (const auto order : {op.order_a, op.order_b, op.order_c, op.order_d})
    given = given << 1 | number(order);
  for (const auto dtype : {op.dtype.value, op.b_dtype.value, op.c_dtype.value, op.d_dtype.value})
    types = types << 8 | number(dtype);
  for (const auto* part : places.parts) given = given << 1 | (part != nullptr ? 1 : 0);
  given = given << 1 | (op.c.present() ? 1 : 0);
  given = given << 6 | number(op.scale_mode_a) << 3 | number(op.scale_mode_b);
  std::int64_t alignments = 0;
  for (const auto one : alignment) alignments = alignments << 9 | one;
  return {types,
          number(op.compute) << 32 | number(op.epilogue),
          number(op.transpose_a) << 32 | number(op.transpose_b) << 1 | number(op.fast_accumulation),
          op.m,
          op.n,
          op.k,
          op.lda,
          op.ldb,
          op.ldc,
          op.ldd,
          op.ld_aux,
          op.batch,
          op.stride_a,
          op.stride_b,
          op.stride_c,
          op.stride_d,
          given,
          alignments};
}

Result<void> run(const blas::Matmul& op, const Call& call, Blas& library) {
  if (op.m == 0 || op.n == 0 || op.batch == 0) return {};
  if (op.k == 0)
    return Error{Errc::unsupported, 0, "blas.matmul: cuBLASLt has no products of empty matrices"};
#if CUBLAS_VERSION < 130000
  if (op.compute == blas::Compute::f32_by_bf16x9)
    return Error{Errc::unsupported, 0, "blas.matmul: this cuBLAS does not emulate"};
#endif
#if CUBLAS_VERSION < 120900
  if (op.scale_mode_a != blas::ScaleMode::scalar)
    return Error{Errc::unsupported, 0, "blas.matmul: this cuBLAS has no scales of rows and blocks"};
#endif
  const auto multiply = [&]<class F>(F) -> Result<void> {
    ScalarValues<F> scalars;
    TROUPE_CUDA_PROPAGATE(scalars.resolve(library.services, call, {&op.alpha, &op.beta}));
    const Places places(op, call);
    const auto handle =
        reinterpret_cast<cublasLtHandle_t>(library.state(call.queue()).handle.get());
    const auto alignments = alignments_of(places);
    const auto key = key_of(op, places, alignments, scalars.where());
    auto* plan = library.matmuls.find(key);
    if (plan == nullptr) {
      Matmuls::Plan made;
      TROUPE_CUDA_PROPAGATE(describe(made, op));
      TROUPE_CUDA_PROPAGATE(set_places(made.description.get(), places, scalars.where()));
      TROUPE_CUDA_PROPAGATE(choose(made, op, alignments, handle, library.matmuls.choice(key)));
      plan = &library.matmuls.add(key, std::move(made));
    } else {
      TROUPE_CUDA_PROPAGATE(set_places(plan->description.get(), places, scalars.where()));
    }
    TROUPE_CUDA_TRY(cublasLtMatmul(handle, plan->description.get(), scalars[0], places.a,
                                   plan->a.get(), places.b, plan->b.get(), scalars[1], places.c,
                                   plan->c.get(), places.d, plan->d.get(), &plan->algorithm,
                                   library.state(call.queue()).workspace.get(), kWorkspaceBytes,
                                   library.services.stream(call.queue())));
    return {};
  };
  switch (op.scale()) {
    case DType::i32: return multiply(std::int32_t{});
    case DType::f64: return multiply(double{});
    case DType::c64: return multiply(std::complex<float>{});
    case DType::c128: return multiply(std::complex<double>{});
    default: return multiply(float{});
  }
}

TROUPE_HANDLERS(Blas)

}  // namespace troupe::host::cuda
