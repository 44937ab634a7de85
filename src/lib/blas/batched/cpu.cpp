#include <utility>
#include <vector>

#include "lib/blas/common/products_cpu.hpp"

/// Batches on the cpu engine.
namespace troupe::host::cpu {

Result<void> run(const blas::GemmBatched& op, const Call& call, Blas& library) {
  if (auto fits = require_int({op.m, op.n, op.k, op.lda, op.ldb, op.ldc}); !fits) return fits;
  return with_number_or_narrow(op.dtype, [&]<class T>(T) {
    using F = ScalarTypeOf<T>;
    std::vector<T*> matrices;
    for (const auto& part : call.tail()) matrices.push_back(call.at<T>(part.range));
    return library.services.submit(
        call, [op, matrices = std::move(matrices), alpha = ScalarValue<F>(op.alpha, call),
               beta = ScalarValue<F>(op.beta, call), a = call.at<const T>(op.a),
               b = call.at<const T>(op.b), c = call.at<T>(op.c)] {
          const auto count = static_cast<std::size_t>(op.batch);
          const F one = alpha.get(), other = beta.get();
          for (std::size_t i = 0; i < matrices.size() / 3; ++i)
            multiply(op, one, matrices[i], matrices[count + i], other, matrices[2 * count + i]);
          if (!matrices.empty()) return;
          for (std::int64_t i = 0; i < op.batch; ++i) {
            multiply(op, one, a + i * op.stride_a, b + i * op.stride_b, other, c + i * op.stride_c);
          }
        });
  });
}

Result<void> run(const blas::GemmIndexed& op, const Call& call, Blas& library) {
  if (auto fits = require_int({op.m, op.n, op.k, op.lda, op.ldb, op.ldc}); !fits) return fits;
  return with_number(op.dtype, [&]<class T>(T) {
    return library.services.submit(
        call, [op, alpha = ScalarValue<T>(op.alpha, call), beta = ScalarValue<T>(op.beta, call),
               a = call.at<const T>(op.a), b = call.at<const T>(op.b), c = call.at<T>(op.c),
               offsets = call.at<const std::int64_t>(op.offsets),
               outside = call.at<std::int64_t>(op.outside)] {
          const auto last = blas::last_offsets(op);
          *outside = 0;
          for (std::int64_t i = 0; i < 3 * op.batch; ++i)
            *outside += offsets[i] < 0 || offsets[i] > last[static_cast<std::size_t>(i / op.batch)];
          if (*outside != 0) return;
          const T one = alpha.get(), other = beta.get();
          for (std::int64_t i = 0; i < op.batch; ++i) {
            multiply(op, one, a + offsets[i], b + offsets[op.batch + i], other,
                     c + offsets[2 * op.batch + i]);
          }
        });
  });
}

TROUPE_HANDLERS(Blas)

}  // namespace troupe::host::cpu
