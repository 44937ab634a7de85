#include "lib/sparse/sparse_cpu.hpp"
#include "lib/sparse/spgemm_cpu.hpp"

namespace troupe::host::cpu {
Result<void> run(const sparse::Spgemm& op, const Call& call, Sparse& library) {
  using sparse::Spgemm;
  const auto values = [&](Spgemm::Matrix matrix) {
    return sparse::find_values(call.tail(), matrix);
  };
  return with_real(op.dtype, [&](auto zero) {
    return with_index(op.index_dtype, [&](auto zero_index) {
      using T = decltype(zero);
      using I = decltype(zero_index);
      const CsrFactor<T, I> a = {op.rows,
                                 op.inner,
                                 op.nonzeros_a,
                                 call.at<const I>(op.a_row_begin),
                                 call.at<const I>(op.a_column),
                                 call.at<const T>(values(Spgemm::a))};
      const CsrFactor<T, I> b = {op.inner,
                                 op.columns,
                                 op.nonzeros_b,
                                 call.at<const I>(op.b_row_begin),
                                 call.at<const I>(op.b_column),
                                 call.at<const T>(values(Spgemm::b))};
      const CsrProduct<T, I> c = {call.tail().empty() ? 0 : op.capacity, call.at<I>(op.c_row_begin),
                                  call.at<I>(op.c_column), call.at<T>(values(Spgemm::c))};
      return library.services.submit(call,
                                     [a, b, c, nonzeros = call.at<std::int64_t>(op.nonzeros)] {
                                       *nonzeros = spgemm(a, b, c);
                                     });
    });
  });
}

}  // namespace troupe::host::cpu

TROUPE_MODULE_HALF(troupe::host::cpu::Sparse, cpu)
