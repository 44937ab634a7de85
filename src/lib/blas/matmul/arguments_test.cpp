#include "dense_reference.hpp"
#include "reference/gelu.hpp"

namespace troupe::test::reference {
namespace {

using blas::Compute;
using blas::Epilogue;

TEST_F(BadArguments, OfMatmul) {
  using namespace blas;
  const auto y = put(std::vector<double>(16, 0.0)), z = put(std::vector<double>(16, 0.0));
  Matmul good;
  good.dtype = good.b_dtype = good.c_dtype = good.d_dtype = DType::f32;
  good.m = good.n = good.k = good.lda = good.ldb = good.ldc = good.ldd = 4;
  good.alpha = Scalar::of(1.0f), good.beta = Scalar::of(0.0f);
  good.compute = Compute::f32;
  good.a = good.b = x, good.d = y.operand();
  const auto refused = [&](auto change, Errc code = Errc::invalid) {
    auto op = good;
    change(op);
    expect_refused(op, code);
  };
  refused([](auto& op) { op.b_dtype = DType::f64; }, Errc::unsupported);
  refused([](auto& op) { op.d_dtype = op.c_dtype = DType::f16; }, Errc::unsupported);
  refused([](auto& op) { op.dtype = DType::f4e2m1x2; }, Errc::unsupported);
  refused([](auto& op) { op.compute = Compute::f64; }, Errc::unsupported);
  refused([](auto& op) { op.transpose_a = static_cast<Transpose>(9); });
  refused([](auto& op) { op.epilogue = static_cast<Epilogue>(16); });
  refused([](auto& op) { op.order_c = static_cast<Order>(2); });
  refused([](auto& op) { op.order_a = Order::row, op.lda = 3; });
  refused([](auto& op) { op.c = op.d, op.order_d = Order::row; });
  refused([&z](auto& op) {
    op.epilogue = Epilogue::drelu_bgrad, op.aux = op.bias = z.operand(), op.ld_aux = 128;
    op.order_d = Order::row;
  });
  refused([](auto& op) { op.scale_mode_a = op.scale_mode_b = ScaleMode::vector; });  // of f32
  refused([](auto& op) { op.scale_mode_a = static_cast<ScaleMode>(6); });
  refused([](auto& op) { op.scale_mode_a = ScaleMode::block32_ue8m0; }, Errc::unsupported);
  refused([](auto& op) { op.scale_mode_b = ScaleMode::block16_ue4m3; }, Errc::unsupported);
  refused([](auto& op) { op.m = -1; });
  refused([](auto& op) { op.ldd = 3; });
  refused([](auto& op) { op.lda = std::int64_t{1} << 30; });
  refused([](auto& op) { op.n = 64; });
  refused([](auto& op) { op.stride_a = -1; });
  refused([](auto& op) { op.batch = 2; });
  refused([](auto& op) { op.beta = Scalar::of(1.0f); });  // without c
  refused([](auto& op) { op.c = op.d, op.ldc = 5; });     // in place, of other layout
  refused([&z](auto& op) {
    op.dtype = op.b_dtype = DType::i8, op.c_dtype = op.d_dtype = DType::i32;
    op.compute = Compute::i32, op.alpha = op.beta = Scalar::of(1), op.c = z.operand(), op.ldc = 8;
  });
  refused([](auto& op) { op.d = op.a; });                   // overlaps
  refused([](auto& op) { op.epilogue = Epilogue::bias; });  // without bias
  refused([](auto& op) { op.epilogue = Epilogue::gelu_aux, op.ld_aux = 8; });
  const auto with_aux = [&](std::int64_t ld) {
    return
        [&z, ld](auto& op) { op.epilogue = Epilogue::drelu, op.aux = z.operand(), op.ld_aux = ld; };
  };
  refused(with_aux(4));
  refused(with_aux(192));
  refused(with_aux(512));  // needs 256 bytes, has 128
  refused([&](auto& op) {
    op.dtype = op.b_dtype = DType::f8e4m3, op.c_dtype = op.d_dtype = DType::f32;
  });
  refused(
      [&](auto& op) {
        op.dtype = op.b_dtype = DType::f8e5m2, op.c_dtype = op.d_dtype = DType::f32;
      },
      Errc::unsupported);

  const auto e = put(std::vector<Float8E4M3>(256)), o = put(std::vector<Float8E4M3>(256));
  const auto w = put(std::vector<float>(256, 0.0f));
  Matmul eight;
  eight.dtype = eight.b_dtype = DType::f8e4m3, eight.c_dtype = eight.d_dtype = DType::f32;
  eight.compute = Compute::f32, eight.transpose_a = Transpose::yes;
  eight.m = eight.n = eight.k = eight.lda = eight.ldb = eight.ldc = eight.ldd = 16;
  eight.alpha = Scalar::of(1.0f), eight.beta = Scalar::of(0.0f);
  eight.a = e.operand(), eight.b = o.operand(), eight.d = w.operand();
  const auto refused_modes = [&](ScaleMode of_a, ScaleMode of_b, auto change) {
    auto op = eight;
    op.scale_mode_a = of_a, op.scale_mode_b = of_b;
    change(op);
    expect_refused(op);
  };
  const auto as_is = [](auto&) {};
  refused_modes(ScaleMode::vector, ScaleMode::vector, as_is);  // without scales
  refused_modes(ScaleMode::vector, ScaleMode::scalar, as_is);
  refused_modes(ScaleMode::vector, ScaleMode::block128, as_is);
  refused_modes(ScaleMode::block128x128, ScaleMode::block128x128, as_is);
  refused_modes(ScaleMode::block128, ScaleMode::block128, [](auto& op) { op.batch = 0; });
  refused_modes(ScaleMode::vector, ScaleMode::vector,
                [](auto& op) { op.d_dtype = DType::f8e4m3, op.c_dtype = DType::bf16; });
}

}  // namespace
}  // namespace troupe::test::reference
