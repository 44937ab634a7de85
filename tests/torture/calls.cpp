#include "calls.hpp"

#include <array>

namespace troupe::torture {
namespace {

constexpr auto kReals = DTypes::reals();
constexpr auto kNumbers = DTypes::of({DType::f32, DType::f64, DType::c64, DType::c128});
constexpr auto kNarrow = DTypes::of({DType::f16, DType::bf16});
constexpr DTypes kAllNumbers{kNumbers.bits | kNarrow.bits};
constexpr DTypes kLayers{kNarrow.bits | DTypes::of({DType::f32}).bits};
constexpr auto kComplex = DTypes::of({DType::c64, DType::c128});
constexpr auto kCounts = DTypes::of({DType::u32});
constexpr DTypes kCountable{DTypes::of({DType::i32, DType::u32, DType::i64, DType::u64}).bits |
                            kReals.bits};
constexpr DTypes kComparable{kCountable.bits | kNarrow.bits};

// Every operation of these libraries is here, or another kind makes it. What is not made:
// - forms of matmul beside a few types and all epilogues (scales of f8, batches, results of i8), of
//   gemm_ex beside a few types, gemv_batched and trsm_batched of lists that no stride describes,
//   and calls on other ranks' devices: their operation is made in another form here, and
//   tests/conformance has them all;
// - gemm_ex's and matmul's emulated precision, whose results are not exact;
// - sequences of MT19937, which take seconds to begin on the host, and of MRG32k3a but in the
//   legacy order (Kind::sequence), which take half a second;
// - callbacks of transforms: the engines have none.
constexpr CallInfo kCalls[] = {
    {Kind::blas_call, "axpy", "axpy", kAllNumbers},
    {Kind::blas_call, "scal", "scal", kAllNumbers},
    {Kind::blas_call, "dot", "dot", kAllNumbers},
    {Kind::blas_call, "nrm2", "nrm2", kAllNumbers},
    {Kind::blas_call, "asum", "asum", kNumbers},
    {Kind::blas_call, "iamax", "iamax", kNumbers},
    {Kind::blas_call, "copy", "copy swap", kNumbers},
    {Kind::blas_call, "rot", "rot", kNumbers},
    {Kind::blas_call, "rotg", "rotg", kNumbers},
    {Kind::blas_call, "rotm", "rotm", kReals},
    {Kind::blas_call, "rotmg", "rotmg", kReals},
    {Kind::blas_call, "gemv", "gemv", kNumbers},
    {Kind::blas_call, "gbmv", "gbmv", kNumbers},
    {Kind::blas_call, "symv", "symv", kNumbers},
    {Kind::blas_call, "ger", "ger", kNumbers},
    {Kind::blas_call, "syr", "syr", kNumbers},
    {Kind::blas_call, "syr2", "syr2", kNumbers},
    {Kind::blas_call, "trmv", "trmv", kNumbers},
    {Kind::blas_call, "gemm", "gemm", kAllNumbers},
    {Kind::blas_call, "symm", "symm", kNumbers},
    {Kind::blas_call, "syrk", "syrk", kNumbers},
    {Kind::blas_call, "syr2k", "syr2k", kNumbers},
    {Kind::blas_call, "trmm", "trmm trsm", kNumbers},
    {Kind::blas_call, "geam", "geam", kNumbers},
    {Kind::blas_call, "dgmm", "dgmm", kNumbers},
    {Kind::blas_call, "tpttr", "tpttr trttp", kNumbers},
    {Kind::blas_call, "gemm_batched", "gemm_batched", kAllNumbers},
    {Kind::blas_call, "gemv_batched", "gemv_batched", kAllNumbers},
    {Kind::blas_call, "gemm_grouped", "gemm_grouped", {kReals.bits | kNarrow.bits}},
    {Kind::blas_call, "gemm_ex", "gemm_ex", {kAllNumbers.bits | DTypes::of({DType::i8}).bits}},
    {Kind::blas_call, "gemm_ex into f32", "gemm_ex", kNarrow},
    {Kind::blas_call, "gemm_ex by tf32", "gemm_ex", DTypes::of({DType::f32})},
    {Kind::blas_call, "gemm_indexed", "gemm_indexed", kNumbers},
    {Kind::blas_call, "trsm_batched", "trsm_batched", kNumbers},
    {Kind::blas_call, "lapack_batched", "getrf_batched lapack_batched", kNumbers, Missing::itself},
    {Kind::blas_call, "gels_batched", "lapack_batched", kNumbers, Missing::itself},
    {Kind::blas_call, "geqrf_batched", "lapack_batched", kNumbers, Missing::itself},
    {Kind::blas_call, "matmul", "matmul tune_matmul", kAllNumbers},
    {Kind::blas_call, "matmul", "matmul tune_matmul",
     DTypes::of({DType::i8, DType::f8e4m3, DType::f8e5m2}), Missing::itself},
    {Kind::blas_call,
     "transform",
     "transform",
     {kAllNumbers.bits | DTypes::of({DType::i8, DType::i32, DType::f8e4m3, DType::f8e5m2}).bits},
     Missing::itself},
    {Kind::blas_call, "matmul epilogue", "matmul", {kNarrow.bits | DTypes::of({DType::f32}).bits}},
    {Kind::solver_call, "potrs", "potrf potrs", kNumbers},
    {Kind::solver_call, "potri", "potrf potri", kNumbers},
    {Kind::solver_call, "potrs_batched", "potrf_batched potrs_batched", kNumbers},
    {Kind::solver_call, "trtri", "trtri", kNumbers},
    {Kind::solver_call, "lauum", "lauum", kNumbers},
    {Kind::solver_call, "getrs", "getrf getrs", kNumbers},
    {Kind::solver_call, "laswp", "laswp", kNumbers},
    {Kind::solver_call, "sytrs", "sytrf sytrs", kNumbers},
    {Kind::solver_call, "sytri", "sytrf sytri", kNumbers, Missing::itself},
    {Kind::solver_call, "gesv", "gesv", kNumbers},
    {Kind::solver_call, "gels", "gels", kNumbers},
    {Kind::solver_call, "orgqr", "geqrf orgqr", kNumbers},
    {Kind::solver_call, "ormqr", "geqrf ormqr", kNumbers},
    {Kind::solver_call, "larft", "geqrf larft", kNumbers},
    {Kind::solver_call, "orgtr", "sytrd orgtr", kNumbers},
    {Kind::solver_call, "ormtr", "sytrd ormtr", kNumbers},
    {Kind::solver_call, "orgbr", "gebrd orgbr", kNumbers},
    {Kind::solver_call, "syevd", "syevd", kNumbers},
    {Kind::solver_call, "syevj", "syevj", kNumbers},
    {Kind::solver_call, "syevdx", "syevdx", kNumbers},
    {Kind::solver_call, "sygvd", "sygvd", kNumbers},
    {Kind::solver_call, "sygvj", "sygvj", kNumbers},
    {Kind::solver_call, "sygvdx", "sygvdx", kNumbers},
    {Kind::solver_call, "syev_batched", "syev_batched", kNumbers},
    {Kind::solver_call, "syevj_batched", "syevj_batched", kNumbers},
    {Kind::solver_call, "geev", "geev", kNumbers},
    {Kind::solver_call, "gesvd", "gesvd", kNumbers},
    {Kind::solver_call, "gesvdj", "gesvdj", kNumbers},
    {Kind::solver_call, "gesvdp", "gesvdp", kNumbers},
    {Kind::solver_call, "gesvdr", "gesvdr", kNumbers},
    {Kind::solver_call, "gesvdj_batched", "gesvdj_batched", kNumbers},
    {Kind::solver_call, "gesvda_batched", "gesvda_batched", kNumbers},
    {Kind::fft_call, "forward", "transform", kComplex, Missing::itself},
    {Kind::fft_call, "inverse", "transform", kComplex, Missing::itself},
    {Kind::fft_call, "real_to_complex", "transform", kComplex, Missing::itself},
    {Kind::fft_call, "complex_to_real", "transform", kComplex, Missing::itself},
    {Kind::fft_call, "real_in_place", "transform", kComplex, Missing::itself},
    {Kind::fft_call, "transform of pairs", "transform", kNarrow, Missing::itself},
    {Kind::rng_call, "bits", "bits", DTypes::of({DType::u32, DType::u64})},
    {Kind::rng_call, "uniform", "uniform", kReals},
    {Kind::rng_call, "normal", "normal log_normal", kReals},
    {Kind::rng_call, "exponential", "exponential", kReals},
    {Kind::rng_call, "cauchy", "cauchy", kReals},
    {Kind::rng_call, "gamma", "gamma", kReals},
    {Kind::rng_call, "beta", "beta", kReals},
    {Kind::rng_call, "poisson", "poisson", kCounts},
    {Kind::rng_call, "binomial", "binomial", kCounts},
    {Kind::rng_call, "discrete", "discrete", kCounts},
    {Kind::rng_call, "sequence", "sequence",
     DTypes::of({DType::f32, DType::f64, DType::u32, DType::u64}), Missing::itself},
    {Kind::primitives_call, "product", "reduce", kComparable},
    {Kind::primitives_call, "arg_reduce", "arg_reduce", kComparable},
    {Kind::primitives_call, "segmented_reduce", "segmented_reduce", kCountable},
    {Kind::primitives_call, "select_flagged", "select_flagged partition_flagged", kComparable},
    {Kind::primitives_call, "runs", "unique run_length_encode", kComparable},
    {Kind::primitives_call, "sums of runs", "reduce_by_key", kCountable},
    {Kind::primitives_call, "places", "non_trivial_runs unique_by_key partition_three_way",
     kComparable},
    {Kind::primitives_call, "neighbours", "scan_by_key adjacent_difference", kCountable},
    {Kind::primitives_call, "histograms", "histogram_even histogram_range",
     DTypes{kCountable.bits | DTypes::of({DType::u8}).bits}},
    {Kind::primitives_call, "in order", "segmented_sort merge", kComparable},
    {Kind::primitives_call, "elements", "transform transform_pairs convert transform_reduce",
     kComparable},
    {Kind::primitives_call, "copies", "copy_batched", DTypes::of({DType::u8})},
    {Kind::sparse_call, "spmm", "spmm", kNumbers},
    {Kind::sparse_call,
     "narrow products",
     "spmv_ex spmm_ex",
     {kNarrow.bits | DTypes::of({DType::i8}).bits}},
    {Kind::sparse_call,
     "narrow products into f32",
     "spmv_ex spmm_ex",
     {kNarrow.bits | DTypes::of({DType::i8}).bits}},
    {Kind::sparse_call, "sddmm", "sddmm", kNumbers},
    {Kind::sparse_call, "transpose", "transpose", kNumbers},
    {Kind::sparse_call, "gtsv", "gtsv gtsv_strided gtsv_interleaved", kNumbers},
    {Kind::sparse_call, "gpsv", "gpsv_interleaved", kNumbers},
    {Kind::sparse_call, "spgemm_reuse", "spgemm_reuse", kNumbers},
    {Kind::sparse_call, "geam", "geam", kNumbers},
    {Kind::sparse_call, "spsv", "spsv spsm", kNumbers},
    {Kind::sparse_call, "few elements", "scatter axpby rot spvv", kNumbers},
    {Kind::sparse_call, "rows", "csr2coo coo2csr", DTypes::of({DType::i32, DType::i64})},
    {Kind::sparse_call, "order", "coosort csrsort", kNumbers},
    {Kind::sparse_call, "blocks", "dense_to_sparse csr2bsr bsr2csr sparse_to_dense", kNumbers},
    {Kind::sparse_call, "ELL", "csr2sell csr2blocked_ell blocked_ell_to_dense", kNumbers},
    {Kind::sparse_call, "examination", "examine", DTypes::of({DType::i32, DType::i64})},
    {Kind::direct_call, "factors", "analyse factor solve release", kNumbers, Missing::itself},
    {Kind::direct_call, "schur", "schur", kNumbers, Missing::itself},
    {Kind::tensor_call, "contraction", "contract tune_contract", kAllNumbers, Missing::itself},
    {Kind::tensor_call, "blocks of matrices", "contract_block_sparse", kNumbers, Missing::itself},
    {Kind::tensor_call, "contraction of three", "contract_trinary", kAllNumbers, Missing::itself},
    {Kind::tensor_call, "einsum", "contract reduce", kAllNumbers, Missing::itself},
    {Kind::tensor_call, "reduction", "reduce", kAllNumbers, Missing::itself},
    {Kind::tensor_call, "permutation", "permute", kAllNumbers, Missing::itself},
    {Kind::tensor_call, "elements of tensors", "elementwise_binary elementwise_trinary",
     kAllNumbers, Missing::itself},
    {Kind::dnn_call, "elements of layers", "graph", kLayers, Missing::library},
    {Kind::dnn_call, "product of layers", "graph", kNarrow, Missing::library},
    {Kind::dnn_call, "convolution of layers", "graph", kLayers, Missing::itself, true},
    {Kind::dnn_call, "norms", "graph", kLayers, Missing::library},
    {Kind::dnn_call, "pooling", "graph", kLayers, Missing::library},
    {Kind::dnn_call, "larger images", "graph", kLayers, Missing::library},
    {Kind::dnn_call, "reduction of layers", "graph", kLayers, Missing::library},
    {Kind::dnn_call, "attention", "graph", kNarrow, Missing::library},
    {Kind::dnn_call, "refused layers", "graph", kLayers, Missing::library, true},
    {Kind::dnn_call, "local responses", "lrn lrn_backward",
     DTypes::of({DType::f16, DType::f32, DType::f64}), Missing::library},
    {Kind::dnn_call, "labels of sequences", "ctc_loss", DTypes::of({DType::f32}), Missing::library},
    {Kind::dnn_call, "networks", "rnn_space rnn rnn_backward_data rnn_backward_weights", kLayers,
     Missing::library},
    {Kind::dnn_call,
     "softmax",
     "softmax softmax_backward",
     {kLayers.bits | DTypes::of({DType::f64}).bits},
     Missing::library},
    {Kind::outside_call, "tridiagonal", "solve residual", kReals}};

}  // namespace

std::span<const CallInfo> calls() {
  return kCalls;
}

std::vector<std::int64_t> calls_of(Kind kind) {
  std::vector<std::int64_t> places;
  for (std::size_t i = 0; i < std::size(kCalls); ++i) {
    if (kCalls[i].kind == kind) places.push_back(static_cast<std::int64_t>(i));
  }
  return places;
}

const CallInfo& call_of(const Operation& op) {
  return kCalls[static_cast<std::size_t>(op.m)];
}

}  // namespace troupe::torture
