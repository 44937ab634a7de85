#include <algorithm>

#include <troupe/lib/dnn.hpp>
#include <troupe/lib/fft.hpp>
#include <troupe/lib/primitives.hpp>
#include <troupe/lib/solver.hpp>

#include "account.hpp"
#include "calls.hpp"
#include "hands.hpp"
#include "oracle.hpp"
#include "own_code.hpp"

// Calls of libraries that have them for the rank's own device only.

namespace troupe::torture {
namespace {

/// Calls visit(T{}) with float or double.
template <class Visit>
Future<void> with_real(DType dtype, Visit&& visit) {
  return dtype == DType::f32 ? visit(float{}) : visit(double{});
}

/// The matrix of a factorisation, column by column.
template <class T>
std::vector<T> values_of_matrix(const Operation& op) {
  std::vector<T> matrix(static_cast<std::size_t>(op.m * op.m));
  const auto diagonal = diagonal_of(op);
  for (std::size_t i = 0; i < diagonal.size(); ++i)
    matrix[i * (diagonal.size() + 1)] = static_cast<T>(diagonal[i]);
  return matrix;
}

constexpr auto kLower = blas::Uplo::lower;

OnFailure on_failure(const Operation& op) {
  return op.reports ? OnFailure::report : OnFailure::error;
}

}  // namespace

Future<void> Hands::submit_library(const Operation& op, Thread& thread) {
  switch (op.kind) {
    case Kind::potrf:
    case Kind::factor_info:
    case Kind::syevd:
    case Kind::gesvd:
    case Kind::gesv: return submit_solver(op, thread);
    case Kind::spgemm: return submit_sparse_product(op, thread);
    case Kind::transform:
    case Kind::transform_back: return submit_transform(op);
    case Kind::convolution:
    case Kind::attention: return submit_layer(op);
    case Kind::blas_call:
    case Kind::solver_call:
    case Kind::fft_call:
    case Kind::rng_call:
    case Kind::primitives_call:
    case Kind::sparse_call:
    case Kind::direct_call:
    case Kind::tensor_call:
    case Kind::dnn_call:
    case Kind::outside_call: return submit_call(op, thread);
    case Kind::combine:
    case Kind::smooth:
    case Kind::tally:
    case Kind::accumulate: return submit_own(op);
    default: return submit_primitives(op, thread);
  }
}

template <class T, class Get>
Future<void> Hands::look_at(const Operation& op, Thread& thread, const Future<T>& future, Get get) {
  auto over = future.then([](const T&) {});
  thread.seen.push_back({&op, {}, [future, get] { return bytes_of(get(future.get())); }, over});
  return over;
}

Future<void> Hands::submit_solver(const Operation& op, Thread& thread) {
  return with_real(op.dtype, [&]<class T>(T) {
    if (op.kind == Kind::potrf) {
      const auto a = here<T>(op.at[0]);
      if (op.n > 0) device_.upload<T>(values_of_matrix<T>(op), a);
      return device_.solver().potrf(kLower, MatrixRef(a, op.m, op.m)).then([](std::int32_t) {});
    }
    // What becomes of the matrix depends on the engine.
    const auto a = device_.alloc<T>(op.m * op.m);
    const MatrixRef matrix(a, op.m, op.m);
    auto solver = device_.solver();
    if (op.kind == Kind::gesv) {
      std::vector<T> reversed = values_of_matrix<T>(op), squares;
      for (auto column = reversed.begin(); column != reversed.end(); column += op.m)
        std::reverse(column, column + op.m);
      for (const auto value : diagonal_of(op)) squares.push_back(static_cast<T>(value * value));
      std::reverse(squares.begin(), squares.end());
      const MatrixRef b(device_.alloc<T>(op.m), op.m, 1), x(here<T>(op.at[0]), op.m, 1);
      device_.upload<T>(reversed, a), device_.upload<T>(squares, b.buffer);
      return solver.gesv(matrix, b, x).then([](const auto&) {});
    }
    device_.upload<T>(values_of_matrix<T>(op), a);
    if (op.kind == Kind::gesvd) {
      const auto s = here<T>(op.at[0]);
      if (op.transpose_a) return solver.gesvd(matrix, s).then([](std::int32_t) {});
      const MatrixRef<GpuRef<T>> none;
      return solver.gesvdj(solver::Extent::economy, matrix, s, none, none).then([](const auto&) {});
    }
    if (op.kind == Kind::syevd) {
      const auto vectors = op.transpose_a ? solver::Vectors::yes : solver::Vectors::no;
      return solver.syevd(vectors, kLower, matrix, here<T>(op.at[0])).then([](std::int32_t) {});
    }
    const auto info = solver.potrf(kLower, matrix, OnFailure::report);
    return look_at(op, thread, info, [a](std::int64_t value) { return a.valid() ? value : -1; });
  });
}

Future<void> Hands::submit_primitives(const Operation& op, Thread& thread) {
  auto primitives = primitives::on(device_);
  const auto submit = [&]<class T>(T) -> Future<void> {
    const auto a = here<T>(op.at[0]);
    if (op.kind == Kind::select) {
      const auto found = primitives.select_nonzero(a, here<std::int64_t>(op.at[1]), on_failure(op));
      return look_at(op, thread, found, [](std::int64_t count) { return count; });
    }
    const auto b = here<T>(op.at[1]);
    if (op.kind == Kind::sort) {
      return primitives.sort(
          a, b, op.transpose_a ? primitives::Order::descending : primitives::Order::ascending);
    }
    if constexpr (primitives::Integer<T>) {
      if (op.kind == Kind::scan) {
        return primitives.scan(
            a, b,
            op.transpose_a ? primitives::Scanning::exclusive : primitives::Scanning::inclusive);
      }
    }
    return primitives.reduce(a, b,
                             op.reduce == ReduceOp::min   ? primitives::ReduceOp::min
                             : op.reduce == ReduceOp::max ? primitives::ReduceOp::max
                                                          : primitives::ReduceOp::sum);
  };
  switch (op.dtype) {
    case DType::i32: return submit(std::int32_t{});
    case DType::u32: return submit(std::uint32_t{});
    case DType::i64: return submit(std::int64_t{});
    case DType::u64: return submit(std::uint64_t{});
    default: return with_real(op.dtype, submit);
  }
}

Future<void> Hands::submit_sparse_product(const Operation& op, Thread& thread) {
  const auto multiply = [&]<class T, class I>(T, I) {
    const CsrMatrix<T, I> a{op.m, op.n, here<I>(op.at[3]), here<I>(op.at[4]), here<T>(op.at[0])};
    const CsrMatrix<T, I> b{op.n, op.k, here<I>(op.at[5]), here<I>(op.at[6]), here<T>(op.at[1])};
    CsrMatrix<T, I> c{op.m, op.k, here<I>(op.at[7]), {}, {}};
    if (op.at[2].present()) c.column = here<I>(op.at[8]), c.value = here<T>(op.at[2]);
    const auto stored = device_.sparse().spgemm(a, b, c, on_failure(op));
    return look_at(op, thread, stored, [](std::int64_t count) { return count; });
  };
  return with_real(op.dtype, [&](auto zero) {
    return spec_of(op.at[7]).dtype == DType::i32 ? multiply(zero, std::int32_t{})
                                                 : multiply(zero, std::int64_t{});
  });
}

Future<void> Hands::submit_transform(const Operation& op) {
  const TransformShape shape(op);
  FftOptions options{.extents = {op.m, op.n, op.k}, .batch = op.at[0].count / shape.length};
  options.extents.rank = static_cast<std::uint32_t>(op.peer);
  for (auto i = options.extents.rank; i < fft::kMaxRank; ++i) options.extents.extent[i] = 0;
  auto fft = fft::on(device_);
  return with_real(op.dtype, [&]<class T>(T) {
    using Complex = std::complex<T>;
    if (op.kind == Kind::transform_back) {
      const auto between = device_.alloc<Complex>(options.batch * shape.stored);
      const auto there = fft.real_to_complex(here<T>(op.at[0]), between, options);
      if (there.ready() && !there.wait().ok())
        return there;  // refused: there is nothing in between
      return fft.complex_to_real(between, here<T>(op.at[1]), options);
    }
    const auto y = here<Complex>(op.at[1]);
    if (!op.transpose_a) return fft.real_to_complex(here<T>(op.at[0]), y, options);
    const auto x = here<Complex>(op.at[0]);
    return op.transpose_b ? fft.inverse(x, y, options) : fft.forward(x, y, options);
  });
}

Future<void> Hands::submit_layer(const Operation& op) {
  auto dnn = dnn::on(device_);
  const auto convolve = [&]<class T>(T) {
    const auto padding = ConvolutionShape(op).padding;
    const ConvolutionOptions options{.input_channels = op.k,
                                     .output_channels = op.k,
                                     .extents = {op.m, op.m},
                                     .filter = {op.n, op.n},
                                     .padding_before = {padding, padding},
                                     .strides = {op.peer, op.peer}};
    const auto x = here<T>(op.at[0]), w = here<T>(op.at[1]), y = here<T>(op.at[3]);
    return op.at[2].present() ? dnn.convolution(x, w, here<T>(op.at[2]), y, options)
                              : dnn.convolution(x, w, y, options);
  };
  const auto attend = [&]<class T>(T) {
    AttentionOptions options{.sequence_q = op.m, .sequence_kv = op.n, .dim_qk = op.k};
    if (op.n > 1) options.scale = 0.0f;  // all keys weigh the same
    return dnn.attention(here<T>(op.at[0]), here<T>(op.at[1]), here<T>(op.at[2]), here<T>(op.at[3]),
                         options);
  };
  const bool is_half = op.dtype == DType::f16;
  if (op.kind == Kind::attention) return is_half ? attend(Half{}) : attend(BFloat16{});
  return op.dtype == DType::f32 ? convolve(float{})
         : is_half              ? convolve(Half{})
                                : convolve(BFloat16{});
}

/// Its results are judged once the thread is through; only what is wrong says more than the oracle.
Future<void> Hands::submit_call(const Operation& op, Thread& thread) {
  const auto trial = calls_.begin(op, device_);
  if (trial == nullptr) return device_.nop();
  auto over = trial->over();
  const auto judge = [trial, &op] {
    const auto wrong = trial->judge();
    if (!wrong.empty())
      throw Finding(fmt::format("WRONG CONTENTS: {} (seed {}): {}", describe(op), op.data, wrong));
    return bytes_of(0);
  };
  thread.seen.push_back({&op, {}, judge, over});
  return over;
}

Future<void> Hands::submit_own(const Operation& op) {
  const int n = static_cast<int>(op.at[0].count);
  LaunchOptions how{.grid = (n + op.m - 1) / op.m, .block = op.m, .repeatable = op.transpose_a};
  if (op.kind == Kind::tally) {
    how.repeatable = false;  // it adds to what is there
    return device_.launch(own_.kernel(op.kind, op.dtype), how, n, static_cast<int>(op.at[1].count),
                          read(here<std::int32_t>(op.at[0])), update(here<std::int32_t>(op.at[1])));
  }
  return with_real(op.dtype, [&]<class T>(T) {
    const auto x = here<T>(op.at[0]), y = here<T>(op.at[1]);
    const auto alpha = static_cast<T>(op.alpha);
    if (op.kind == Kind::accumulate)
      return device_.call(own_.accumulate(op.dtype), n, alpha, read(x), update(y));
    const auto kernel = own_.kernel(op.kind, op.dtype);
    if (op.kind == Kind::smooth) {
      how.shared_bytes = static_cast<std::uint32_t>(static_cast<std::size_t>(op.m + 2) * sizeof(T));
      return device_.launch(kernel, how, n, read(x), write(y));
    }
    return device_.launch(kernel, how, n, alpha, read(x), read(y), write(here<T>(op.at[2])));
  });
}

}  // namespace troupe::torture
