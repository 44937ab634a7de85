#include "lib/collective/gloo/reduction_cpu.hpp"

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "common/core/extremes.hpp"
#include "common/core/narrow_float.hpp"

namespace troupe::host::cpu {
namespace {

/// As wide as arithmetic on T is done in, without the undefined behaviour of signed overflow.
template <class T>
struct Arithmetic {
  using type = T;
};
template <class T>
requires std::is_integral_v<T>
struct Arithmetic<T> {
  using type = std::uint64_t;
};

template <class T, ReduceOp op>
void combine(void* out, const void* a, const void* b, std::size_t count) {
  using Wide = typename Arithmetic<T>::type;
  auto* z = static_cast<T*>(out);
  const auto* x = static_cast<const T*>(a);
  const auto* y = static_cast<const T*>(b);
  for (std::size_t i = 0; i < count; ++i) {
    if constexpr (op == ReduceOp::sum)
      z[i] = static_cast<T>(static_cast<Wide>(x[i]) + static_cast<Wide>(y[i]));
    if constexpr (op == ReduceOp::prod)
      z[i] = static_cast<T>(static_cast<Wide>(x[i]) * static_cast<Wide>(y[i]));
    if constexpr (op == ReduceOp::min) z[i] = smaller(x[i], y[i]);
    if constexpr (op == ReduceOp::max) z[i] = larger(x[i], y[i]);
  }
}

template <class T>
Combine choose(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::premul_sum:
    case ReduceOp::avg: return combine<T, ReduceOp::sum>;
    case ReduceOp::prod: return combine<T, ReduceOp::prod>;
    case ReduceOp::min: return combine<T, ReduceOp::min>;
    case ReduceOp::max: return combine<T, ReduceOp::max>;
  }
  check(false, "no such reduction");
  return nullptr;
}

/// Calls visit(T{}) with the C++ type of a dtype that has arithmetic.
template <class Visit>
auto with_arithmetic(DType dtype, Visit&& visit) {
  switch (dtype) {
    case DType::f32: return visit(float{});
    case DType::f64: return visit(double{});
    case DType::i8: return visit(std::int8_t{});
    case DType::u8: return visit(std::uint8_t{});
    case DType::i32: return visit(std::int32_t{});
    case DType::u32: return visit(std::uint32_t{});
    case DType::i64: return visit(std::int64_t{});
    case DType::u64: return visit(std::uint64_t{});
    default: check(false, "a dtype without arithmetic on the host"); return visit(float{});
  }
}

/// The least that is not below.
unsigned power_of_two(int ranks) {
  return std::bit_ceil(static_cast<unsigned>(ranks));
}

template <class Visit>
void with_narrow(DType dtype, Visit&& visit) {
  switch (dtype) {
    case DType::f16: return visit(Half{});
    case DType::bf16: return visit(BFloat16{});
    case DType::f8e4m3: return visit(Float8E4M3{});
    case DType::f8e5m2: return visit(Float8E5M2{});
    default: check(false, "not a narrow float");
  }
}

}  // namespace

Combine combine_function(DType dtype, ReduceOp op) {
  return with_arithmetic(dtype, [&](auto zero) { return choose<decltype(zero)>(op); });
}

void scale_all(DType dtype, const void* scalar, const void* in, void* out, std::size_t count) {
  if (is_narrow(dtype)) {
    return with_narrow(dtype, [&](auto zero) {
      using T = decltype(zero);
      T one;
      std::memcpy(&one, scalar, sizeof one);
      const auto by = widen(one);
      const auto* x = static_cast<const T*>(in);
      auto* z = static_cast<T*>(out);
      for (std::size_t i = 0; i < count; ++i) z[i] = narrow<T>(by * widen(x[i]));
    });
  }
  with_arithmetic(dtype, [&](auto zero) {
    using T = decltype(zero);
    using Wide = typename Arithmetic<T>::type;
    T by;
    std::memcpy(&by, scalar, sizeof by);
    const auto* x = static_cast<const T*>(in);
    auto* z = static_cast<T*>(out);
    for (std::size_t i = 0; i < count; ++i)
      z[i] = static_cast<T>(static_cast<Wide>(by) * static_cast<Wide>(x[i]));
  });
}

bool divides_before(DType dtype) noexcept {
  return is_narrow(dtype) || dtype == DType::f32 || dtype == DType::f64;
}

void divide_before(DType dtype, const void* in, void* out, std::size_t count, int ranks) {
  with_arithmetic(dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_floating_point_v<T>) {
      const auto by = static_cast<T>(power_of_two(ranks));
      const auto* x = static_cast<const T*>(in);
      auto* z = static_cast<T*>(out);
      for (std::size_t i = 0; i < count; ++i) z[i] = x[i] / by;
    }
  });
}

void divide_behind(DType dtype, void* data, std::size_t count, int ranks) {
  with_arithmetic(dtype, [&](auto zero) {
    using T = decltype(zero);
    auto* values = static_cast<T*>(data);
    if constexpr (std::is_floating_point_v<T>) {
      const auto by = static_cast<T>(ranks) / static_cast<T>(power_of_two(ranks));
      for (std::size_t i = 0; i < count; ++i) values[i] /= by;
    } else {
      // The number of ranks may not fit into the type: divide in one in which it does.
      using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
      for (std::size_t i = 0; i < count; ++i)
        values[i] = static_cast<T>(static_cast<Wide>(values[i]) / static_cast<Wide>(ranks));
    }
  });
}

bool is_narrow(DType dtype) noexcept {
  return DTypes::of({DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2}).has(dtype);
}

void widen_all(DType dtype, const void* source, float* wide, std::size_t count) {
  with_narrow(dtype, [&](auto zero) {
    const auto* values = static_cast<const decltype(zero)*>(source);
    for (std::size_t i = 0; i < count; ++i) wide[i] = widen(values[i]);
  });
}

void narrow_all(DType dtype, const float* wide, void* destination, std::size_t count) {
  with_narrow(dtype, [&](auto zero) {
    using T = decltype(zero);
    auto* values = static_cast<T*>(destination);
    for (std::size_t i = 0; i < count; ++i) values[i] = narrow<T>(wide[i]);
  });
}

}  // namespace troupe::host::cpu
