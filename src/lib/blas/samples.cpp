#include <troupe/lib/blas.hpp>

#include "samples.hpp"

namespace troupe::test {
namespace {

using namespace blas;

constexpr auto kNo = Transpose::no;

std::vector<std::byte> one_group(const GemmGroup& group) {
  const auto bytes = std::as_bytes(std::span(&group, 1));
  return {bytes.begin(), bytes.end()};
}

Matmul sample_of_matmul() {
  Matmul op;
  op.dtype = op.b_dtype = DType::f8e4m3, op.c_dtype = op.d_dtype = DType::bf16;
  op.compute = Compute::f32, op.epilogue = Epilogue::relu_aux_bias;
  op.transpose_a = Transpose::yes, op.fast_accumulation = 1;
  op.scale_mode_a = op.scale_mode_b = ScaleMode::vector;
  op.m = op.n = op.k = op.lda = op.ldb = op.ldc = op.ldd = 16, op.ld_aux = 128;
  op.stride_a = op.stride_b = op.stride_c = op.stride_d = 256;
  op.alpha = factor_in(1), op.beta = factor_in(2);
  op.a = range_in(3), op.b = range_in(4), op.c = range_in(5), op.d = range_in(6);
  op.bias = range_in(7), op.aux = range_in(8);
  return op;
}

TuneMatmul sample_of_tuning() {
  TuneMatmul op;
  op.product = sample_of_matmul();
  op.product.alpha = op.product.beta = {};
  op.product.a = op.product.b = op.product.c = op.product.d = op.product.bias = op.product.aux = {};
  op.dtype = op.product.dtype, op.candidates = 4, op.repeats = 2;
  op.given = 1u << Matmul::scale_a | 1u << Matmul::scale_b | 1u << TuneMatmul::kC;
  op.alignments = {256, 256, 16, 16, 256, 256, 0, 0};
  op.alpha = factor_in(1), op.beta = factor_in(2), op.a = range_in(3), op.b = range_in(4);
  op.outcome = {kPinnedRegion | 5, 0, 0, 0, 640, sizeof(MatmulTuning)};
  return op;
}

const Samples kBlasSamples{
    Axpy{DType::f64, 4, 1, 1, factor_in(1), range_in(2), range_in(3)},
    Dot{DType::c128, 4, 1, -1, range_in(1), range_in(2), range_in(3), Conjugate::yes, 0},
    Nrm2{DType::f64, 4, 1, range_in(1), range_in(2)},
    Asum{DType::c64, 4, 1, range_in(1), range_in(2)},
    Iamax{DType::f32, Iamax::Which::smallest, 0, 4, 1, range_in(1), range_in(2)},
    Scal{DType::f64, 4, 1, factor_in(1), range_in(2), {}, 0},
    Copy{DType::f64, 4, 1, 1, range_in(1), range_in(2)},
    Swap{DType::c64, 4, -1, 2, range_in(1), range_in(2)},
    Rot{DType::c128, ScalarKind::own, 0, 4, 1, 2, factor_in(1), factor_in(2), range_in(3),
        range_in(4)},
    Rotg{DType::c64, range_in(1), range_in(2), range_in(3), range_in(4)},
    Rotm{DType::f32, 4, 1, 1, range_in(1), range_in(2), range_in(3)},
    Rotmg{DType::f64, range_in(1), range_in(2), range_in(3), range_in(4), range_in(5)},
    Gemv{DType::f64, kNo, 0, 4, 4, 5, 1, 1, factor_in(1), factor_in(2), range_in(3), range_in(4),
         range_in(5)},
    Gbmv{DType::c64, Transpose::conjugate, 0, 5, 4, 2, 1, 6, 1, -1, factor_in(1), factor_in(2),
         range_in(3), range_in(4), range_in(5)},
    Symv{DType::c128, Storage::banded, Symmetry::hermitian, Uplo::upper, 0, 5, 2, 4, 1, -2,
         factor_in(1), factor_in(2), range_in(3), range_in(4), range_in(5)},
    Ger{DType::f32, {}, 0, 4, 3, 5, 1, 1, factor_in(1), range_in(2), range_in(3), range_in(4)},
    Syr{DType::c64,
        Storage::packed,
        Symmetry::hermitian,
        {},
        0,
        5,
        0,
        1,
        factor_in(1),
        range_in(2),
        range_in(3)},
    Syr2{DType::f64,
         {},
         {},
         Uplo::upper,
         0,
         5,
         6,
         1,
         1,
         factor_in(1),
         range_in(2),
         range_in(3),
         range_in(4)},
    Trmv{DType::f32,
         Trmv::Task::solve,
         Storage::packed,
         {},
         Transpose::yes,
         Diagonal::unit,
         0,
         5,
         0,
         0,
         1,
         range_in(1),
         range_in(2)},
    Gemm{DType::f64, kNo, kNo, 4, 4, 4, 5, 6, 7, factor_in(1), factor_in(2), range_in(3),
         range_in(4), range_in(5)},
    Symm{DType::c64,
         Symmetry::hermitian,
         Side::right,
         {},
         0,
         4,
         3,
         3,
         5,
         6,
         factor_in(1),
         factor_in(2),
         range_in(3),
         range_in(4),
         range_in(5)},
    Syrk{DType::f64,
         {},
         Uplo::upper,
         kNo,
         0,
         4,
         3,
         5,
         6,
         factor_in(1),
         factor_in(2),
         range_in(3),
         range_in(4)},
    Syr2k{DType::c128,
          Symmetry::hermitian,
          {},
          Transpose::conjugate,
          Syr2k::Products::one,
          4,
          3,
          5,
          6,
          7,
          factor_in(1),
          factor_in(2),
          range_in(3),
          range_in(4),
          range_in(5)},
    Trmm{DType::f64, Side::left, Uplo::upper, kNo, Diagonal::unit, 4, 3, 5, 7, 7, factor_in(1),
         range_in(2), range_in(3), range_in(4)},
    Trsm{DType::f32, Side::right, {}, kNo, {}, 4, 3, 5, 6, factor_in(1), range_in(2), range_in(3)},
    Geam{DType::f64, kNo, kNo, 4, 3, 7, 7, 7, factor_in(1), factor_in(2), range_in(3), range_in(4),
         range_in(5)},
    Dgmm{DType::c64, Side::left, 0, 4, 3, 6, -1, 6, range_in(1), range_in(2), range_in(3)},
    Tpttr{DType::f64, Uplo::upper, 0, 4, 5, range_in(1), range_in(2)},
    Trttp{DType::f32, {}, 0, 4, 5, range_in(1), range_in(2)},
    GemmBatched{DType::f64, kNo, kNo, 4, 4, 4, 5, 6, 7, 3, 32, 0, 40, factor_in(1), factor_in(2),
                range_in(3), range_in(4), range_in(5)},
    GemmIndexed{DType::f64, kNo, kNo, 4, 4, 4, 5, 6, 7, 3, factor_in(1), factor_in(2), range_in(3),
                range_in(4), range_in(5), range_in(6), cell_in(7)},
    GemmEx{DType::f16, DType::f32, Compute::f32, kNo, Transpose::yes, 0, 4, 4, 4, 5, 6, 7,
           factor_in(1), factor_in(2), range_in(3), range_in(4), range_in(5)},
    GemvBatched{DType::bf16, DType::f32, kNo, 0, 4, 3, 5, 1, -1, 3, 20, 0, 4, factor_in(1),
                factor_in(2), range_in(3), range_in(4), range_in(5)},
    Tailed<GemmGrouped>{{DType::f64, 1},
                        lists_of(2, {Access::read, Access::read, Access::write}),
                        one_group({kNo, kNo, 4, 3, 2, 5, 6, 7, 2, 1, 0})},
    Tailed<TrsmBatched>{{DType::c64, Side::left, {}, kNo, {}, 4, 3, 5, 6, 2, factor_in(1)},
                        lists_of(2, {Access::read, Access::update})},
    Tailed<GetrfBatched>{{DType::c64, 4, 5, 2, range_in(1), range_in(2)},
                         lists_of(2, {Access::update})},
    Tailed<LapackBatched>{
        {DType::f64, LapackBatched::Task::getri, kNo, 4, 4, 0, 5, 6, 2, range_in(1), range_in(2)},
        lists_of(2, {Access::read, Access::write})},
    Transform{DType::i8,
              kNo,
              Transpose::yes,
              Order::row,
              {},
              Order::row,
              {},
              4,
              3,
              5,
              6,
              7,
              2,
              20,
              24,
              28,
              factor_in(1),
              factor_in(2),
              range_in(3),
              range_in(4),
              range_in(5)},
    Tailed<Matmul>{sample_of_matmul(), lists_of(1, {Access::read, Access::read})},
    sample_of_tuning()};

}  // namespace
}  // namespace troupe::test
