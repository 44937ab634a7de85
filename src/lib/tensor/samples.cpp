#include <troupe/lib/tensor.hpp>

#include "samples.hpp"

namespace troupe::test {
namespace {

using tensor::Binary;
using tensor::Unary;

tensor::TuneContract sample_of_tuning_contractions() {
  tensor::TuneContract op;
  op.dtype = op.product.dtype = DType::bf16;
  op.product.loops = {3, {4, 5, 6}, {{{6, 0, 1}, {0, 1, 5}, {5, 1, 0}}}};
  op.candidates = 4, op.repeats = 2, op.alignment_d = 128;
  op.a = range_in(1), op.b = range_in(2);
  op.outcome = {kPinnedRegion | 5, 0, 0, 0, 640, sizeof(tensor::ContractTuning)};
  return op;
}

Tailed<tensor::ContractBlockSparse> sample_of_blocks() {
  const tensor::Sections sections{{2, 3}, {4, 1}};
  const tensor::BlockPlaces blocks{{1, 0}, {0, 1}};
  const auto term = [&](const char* modes) {
    return tensor::BlockTerm{range_in(1), DType::f64, &sections, &blocks, modes};
  };
  const tensor::Sections turned{{4, 1}, {4, 1}}, square{{2, 3}, {4, 1}};
  const tensor::BlockTerm b{range_in(2), DType::f64, &turned, &blocks, "kn"};
  auto product =
      tensor::contraction(term("mk"), b, {range_in(3), DType::f64, &square, &blocks, "mn"}).value();
  product.op.alpha = Scalar::of(2.0), product.op.beta = Scalar::of(1.0);
  return {product.op, {}, product.data};
}

const Samples kTensorSamples{
    sample_of_blocks(),
    sample_of_tuning_contractions(),
    tensor::Contract{DType::f32,
                     tensor::Compute::tf32,
                     tensor::RealFactor::none,
                     {tensor::Method::tgett, 2, 1},
                     Unary::identity,
                     Unary::conj,
                     {3, {4, 5, 6}, {{{6, 0, 1}, {0, 1, 5}, {5, 1, 0}}}},
                     Scalar::of(2.0f),
                     Scalar::of(3.0f),
                     range_in(1),
                     range_in(2),
                     range_in(3),
                     range_in(4)},
    tensor::ContractTrinary{DType::c64,
                            tensor::Compute::standard,
                            Unary::conj,
                            Unary::identity,
                            Unary::identity,
                            {4, {2, 3, 4, 5}, {{{3, 1}, {0, 4, 1}, {0, 0, 5, 1}, {5, 0, 0, 1}}}},
                            Scalar::of(std::complex<float>(1, 2)),
                            Scalar::of(std::complex<float>(1)),
                            range_in(1),
                            range_in(2),
                            range_in(3),
                            range_in(4),
                            range_in(5)},
    tensor::Reduce{DType::f64,
                   Binary::max,
                   Unary::identity,
                   {2, {7, 8}, {{{8, 1}, {1, 0}}}},
                   Scalar::of(1.0),
                   Scalar::of(0.5),
                   range_in(1),
                   range_in(2),
                   range_in(3)},
    tensor::Permute{DType::f16,
                    DType::f32,
                    Unary::neg,
                    0,
                    {3, {3, 4, 5}, {{{20, 5, 1}, {1, 3, 12}}}},
                    Scalar::of(1.0f),
                    range_in(1),
                    range_in(2)},
    tensor::ElementwiseBinary{DType::f32,
                              DType::f16,
                              Binary::min,
                              Unary::sqrt,
                              Unary::identity,
                              0,
                              {2, {6, 7}, {{{0, 1}, {7, 1}}}},
                              Scalar::of(1.0f),
                              Scalar::of(2.0f),
                              range_in(1),
                              range_in(2),
                              range_in(3)},
    tensor::ElementwiseTrinary{DType::bf16,
                               DType::bf16,
                               Binary::mul,
                               Binary::add,
                               Unary::identity,
                               Unary::tanh,
                               Unary::identity,
                               0,
                               {2, {6, 7}, {{{0, 1}, {1, 6}, {7, 1}}}},
                               Scalar::of(1.0f),
                               Scalar::of(2.0f),
                               Scalar::of(3.0f),
                               range_in(1),
                               range_in(2),
                               range_in(3),
                               range_in(4)}};

}  // namespace
}  // namespace troupe::test
