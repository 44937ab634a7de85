#include "lib/sparse/common/products_cpu.hpp"

/// Products of sparse matrices whose elements are narrower than what they are computed in, on the
/// cpu engine.
namespace troupe::host::cpu {
namespace {

/// Calls f(In{}, Out{}) for a product of `in` into `out`.
template <class F>
Result<void> with_types(DType in, DType out, F&& f) {
  if (in == DType::i8)
    return out == DType::i32 ? f(std::int8_t{}, std::int32_t{}) : f(std::int8_t{}, float{});
  if (in == DType::f16) return out == DType::f16 ? f(Half{}, Half{}) : f(Half{}, float{});
  return out == DType::bf16 ? f(BFloat16{}, BFloat16{}) : f(BFloat16{}, float{});
}

/// Queues the product that make<In, I, Out, Sum>() describes; its scalars are read when it runs.
template <class Op, class Make>
Result<void> queue_product(Services& services, const Op& op, const Call& call, DType out,
                           const std::shared_ptr<Team>& team, const Make& make) {
  return with_types(op.dtype, out, [&]<class In, class Out>(In, Out) {
    return with_index(op.a.index_dtype, [&]<class I>(I) {
      using Scalar = detail::SumOf<Out>;
      using Sum = std::conditional_t<std::is_same_v<Scalar, float>, float, std::uint32_t>;
      auto product = make.template operator()<In, I, Out, Sum>();
      return services.submit(call, [product, alpha = ScalarValue<Scalar>(op.alpha, call),
                                    beta = ScalarValue<Scalar>(op.beta, call), team]() mutable {
        product.alpha = static_cast<Sum>(alpha.get()), product.beta = static_cast<Sum>(beta.get());
        multiply(product, *team);
      });
    });
  });
}

}  // namespace

Result<void> run(const sparse::SpmvEx& op, const Call& call, Sparse& library) {
  return queue_product(library.services, op, call, op.y_dtype, library.team,
                       [&]<class In, class I, class Out, class Sum>() {
                         return SparseProduct<In, I, Out, Sum>{
                             op.a,
                             op.transpose,
                             call.at<const I>(op.outer),
                             call.at<const I>(op.inner),
                             call.at<const In>(op.value),
                             1,
                             {call.at<const In>(op.x), blas::Order::row, 1},
                             {call.at<Out>(op.y), blas::Order::row, 1},
                             {},
                             {}};
                       });
}

Result<void> run(const sparse::SpmmEx& op, const Call& call, Sparse& library) {
  return queue_product(library.services, op, call, op.c_dtype, library.team,
                       [&]<class In, class I, class Out, class Sum>() {
                         return SparseProduct<In, I, Out, Sum>{
                             op.a,
                             op.transpose_a,
                             call.at<const I>(op.outer),
                             call.at<const I>(op.inner),
                             call.at<const In>(op.value),
                             op.n,
                             {call.at<const In>(op.b), op.order_b, op.ldb},
                             {call.at<Out>(op.c), op.order_c, op.ldc},
                             {},
                             {}};
                       });
}

TROUPE_HANDLERS(Sparse)

}  // namespace troupe::host::cpu
