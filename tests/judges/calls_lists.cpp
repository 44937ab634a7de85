#include "call.hpp"

namespace troupe::judge {
namespace {

/// The shape of a batch whose matrices lie a stride apart.
GemmOptions gemm_options(const Call& c) {
  const auto transpose_a = c.transpose("transpose_a");
  return {.m = c.of("c", "rows"),
          .n = c.of("c", "columns"),
          .k = c.of("a", transpose_a == blas::Transpose::no ? "columns" : "rows"),
          .lda = c.of("a", "leading"),
          .ldb = c.of("b", "leading"),
          .ldc = c.of("c", "leading"),
          .transpose_a = transpose_a,
          .transpose_b = c.transpose("transpose_b")};
}

template <class T>
void add_batches(Runs& runs) {
  using F = ScalarTypeOf<T>;
  const auto add = calls_of<T>(runs, [](Device& device) { return device.blas(); });
  add("gemm_batched", [](Call& c, auto blas) {
    blas.gemm_batched(c.buffer<T>("a"), c.buffer<T>("b"), c.buffer<T>("c"), gemm_options(c),
                      {.batch = c.of("c", "batch"),
                       .stride_a = c.of("a", "stride"),
                       .stride_b = c.of("b", "stride"),
                       .stride_c = c.of("c", "stride")},
                      c.factor<F>("alpha"), c.factor<F>("beta"))
        .get();
  });
  add("gemv_batched", [](Call& c, auto blas) {
    blas.template gemv_batched<T, T>(c.buffer<T>("a"), c.buffer<T>("x"), c.buffer<T>("y"),
                                     {.m = c.of("a", "rows"),
                                      .n = c.of("a", "columns"),
                                      .lda = c.of("a", "leading"),
                                      .transpose = c.transpose()},
                                     {.batch = c.of("a", "batch"),
                                      .stride_a = c.of("a", "stride"),
                                      .stride_b = c.of("x", "stride"),
                                      .stride_c = c.of("y", "stride")},
                                     c.factor<F>("alpha"), c.factor<F>("beta"))
        .get();
  });
}

template <class T>
void add_grouped(Runs& runs) {
  using F = ScalarTypeOf<T>;
  const auto add = calls_of<T>(runs, [](Device& device) { return device.blas(); });
  add("gemm_grouped", [](Call& c, auto blas) {
    std::vector<GemmGroupOf<GpuRef<T>>> groups;
    for (std::int64_t i = 0; i < c.integer("groups"); ++i) {
      const auto n = std::to_string(i);
      groups.push_back({c.transpose("transpose_a" + n), c.transpose("transpose_b" + n),
                        c.factor<F>("alpha" + n), c.matrices<T>("a" + n), c.matrices<T>("b" + n),
                        c.factor<F>("beta" + n), c.matrices<T>("c" + n)});
    }
    blas.template gemm_grouped<T>(groups).get();
  });
}

template <class A, class C, blas::Compute compute>
void add_gemm_ex(Runs& runs, const std::string& name) {
  using S = detail::ScaleOf<A, compute>;
  const auto add = calls_of<A>(runs, [](Device& device) { return device.blas(); });
  add("gemm_ex " + name, [](Call& c, auto blas) {
    blas.template gemm_ex<compute, A, C>(c.transpose("transpose_a"), c.transpose("transpose_b"),
                                         c.factor<S>("alpha"), c.matrix<A>("a"), c.matrix<A>("b"),
                                         c.factor<S>("beta"), c.matrix<C>("c"))
        .get();
  });
}

/// "matmul": the epilogues that have no aux.
template <class A, class B, class D>
void add_matmul(Runs& runs) {
  const auto add = calls_of<A>(runs, [](Device& device) { return device.blas(); });
  add("matmul", [](Call& c, auto blas) {
    MatmulOptions options;
    options.transpose_a = c.transpose("transpose_a");
    options.transpose_b = c.transpose("transpose_b");
    options.epilogue = c.choice<blas::Epilogue>(
        "epilogue", {"none", "relu", "gelu", "bias", "relu_bias", "gelu_bias"});
    GpuRef<D> bias;
    if (blas::bias_use(options.epilogue) == blas::EpilogueUse::read) {
      bias = c.buffer<D>("bias");
      options.bias = bias;
    }
    const auto a = c.matrix<A>("a");
    const auto b = c.matrix<B>("b");
    blas.template matmul<A, B, D>(a, b, c.matrix<D>("d"), options).get();
  });
}

/// "matmul_aux": the epilogues that write, or read, something beside C and D.
template <class T>
void add_matmul_aux(Runs& runs) {
  const auto add = calls_of<T>(runs, [](Device& device) { return device.blas(); });
  add("matmul_aux", [](Call& c, auto blas) {
    MatmulOptions options;
    options.transpose_b = c.transpose("transpose_b");
    options.epilogue = static_cast<blas::Epilogue>(
        static_cast<int>(blas::Epilogue::relu_aux) +
        c.choice<int>("epilogue",
                      {"relu_aux", "relu_aux_bias", "gelu_aux", "gelu_aux_bias", "drelu",
                       "drelu_bgrad", "dgelu", "dgelu_bgrad", "bgrad_a", "bgrad_b"}));
    GpuRef<std::uint8_t> mask;
    GpuRef<T> aux, bias;
    if (blas::has_mask(options.epilogue))
      options.aux = mask = c.buffer<std::uint8_t>("aux");
    else if (blas::aux_use(options.epilogue) != blas::EpilogueUse::none)
      options.aux = aux = c.buffer<T>("aux");
    if (blas::bias_use(options.epilogue) != blas::EpilogueUse::none)
      options.bias = bias = c.buffer<T>("bias");
    const auto a = c.matrix<T>("a"), b = c.matrix<T>("b");
    blas.template matmul<T, T, T>(a, b, c.matrix<T>("d"), options).get();
  });
}

/// "transform": a row-major matrix is given as its transpose.
template <class T>
void add_transform(Runs& runs) {
  const auto add = calls_of<T>(runs, [](Device& device) { return device.blas(); });
  add("transform", [](Call& c, auto blas) {
    const auto order = [&c](const std::string& name) {
      return c.choice<blas::Order>("order_" + name, {"column", "row"});
    };
    const auto matrix = [&](const std::string& name) {
      auto one = c.matrix<T>(name);
      if (order(name) == blas::Order::row) std::swap(one.rows, one.columns);
      return one;
    };
    using F = detail::TransformFactorOf<T>;
    const auto a = matrix("a"), b = matrix("b"), to = matrix("c");
    blas.template transform<T>(c.factor<F>("alpha"), a, c.factor<F>("beta"), b, to,
                               {c.transpose("transpose_a"), c.transpose("transpose_b"), order("a"),
                                order("b"), order("c")})
        .get();
  });
}

template <class T>
void add_small_systems(Runs& runs) {
  const auto add = calls_of<T>(runs, [](Device& device) { return device.blas(); });
  add("gemm_indexed", [](Call& c, auto blas) {
    blas.template gemm_indexed<T>(c.buffer<T>("a"), c.buffer<T>("b"), c.buffer<T>("c"),
                                  c.buffer<std::int64_t>("offsets"), gemm_options(c),
                                  c.factor<T>("alpha"), c.factor<T>("beta"))
        .get();
  });
  add("trsm_batched", [](Call& c, auto blas) {
    blas.template trsm_batched<T>(c.side(), c.uplo(), c.transpose(), c.diagonal(),
                                  c.factor<T>("alpha"), c.matrices<T>("a"), c.matrices<T>("b"))
        .get();
  });
  // The factors and what they solve, in one: the pivots are nobody else's.
  add("getrf_batched", [](Call& c, auto blas) {
    const auto pivots = c.buffer<std::int32_t>("pivots"), info = c.buffer<std::int32_t>("info");
    blas.template getrf_batched<T>(c.matrices<T>("a"), pivots, info).get();
  });
  add("lapack_batched", [](Call& c, auto blas) {
    const auto a = c.matrices<T>("a"), b = c.matrices<T>("b"), inverse = c.matrices<T>("inverse");
    const auto pivots = c.buffer<std::int32_t>("pivots"), info = c.buffer<std::int32_t>("info");
    blas.template getrf_batched<T>(a, pivots, info).get();
    blas.template getrs_batched<T>(c.transpose(), a, pivots, b).get();
    blas.template getri_batched<T>(a, pivots, inverse, info).get();
  });
  add("matinv_batched", [](Call& c, auto blas) {
    blas.template matinv_batched<T>(c.matrices<T>("a"), c.matrices<T>("inverse"),
                                    c.buffer<std::int32_t>("info"))
        .get();
  });
  add("gels_batched", [](Call& c, auto blas) {
    blas.template gels_batched<T>(c.matrices<T>("a"), c.matrices<T>("b"),
                                  c.buffer<std::int32_t>("info"))
        .get();
  });
}

}  // namespace

void add_lists(Runs& runs) {
  using blas::Compute;
  using C64 = std::complex<float>;
  using C128 = std::complex<double>;
  for_types<Half, BFloat16, float, double, C64, C128>(
      [&runs]<class T>(T) { add_batches<T>(runs); });
  for_types<Half, BFloat16, float, double>([&runs]<class T>(T) { add_grouped<T>(runs); });
  for_numbers([&runs]<class T>(T) { add_small_systems<T>(runs); });
  for_types<Half, BFloat16, float, double, C64, C128>(
      [&runs]<class T>(T) { add_matmul<T, T, T>(runs); });
  for_types<Half, BFloat16, float>([&runs]<class T>(T) { add_matmul_aux<T>(runs); });
  for_types<Half, BFloat16, float, double, C64, C128, std::int8_t, std::int32_t, Float8E4M3,
            Float8E5M2>([&runs]<class T>(T) { add_transform<T>(runs); });
  add_matmul<std::int8_t, std::int8_t, std::int32_t>(runs);
  add_matmul<Float8E4M3, Float8E4M3, BFloat16>(runs);
  add_matmul<Float8E5M2, Float8E4M3, BFloat16>(runs);
  add_gemm_ex<Half, Half, Compute::f32>(runs, "f16 f32");
  add_gemm_ex<Half, float, Compute::f32>(runs, "f32 f32");
  add_gemm_ex<BFloat16, BFloat16, Compute::f32>(runs, "bf16 f32");
  add_gemm_ex<BFloat16, float, Compute::f32>(runs, "f32 f32");
  add_gemm_ex<float, float, Compute::f32>(runs, "f32 f32");
  add_gemm_ex<float, float, Compute::tf32>(runs, "f32 tf32");
  add_gemm_ex<double, double, Compute::f64>(runs, "f64 f64");
  add_gemm_ex<C64, C64, Compute::f32>(runs, "c64 f32");
  add_gemm_ex<C128, C128, Compute::f64>(runs, "c128 f64");
  add_gemm_ex<std::int8_t, std::int32_t, Compute::i32>(runs, "i32 i32");
}

}  // namespace troupe::judge
