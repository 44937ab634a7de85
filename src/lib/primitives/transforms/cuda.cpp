#include "lib/primitives/cuda.hpp"

/// What goes by elements, and copies, on the cuda engine.
namespace troupe::host::cuda {

using primitives::Binary;
using primitives::kNarrowFloats;
using primitives::ReduceOp;
using primitives::Unary;

Result<void> run(const primitives::Transform& op, const Call& call, Primitives& library) {
  const auto launch = library.services.launch(call.queue());
  const auto n = static_cast<std::uint64_t>(op.n);
  if (kNarrowFloats.has(op.dtype)) {
    TROUPE_CUDA_TRY(kernels::transform(launch, op.op, n, narrow_float(op.dtype),
                                       call.at<const std::uint16_t>(op.x),
                                       call.at<std::uint16_t>(op.y)));
    return {};
  }
  return with_countable(op.dtype, [&]<class T>(T) -> Result<void> {
    TROUPE_CUDA_TRY(kernels::transform(launch, op.op, n, call.at<const T>(op.x), call.at<T>(op.y)));
    return {};
  });
}

Result<void> run(const primitives::TransformPairs& op, const Call& call, Primitives& library) {
  const auto launch = library.services.launch(call.queue());
  const auto n = static_cast<std::uint64_t>(op.n);
  if (kNarrowFloats.has(op.dtype)) {
    TROUPE_CUDA_TRY(kernels::transform(
        launch, op.op, n, narrow_float(op.dtype), call.at<const std::uint16_t>(op.x),
        call.at<const std::uint16_t>(op.y), call.at<std::uint16_t>(op.z)));
    return {};
  }
  return with_countable(op.dtype, [&]<class T>(T) -> Result<void> {
    TROUPE_CUDA_TRY(kernels::transform(launch, op.op, n, call.at<const T>(op.x),
                                       call.at<const T>(op.y), call.at<T>(op.z)));
    return {};
  });
}

Result<void> run(const primitives::Convert& op, const Call& call, Primitives& library) {
  using Narrow = std::uint16_t;
  const auto launch = library.services.launch(call.queue());
  const auto n = static_cast<std::uint64_t>(op.n);
  const bool from_narrow = kNarrowFloats.has(op.dtype), to_narrow = kNarrowFloats.has(op.y_dtype);
  const auto from = narrow_float(op.dtype), to = narrow_float(op.y_dtype);
  if (from_narrow && to_narrow) {
    TROUPE_CUDA_TRY(
        kernels::reformat(launch, n, from, call.at<const Narrow>(op.x), to, call.at<Narrow>(op.y)));
    return {};
  }
  if (from_narrow) {
    return with_countable(op.y_dtype, [&]<class To>(To) -> Result<void> {
      TROUPE_CUDA_TRY(
          kernels::widen(launch, n, from, call.at<const Narrow>(op.x), call.at<To>(op.y)));
      return {};
    });
  }
  return with_countable(op.dtype, [&]<class From>(From) -> Result<void> {
    const auto* const x = call.at<const From>(op.x);
    if (to_narrow) {
      TROUPE_CUDA_TRY(kernels::narrow(launch, n, x, to, call.at<Narrow>(op.y)));
      return {};
    }
    return with_countable(op.y_dtype, [&]<class To>(To) -> Result<void> {
      TROUPE_CUDA_TRY(kernels::convert(launch, n, x, call.at<To>(op.y)));
      return {};
    });
  });
}

Result<void> run(const primitives::TransformReduce& op, const Call& call, Primitives& library) {
  return combine({op.dtype, op.reduction, op.n, op.x, op.result, true, op.op}, call, library);
}

Result<void> run(const primitives::CopyBatched& op, const Call& call, Primitives& library) {
  const auto launch = library.services.launch(call.queue());
  kernels::Copies copies;
  const auto count = static_cast<std::size_t>(op.batch);
  for (std::size_t i = 0; i < count; ++i) {
    const auto& range = call.tail()[i].range;
    if (range.bytes == 0) continue;
    const auto* const from = call.at(range);
    auto* const to = call.at(call.tail()[count + i].range);
    if (copies.add(from, to, range.bytes)) continue;
    TROUPE_CUDA_TRY(kernels::copy(launch, copies));
    copies.count = 0;
    (void)copies.add(from, to, range.bytes);
  }
  TROUPE_CUDA_TRY(kernels::copy(launch, copies));
  return {};
}

Result<void> warm_up_transforms(DType dtype, std::int64_t n, const std::array<Operand, 4>& ranges,
                                const Call& call, Primitives& library) {
  const auto& [a, b, c, d] = ranges;
  TROUPE_CUDA_PROPAGATE(
      library.carry_out(primitives::Transform{dtype, Unary::absolute, 0, n, a, c}, call));
  TROUPE_CUDA_PROPAGATE(
      library.carry_out(primitives::TransformPairs{dtype, Binary::add, 0, n, a, b, c}, call));
  for (const auto y_dtype :
       {DType::i32, DType::u32, DType::i64, DType::u64, DType::f32, DType::f64, DType::f16})
    TROUPE_CUDA_PROPAGATE(library.carry_out(primitives::Convert{dtype, y_dtype, n, a, c}, call));
  TROUPE_CUDA_PROPAGATE(library.carry_out(
      primitives::TransformReduce{dtype, Unary::square, ReduceOp::sum, n, a, d}, call));
  kernels::Copies one;
  (void)one.add(call.at(a), call.at(d), d.bytes);
  TROUPE_CUDA_TRY(kernels::copy(library.services.launch(call.queue()), one));
  return {};
}

TROUPE_HANDLERS(Primitives)

}  // namespace troupe::host::cuda
