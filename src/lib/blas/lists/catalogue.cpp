#include "catalogue/catalogue.hpp"

// Products with types of their own, batches and groups of products, and of small systems.

namespace troupe::catalogue {
namespace {

using blas::Compute;
using blas::Transpose;

/// One product of each kind: C = alpha op(A) op(B) + beta C.
template <class A, class C = A>
struct ListedProduct {
  Transpose of_a, of_b;
  std::int64_t m, n, k;
  Dense a, b, c;

  /// `data` says what the operands are: integers where a product is computed less precisely than A.
  ListedProduct(Trial& t, Transpose its_a, Transpose its_b, std::int64_t rows, std::int64_t columns,
                std::int64_t inner, Data data = Data::integers)
      : of_a(its_a),
        of_b(its_b),
        m(rows),
        n(columns),
        k(inner),
        a(of_a == Transpose::no ? t.dense<A>(m, k, data) : t.dense<A>(k, m, data)),
        b(of_b == Transpose::no ? t.dense<A>(k, n, data) : t.dense<A>(n, k, data)),
        c(t.dense<C>(m, n, data)) {}
  [[nodiscard]] Dense result(const Wide& alpha, const Wide& beta) const {
    return alpha * (reference::op(a, of_a) * reference::op(b, of_b)) + beta * c;
  }
  [[nodiscard]] GemmOptions options() const {
    return {.m = m, .n = n, .k = k, .transpose_a = of_a, .transpose_b = of_b};
  }
};
constexpr std::int64_t kBatch = 3;

void append(std::vector<Wide>& all, const Dense& one) {
  all.insert(all.end(), one.element.begin(), one.element.end());
}

template <class T>
void add_batches(Catalogue& catalogue) {
  using F = ScalarTypeOf<T>;
  catalogue.add<T>("gemm_batched", [](Trial& t) {
    const auto ta = t.transpose(), tb = t.transpose();
    const auto m = t.length<T>(), n = t.length<T>(), k = t.length<T>();
    const auto alpha = t.scalar<F>(), beta = t.scalar<F>();
    std::vector<Wide> a, b, c, expected;
    for (std::int64_t i = 0; i < kBatch; ++i) {
      const ListedProduct<T> one(t, ta, tb, m, n, k, t.data<T>());
      append(a, one.a), append(b, one.b), append(c, one.c);
      append(expected, one.result(alpha, beta));
    }
    const auto x = t.put<T>(a), y = t.put<T>(b), z = t.put<T>(c);
    const GemmOptions options{.m = m, .n = n, .k = k, .transpose_a = ta, .transpose_b = tb};
    const auto f = t.factor<F>(alpha), g = t.factor<F>(beta);
    if (t.flip()) {
      t.call(t.device().blas().gemm_batched(
          x, y, z, options,
          {.batch = kBatch, .stride_a = m * k, .stride_b = k * n, .stride_c = m * n}, f, g));
    } else {
      std::vector<GpuRef<T>> of_a, of_b, of_c;
      for (std::int64_t i = 0; i < kBatch; ++i) {
        of_a.push_back(x.slice(i * m * k, m * k)), of_b.push_back(y.slice(i * k * n, k * n));
        of_c.push_back(z.slice(i * m * n, m * n));
      }
      t.call(t.device().blas().template gemm_batched<T>(of_a, of_b, of_c, options, f, g));
    }
    t.expect(z, expected);
  });
  catalogue.add<T>("gemv_batched", [](Trial& t) {
    const auto transpose = t.transpose();
    const auto m = t.length<T>(), n = t.length<T>();
    const auto alpha = t.scalar<F>(), beta = t.scalar<F>();
    const bool plain = transpose == Transpose::no;
    const auto wide = plain ? n : m, tall = plain ? m : n;
    std::vector<Wide> a, x, y, expected;
    for (std::int64_t i = 0; i < kBatch; ++i) {
      const auto one = t.varied<T>(m, n), of_x = t.varied<T>(wide, 1), of_y = t.varied<T>(tall, 1);
      append(a, one), append(x, of_x), append(y, of_y);
      append(expected, alpha * (reference::op(one, transpose) * of_x) + beta * of_y);
    }
    const auto of_a = t.put<T>(a), from = t.put<T>(x), to = t.put<T>(t.weighed(y, beta));
    const GemvOptions options{.m = m, .n = n, .transpose = transpose};
    const auto f = t.factor<F>(alpha), g = t.factor<F>(beta);
    if (t.flip()) {
      t.call(t.device().blas().template gemv_batched<T, T>(
          of_a, from, to, options,
          {.batch = kBatch, .stride_a = m * n, .stride_b = wide, .stride_c = tall}, f, g));
    } else {
      std::vector<GpuRef<T>> as, xs, ys;
      for (std::int64_t i = 0; i < kBatch; ++i) {
        as.push_back(of_a.slice(i * m * n, m * n));
        xs.push_back(from.slice(i * wide, wide)), ys.push_back(to.slice(i * tall, tall));
      }
      t.call(t.device().blas().template gemv_batched<T, T>(as, xs, ys, options, f, g));
    }
    t.expect(to, expected);
  });
}

template <class T>
void add_grouped(Catalogue& catalogue) {
  using F = ScalarTypeOf<T>;
  catalogue.add<T>("gemm_grouped", [](Trial& t) {
    std::vector<GemmGroupOf<GpuRef<T>>> groups;
    const auto count = t.random.between(1, 3);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto ta = t.flip() ? Transpose::no : Transpose::yes,
                 tb = t.flip() ? Transpose::no : Transpose::yes;
      const auto m = t.length<T>(), n = t.length<T>(), k = t.length<T>();
      const auto alpha = t.scalar<F>(), beta = t.scalar<F>();
      groups.push_back(
          {ta, tb, reference::to_number<F>(alpha), {}, {}, reference::to_number<F>(beta), {}});
      for (auto left = t.random.between(1, 2); left > 0; --left) {
        const ListedProduct<T> one(t, ta, tb, m, n, k, t.data<T>());
        groups.back().a.push_back(t.put<T>(one.a, 0)),
            groups.back().b.push_back(t.put<T>(one.b, 0));
        groups.back().c.push_back(t.put<T>(one.c, 0));
        t.expect(groups.back().c.back(), one.result(alpha, beta));
      }
    }
    t.call(t.device().blas().template gemm_grouped<T>(groups));
  });
}

template <class A, class C, Compute compute>
void add_gemm_ex(Catalogue& catalogue, std::string_view name) {
  using S = detail::ScaleOf<A, compute>;
  catalogue.add<A>({name, "gemm_ex"}, [](Trial& t) {
    // Integers have extents that cuBLAS takes, and no product of two transposed matrices.
    constexpr bool kWhole = std::is_same_v<A, std::int8_t>;
    const auto extent = [&t] { return kWhole ? 4 * t.random.between(1, 4) : t.length<A>(); };
    const auto ta = t.flip() ? Transpose::no : Transpose::yes,
               tb = kWhole || t.flip() ? Transpose::no : Transpose::yes;
    const ListedProduct<A, C> one(t, ta, tb, extent(), extent(), extent(),
                                  compute == Compute::tf32 ? Data::integers : t.data<A>());
    const auto alpha = kWhole ? Wide(1) : t.scalar<C>(), beta = kWhole ? Wide(1) : t.scalar<C>();
    const auto factor = [](const Wide& x) {
      if constexpr (FieldElement<S>)
        return reference::to_number<S>(x);
      else
        return static_cast<S>(x.real());
    };
    const auto to = t.put<C>(one.c, 0);
    t.call(t.device().blas().template gemm_ex<compute, A, C>(
        ta, tb, factor(alpha), t.put<A>(one.a, 0), t.put<A>(one.b, 0), factor(beta), to));
    t.expect(to, one.result(alpha, beta));
  });
}

template <class T>
void add_gemm_indexed(Catalogue& catalogue) {
  catalogue.add<T>("gemm_indexed", [](Trial& t) {
    const auto ta = t.transpose(), tb = t.transpose();
    const auto m = t.length<T>(), n = t.length<T>(), k = t.length<T>();
    const auto alpha = t.scalar<T>(), beta = t.scalar<T>();
    std::vector<Wide> a, b, c, expected, offsets(3 * kBatch);
    for (std::size_t i = 0; i < kBatch; ++i) {
      offsets[i] = static_cast<double>(a.size()),
      offsets[kBatch + i] = static_cast<double>(b.size());
      offsets[2 * kBatch + i] = static_cast<double>(c.size());
      const ListedProduct<T> one(t, ta, tb, m, n, k, t.data<T>());
      append(a, one.a), append(b, one.b), append(c, one.c);
      append(expected, one.result(alpha, beta));
    }
    const auto to = t.put<T>(c);
    t.call(t.device().blas().template gemm_indexed<T>(
        t.put<T>(a), t.put<T>(b), to, t.put<std::int64_t>(offsets),
        {.m = m, .n = n, .k = k, .transpose_a = ta, .transpose_b = tb}, t.factor<T>(alpha),
        t.factor<T>(beta)));
    t.expect(to, expected);
  });
}

/// A matrix that is far from singular, of rows that may be more than its columns.
template <class T>
Dense dominant(Trial& t, std::int64_t m, std::int64_t n) {
  auto a = t.dense<T>(m, n, Data::fractions);
  for (std::int64_t i = 0; i < n; ++i)
    a(i, i) = reference::widen(reference::to_number<T>(a(i, i) + static_cast<double>(2 * m)));
  return a;
}
Dense first_rows(const Dense& a, std::int64_t rows) {
  Dense part{rows, a.columns};
  for (std::int64_t j = 0; j < a.columns; ++j) {
    for (std::int64_t i = 0; i < rows; ++i) part(i, j) = a(i, j);
  }
  return part;
}

template <class T>
void add_small_systems(Catalogue& catalogue) {
  catalogue.add<T>("trsm_batched", [](Trial& t) {
    const auto side = t.side();
    const auto uplo = t.uplo();
    const auto transpose = t.transpose();
    const auto diagonal = t.diagonal();
    const bool left = side == blas::Side::left;
    const auto m = t.length<T>(left), n = t.length<T>(!left);
    const auto order = left ? m : n, leading = order + t.random.below(3);
    const reference::Stored half{blas::Storage::full, uplo, order, 0, leading};
    const auto alpha = t.scalar<T>();
    std::vector<MatrixRef<GpuRef<T>>> a, b;
    for (std::int64_t i = 0; i < kBatch; ++i) {
      const auto one =
          reference::triangular_matrix<T>(half, diagonal, t.random.next(), t.data<T>());
      const auto of_a = reference::op(one, transpose);
      const auto x = t.varied<T>(m, n);
      a.push_back({t.put<T>(half.spread(one, diagonal)), order, order, leading});
      b.push_back(t.put<T>(left ? of_a * x : x * of_a, 2));
      t.expect(b.back(), alpha * x);
    }
    t.call(t.device().blas().template trsm_batched<T>(side, uplo, transpose, diagonal,
                                                      t.factor<T>(alpha), a, b));
  });
  // Factorise, solve, invert; or invert at once.
  catalogue.add<T>(
      {"lapack_batched", "getrf_batched lapack_batched", Missing::itself}, [](Trial& t) {
        const bool at_once = t.flip();
        const auto length = t.length<T>();
        const auto n = at_once ? std::min<std::int64_t>(length, 32) : length,
                   columns = t.random.between(1, 3), gap = t.random.below(3);
        const auto transpose = t.transpose();
        std::vector<MatrixRef<GpuRef<T>>> a, b, inverse;
        const auto pivots = t.put_values(
                       std::vector<std::int32_t>(static_cast<std::size_t>(n * kBatch))),
                   info = t.put_values(std::vector<std::int32_t>(kBatch, -1));
        for (std::int64_t i = 0; i < kBatch; ++i) {
          const auto one = dominant<T>(t, n, n), right = t.dense<T>(n, columns);
          a.push_back(t.put<T>(one, gap)), b.push_back(t.put<T>(right, 0));
          inverse.push_back(t.room<T>(n, n));
          t.demand(
              "A times its inverse",
              [&t, one, at = inverse.back()] {
                const auto x = t.got(at);
                return reference::ratio<T>(one * x - reference::identity(one.rows), one.rows,
                                           reference::norm(one) * reference::norm(x));
              },
              reference::kMostOfSystems);
          if (at_once) continue;
          t.demand(
              "A X - B",
              [&t, one, right, transpose, at = b.back()] {
                return reference::residual<T>(reference::op(one, transpose), t.got(at), right);
              },
              reference::kMostOfSystems);
        }
        auto blas = t.device().blas();
        if (at_once) {
          t.call(blas.template matinv_batched<T>(a, inverse, info));
        } else {
          t.call(blas.template getrf_batched<T>(a, pivots, info));
          t.call(blas.template getrs_batched<T>(transpose, a, pivots, b));
          t.call(blas.template getri_batched<T>(a, pivots, inverse, info));
        }
        t.expect(info, std::vector<Wide>(kBatch, 0));
      });
  catalogue.add<T>({"getrf_batched", "getrf_batched"}, [](Trial& t) {  // no rows are exchanged
    const auto n = t.length<T>(), gap = t.random.below(3);
    std::vector<MatrixRef<GpuRef<T>>> a;
    const auto info = t.put_values(std::vector<std::int32_t>(kBatch, -1));
    for (std::int64_t i = 0; i < kBatch; ++i) {
      const auto one = dominant<T>(t, n, n);
      a.push_back(t.put<T>(one, gap));
      t.demand(
          "L U - A",
          [&t, one, n, at = a.back()] {
            const auto both = t.got(at);
            const auto product = reference::triangle(both, blas::Uplo::lower, n, n, true) *
                                 reference::triangle(both, blas::Uplo::upper, n, n);
            return reference::ratio<T>(product - one, n, reference::norm(one));
          },
          reference::kMostOfSystems);
    }
    t.call(t.device().blas().template getrf_batched<T>(a, info));
    t.expect(info, std::vector<Wide>(kBatch, 0));
  });
  catalogue.add<T>({"gels_batched", "lapack_batched", Missing::itself}, [](Trial& t) {
    const auto n = t.length<T>(), m = n + t.random.below(4), gap = t.random.below(3);
    std::vector<MatrixRef<GpuRef<T>>> a, c;
    const auto info = t.put_values(std::vector<std::int32_t>(kBatch, -1));
    for (std::int64_t i = 0; i < kBatch; ++i) {
      const auto one = dominant<T>(t, m, n), x = t.dense<T>(n, 2);
      a.push_back(t.put<T>(one, gap)), c.push_back(t.put<T>(one * x, 0));
      t.demand(
          "the distance of a solution",
          [&t, x, at = c.back()] {
            return reference::ratio<T>(first_rows(t.got(at), x.rows) - x, at.rows, 1);
          },
          400);
    }
    t.call(t.device().blas().template gels_batched<T>(a, c, info));
    t.expect(info, std::vector<Wide>(kBatch, 0));
  });
  catalogue.add<T>({"geqrf_batched", "lapack_batched", Missing::itself}, [](Trial& t) {
    const auto n = t.length<T>(), m = n + t.random.below(4), gap = t.random.below(3);
    std::vector<MatrixRef<GpuRef<T>>> a, tau;
    for (std::int64_t i = 0; i < kBatch; ++i) {
      const auto one = dominant<T>(t, m, n);
      a.push_back(t.put<T>(one, gap)), tau.push_back(t.room<T>(n, 1));
      t.demand(
          "R^H R - A^H A",
          [&t, one, at = a.back()] {
            const auto r =
                reference::triangle(t.got(at), blas::Uplo::upper, one.columns, one.columns);
            const auto square = reference::op(one, Transpose::conjugate) * one;
            return reference::ratio<T>(reference::op(r, Transpose::conjugate) * r - square,
                                       one.rows, reference::norm(square));
          },
          reference::kMostOfSystems);
    }
    t.call(t.device().blas().template geqrf_batched<T>(a, tau));
  });
}

void add_calls_of_lists(Catalogue& catalogue) {
  using C64 = std::complex<float>;
  using C128 = std::complex<double>;
  for_types<Half, BFloat16, float, double, C64, C128>(
      [&catalogue]<class T>(T) { add_batches<T>(catalogue); });
  for_types<Half, BFloat16, float, double>([&catalogue]<class T>(T) { add_grouped<T>(catalogue); });
  for_numbers([&catalogue]<class T>(T) {
    add_gemm_indexed<T>(catalogue);
    add_small_systems<T>(catalogue);
  });
  add_gemm_ex<Half, Half, Compute::f32>(catalogue, "gemm_ex");
  add_gemm_ex<BFloat16, BFloat16, Compute::f32>(catalogue, "gemm_ex");
  add_gemm_ex<float, float, Compute::f32>(catalogue, "gemm_ex");
  add_gemm_ex<double, double, Compute::f64>(catalogue, "gemm_ex");
  add_gemm_ex<C64, C64, Compute::f32>(catalogue, "gemm_ex");
  add_gemm_ex<C128, C128, Compute::f64>(catalogue, "gemm_ex");
  add_gemm_ex<std::int8_t, std::int32_t, Compute::i32>(catalogue, "gemm_ex");
  add_gemm_ex<Half, float, Compute::f32>(catalogue, "gemm_ex into f32");
  add_gemm_ex<BFloat16, float, Compute::f32>(catalogue, "gemm_ex into f32");
  add_gemm_ex<float, float, Compute::tf32>(catalogue, "gemm_ex by tf32");
}

const Subject kLists("blas", add_calls_of_lists);

}  // namespace

}  // namespace troupe::catalogue
