#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "lib/primitives/cpu.hpp"
#include "lib/primitives/transforms/elementwise.hpp"

/// What goes by elements, and copies, on the cpu engine: loops.
namespace troupe::host::cpu {

Result<void> run(const primitives::Transform& op, const Call& call, Primitives& library) {
  return with_ordered(op.dtype, [&]<class T>(T) {
    return library.services.submit(call, [n = op.n, apply = ApplyUnary<NumberOf<T>>{op.op},
                                          x = call.at<const T>(op.x), y = call.at<T>(op.y)] {
      for (std::int64_t i = 0; i < n; ++i) y[i] = rounded<T>(apply(number(x[i])));
    });
  });
}

Result<void> run(const primitives::TransformPairs& op, const Call& call, Primitives& library) {
  return with_ordered(op.dtype, [&]<class T>(T) {
    return library.services.submit(
        call, [n = op.n, apply = ApplyBinary<NumberOf<T>>{op.op}, x = call.at<const T>(op.x),
               y = call.at<const T>(op.y), z = call.at<T>(op.z)] {
          for (std::int64_t i = 0; i < n; ++i) z[i] = rounded<T>(apply(number(x[i]), number(y[i])));
        });
  });
}

Result<void> run(const primitives::Convert& op, const Call& call, Primitives& library) {
  return with_ordered(op.dtype, [&]<class From>(From) {
    return with_ordered(op.y_dtype, [&]<class To>(To) {
      return library.services.submit(
          call, [n = op.n, x = call.at<const From>(op.x), y = call.at<To>(op.y)] {
            for (std::int64_t i = 0; i < n; ++i)
              y[i] = rounded<To>(converted<NumberOf<To>>(number(x[i])));
          });
    });
  });
}

Result<void> run(const primitives::TransformReduce& op, const Call& call, Primitives& library) {
  return with_ordered(op.dtype, [&]<class T>(T) {
    using Number = NumberOf<T>;
    using Wide = std::conditional_t<std::is_floating_point_v<Number>, double, Number>;
    return library.services.submit(
        call, [n = op.n, apply = ApplyUnary<Number>{op.op},
               combine = ApplyBinary<Wide>{combination(op.reduction)},
               first = neutral<Number>(op.reduction), x = call.at<const T>(op.x),
               result = call.at<T>(op.result)] {
          auto all = static_cast<Wide>(first);
          for (std::int64_t i = 0; i < n; ++i)
            all = combine(all, static_cast<Wide>(apply(number(x[i]))));
          *result = rounded<T>(all);
        });
  });
}

Result<void> run(const primitives::CopyBatched& op, const Call& call, Primitives& library) {
  struct Copy {
    const std::byte* from;
    std::byte* to;
    std::uint64_t bytes;
  };
  std::vector<Copy> copies;
  const auto count = static_cast<std::size_t>(op.batch);
  for (std::size_t i = 0; i < count; ++i) {
    const auto& from = call.tail()[i].range;
    copies.push_back({call.at(from), call.at(call.tail()[count + i].range), from.bytes});
  }
  return library.services.submit(call, [copies = std::move(copies)] {
    for (const auto& [from, to, bytes] : copies) {
      if (bytes != 0) std::memcpy(to, from, bytes);
    }
  });
}

TROUPE_HANDLERS(Primitives)

}  // namespace troupe::host::cpu
