#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/device.hpp>
#include <troupe/lib/kernel.hpp>
#include <troupe/lib/primitives/custom_source.hpp>

/// Transforms, reductions, prefix sums and selections with an operator of the program's own, which
/// it gives as CUDA C++. They are kernels of <troupe/lib/kernel.hpp> that troupe writes around the
/// operator: compiled once for each operator and type, on both engines; docs/kernels.md tells what
/// the cpu engine can compile. Nothing of CCCL is needed.
///
/// Elements are of any trivially copyable type of up to 16 bytes, which the program defines for
/// both compilers alike. Buffers hold them as they are, or as smaller elements that they consist
/// of: a struct of two floats lies in a GpuRef<float> of twice the length, or in bytes.
///
/// The order of the operands is kept, and which operands are combined first depends on the number
/// of elements alone. So an operator must be associative, need not be commutative, and gives the
/// same bits in every run.
namespace troupe::primitives {

/// What an element of a custom operation may be.
template <class T>
concept CustomElement = std::is_trivially_copyable_v<T> && sizeof(T) <= 16;
/// What a buffer may consist of that holds such elements.
template <class E, class T>
concept Holds = Element<E> && sizeof(T) % sizeof(E) == 0;

}  // namespace troupe::primitives

namespace troupe::detail::custom {

/// What the operator calls T, its type of that index; else what CUDA C++ calls a number.
template <class T>
Type type_of(const primitives::CustomOperator& op, std::size_t index) {
  if (index < op.types.size()) return {op.types[index], sizeof(T)};
  if constexpr (std::is_same_v<T, float>) return {"float", sizeof(T)};
  if constexpr (std::is_same_v<T, double>) return {"double", sizeof(T)};
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    constexpr const char* kNames[] = {"char", "short", "int", "long long"};
    constexpr std::size_t kIndex = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    return {std::string(std::is_signed_v<T> ? "signed " : "unsigned ") + kNames[kIndex], sizeof(T)};
  }
  return {{}, sizeof(T)};
}

inline constexpr std::int64_t kThreads = 256, kTile = 1024, kMostBlocks = 1024;

/// How elements are spread over blocks.
struct Spread {
  std::int64_t blocks = 0;
  std::int64_t chunk = 0;  ///< elements of each block but the last one

  explicit Spread(std::int64_t n) {
    const auto tiles = (n + kTile - 1) / kTile;
    const auto tiles_of_block = std::max<std::int64_t>(1, (tiles + kMostBlocks - 1) / kMostBlocks);
    blocks = (tiles + tiles_of_block - 1) / tiles_of_block;
    chunk = tiles_of_block * kTile;
  }
};

/// The kernels of one operator, on its device.
class Kernels {
 public:
  Kernels() = default;
  Kernels(Device& device, KernelModule module, Kind kind) : device_(&device) {
    for (const auto& name : names_of(kind)) kernels_.push_back(module.kernel(name));
  }
  template <class... Arguments>
  Future<void> launch(std::size_t kernel, std::int64_t blocks,
                      const Arguments&... arguments) const {
    return device_->launch(kernels_[kernel],
                           {.grid = blocks, .block = kThreads, .repeatable = true}, arguments...);
  }
  Future<void> refuse(std::string what) const {
    return refuse({Errc::invalid, 0, "primitives: " + std::move(what)});
  }
  Future<void> refuse(Error error) const { return device_->submitter().refuse(std::move(error)); }
  /// Memory for `count` elements of T, until what is launched now has ended.
  template <class T>
  Result<GpuRef<std::uint8_t>> scratch(std::int64_t count) const {
    return device_->try_alloc<std::uint8_t>(count * static_cast<std::int64_t>(sizeof(T)));
  }

 private:
  Device* device_ = nullptr;
  std::vector<Kernel> kernels_;
};

template <class Custom>
Future<Custom> compile(Device& device, Kind kind, const primitives::CustomOperator& op,
                       const std::vector<Type>& types) {
  if (std::any_of(types.begin(), types.end(), [](const Type& type) { return type.name.empty(); })) {
    return device.submitter()
        .refuse({Errc::invalid, 0, "primitives: a type of elements has no name in CUDA C++"})
        .then([] { return Custom(); });
  }
  CompileOptions options;
  options.names = names_of(kind);
  options.file = "custom_operator.cu";
  options.include_paths = op.include_paths, options.options = op.options;
  return device.compile(source_of(kind, op, types), std::move(options))
      .then([&device, kind](const KernelModule& module) {
        return Custom(Kernels(device, module, kind));
      });
}

/// How many elements of T a buffer holds; negative: it is not of whole ones, or not aligned.
template <class T, class E>
std::int64_t elements_of(const GpuRef<E>& buffer) {
  const bool whole = buffer.bytes() % sizeof(T) == 0 && buffer.operand().offset % alignof(T) == 0;
  return whole ? static_cast<std::int64_t>(buffer.bytes() / sizeof(T)) : -1;
}

template <class E, class F>
bool same_range(const GpuRef<E>& a, const GpuRef<F>& b) {
  const auto &x = a.operand(), &y = b.operand();
  return x.region == y.region && x.offset == y.offset && x.bytes == y.bytes;
}

/// The address of nothing: the kernel takes its output for the input.
inline constexpr std::uint64_t kInPlace = 0;

}  // namespace troupe::detail::custom

namespace troupe::primitives {

/// y[i] = op(x[i]), from X to Y.
template <CustomElement X, CustomElement Y>
class CustomTransform {
 public:
  CustomTransform() = default;
  explicit CustomTransform(detail::custom::Kernels kernels) : kernels_(std::move(kernels)) {}

  /// y has as many elements as x, and may be x. Errors: invalid.
  template <Holds<X> EX, Holds<Y> EY>
  Future<void> operator()(const GpuRef<EX>& x, const GpuRef<EY>& y) const {
    using namespace detail::custom;
    const auto n = elements_of<X>(x);
    if (n < 0 || elements_of<Y>(y) != n)
      return kernels_.refuse("the ranges of a transform do not have the same number of elements");
    const auto blocks = std::max<std::int64_t>(1, Spread(n).blocks);
    if (sizeof(X) == sizeof(Y) && same_range(x, y))
      return kernels_.launch(0, blocks, n, kInPlace, update(y));
    return kernels_.launch(0, blocks, n, read(x), write(y));
  }

 private:
  detail::custom::Kernels kernels_;
};

/// z[i] = op(x[i], y[i]), from X and Y to Z.
template <CustomElement X, CustomElement Y, CustomElement Z>
class CustomPairTransform {
 public:
  CustomPairTransform() = default;
  explicit CustomPairTransform(detail::custom::Kernels kernels) : kernels_(std::move(kernels)) {}

  /// All have the same number of elements. z overlaps neither x nor y. Errors: invalid.
  template <Holds<X> EX, Holds<Y> EY, Holds<Z> EZ>
  Future<void> operator()(const GpuRef<EX>& x, const GpuRef<EY>& y, const GpuRef<EZ>& z) const {
    using namespace detail::custom;
    const auto n = elements_of<X>(x);
    if (n < 0 || elements_of<Y>(y) != n || elements_of<Z>(z) != n)
      return kernels_.refuse("the ranges of a transform do not have the same number of elements");
    return kernels_.launch(0, std::max<std::int64_t>(1, Spread(n).blocks), n, read(x), read(y),
                           write(z));
  }

 private:
  detail::custom::Kernels kernels_;
};

/// What an associative operator T(T, T) makes of many elements.
template <CustomElement T>
class CustomReduction {
 public:
  CustomReduction() = default;
  explicit CustomReduction(detail::custom::Kernels kernels) : kernels_(std::move(kernels)) {}

  /// result[0] = op(... op(op(initial, x[0]), x[1]) ..., x[n - 1]). Errors: invalid; out_of_memory.
  template <Holds<T> EX, Holds<T> ER>
  Future<void> reduce(const GpuRef<EX>& x, const GpuRef<ER>& result, const T& initial) const {
    using namespace detail::custom;
    const auto n = elements_of<T>(x);
    if (n < 0 || elements_of<T>(result) != 1)
      return kernels_.refuse("a reduction takes whole elements, and room for one");
    const Spread parts(n);
    if (parts.blocks <= 1)
      return kernels_.launch(kReduce, 1, n, parts.chunk, read(x), 1, initial, write(result));
    const auto partial = kernels_.scratch<T>(parts.blocks);
    if (!partial) return kernels_.refuse(partial.error());
    (void)kernels_.launch(kReduce, parts.blocks, n, parts.chunk, read(x), 0, initial,
                          write(*partial));
    return kernels_.launch(kReduce, 1, parts.blocks, parts.blocks, read(*partial), 1, initial,
                           write(result));
  }
  /// y[i] = op(... op(x[0], x[1]) ..., x[i]). y has as many elements as x, and may be x. Errors:
  /// invalid; out_of_memory.
  template <Holds<T> EX, Holds<T> EY>
  Future<void> inclusive_scan(const GpuRef<EX>& x, const GpuRef<EY>& y) const {
    return scan(x, y, false, T());
  }
  /// y[0] = initial, y[i] = op(... op(initial, x[0]) ..., x[i - 1]); else as inclusive_scan().
  template <Holds<T> EX, Holds<T> EY>
  Future<void> exclusive_scan(const GpuRef<EX>& x, const GpuRef<EY>& y, const T& initial) const {
    return scan(x, y, true, initial);
  }

 private:
  static constexpr std::size_t kReduce = 0, kCarry = 1, kScan = 2;

  template <class EX, class EY>
  Future<void> scan(const GpuRef<EX>& x, const GpuRef<EY>& y, bool exclusive,
                    const T& initial) const {
    using namespace detail::custom;
    const auto n = elements_of<T>(x);
    if (n < 0 || elements_of<T>(y) != n)
      return kernels_.refuse("the ranges of a scan do not have the same number of elements");
    const Spread parts(n);
    const int is_exclusive = exclusive ? 1 : 0;
    const bool in_place = same_range(x, y);
    if (parts.blocks <= 1) {
      if (in_place)
        return kernels_.launch(kScan, 1, n, parts.chunk, kInPlace, update(y), kInPlace,
                               is_exclusive, initial);
      return kernels_.launch(kScan, 1, n, parts.chunk, read(x), write(y), kInPlace, is_exclusive,
                             initial);
    }
    const auto carries = kernels_.scratch<T>(parts.blocks);
    if (!carries) return kernels_.refuse(carries.error());
    (void)kernels_.launch(kReduce, parts.blocks, n, parts.chunk, read(x), 0, initial,
                          write(*carries));
    (void)kernels_.launch(kCarry, 1, static_cast<int>(parts.blocks), update(*carries), is_exclusive,
                          initial);
    if (in_place)
      return kernels_.launch(kScan, parts.blocks, n, parts.chunk, kInPlace, update(y),
                             read(*carries), is_exclusive, initial);
    return kernels_.launch(kScan, parts.blocks, n, parts.chunk, read(x), write(y), read(*carries),
                           is_exclusive, initial);
  }

  detail::custom::Kernels kernels_;
};

/// Which elements an operator bool(T) holds for.
template <CustomElement T>
class CustomSelection {
 public:
  CustomSelection() = default;
  explicit CustomSelection(detail::custom::Kernels kernels) : kernels_(std::move(kernels)) {}

  /// `selected` holds the elements of x for which the operator is true, in their order, as many as
  /// it has room for; what lies behind them does not change. count[0] is how many there are, also
  /// where that is more. Errors: invalid; out_of_memory.
  template <Holds<T> EX, Holds<T> ES>
  Future<void> select_if(const GpuRef<EX>& x, const GpuRef<ES>& selected,
                         const GpuRef<std::int64_t>& count) const {
    using namespace detail::custom;
    const auto n = elements_of<T>(x), capacity = elements_of<T>(selected);
    if (n < 0 || capacity < 0 || count.length() != 1)
      return kernels_.refuse("a selection takes whole elements, and room for one count");
    const Spread parts(n);
    const auto blocks = std::max<std::int64_t>(1, parts.blocks);
    const auto offsets = kernels_.scratch<std::int64_t>(blocks);
    if (!offsets) return kernels_.refuse(offsets.error());
    (void)kernels_.launch(kCount, blocks, n, parts.chunk, read(x), write(*offsets));
    auto counted =
        kernels_.launch(kOffsets, 1, static_cast<int>(blocks), update(*offsets), write(count));
    if (n == 0 || capacity == 0) return counted;
    return kernels_.launch(kSelect, blocks, n, parts.chunk, read(x), read(*offsets), capacity,
                           update(selected));
  }

 private:
  static constexpr std::size_t kCount = 0, kOffsets = 1, kSelect = 2;
  detail::custom::Kernels kernels_;
};

/// Each compiles an operator for a device:
///
///     compile_reduction<float>(device, {"[](float a, float b) { return a > b ? a : b; }"})
///         .get().reduce(x, result, 0.0f);
///
/// Errors: those of Kernels::compile(), so invalid with the compiler's messages where it does not
/// compile; in these "operator" and "declarations" are what CustomOperator calls so. Invalid, too:
/// a type has no name, or another size in CUDA C++.
template <CustomElement X, CustomElement Y>
Future<CustomTransform<X, Y>> compile_transform(Device& device, const CustomOperator& op) {
  using namespace detail::custom;
  return compile<CustomTransform<X, Y>>(device, Kind::transform, op,
                                        {type_of<X>(op, 0), type_of<Y>(op, 1)});
}
template <CustomElement X, CustomElement Y, CustomElement Z>
Future<CustomPairTransform<X, Y, Z>> compile_pair_transform(Device& device,
                                                            const CustomOperator& op) {
  using namespace detail::custom;
  return compile<CustomPairTransform<X, Y, Z>>(
      device, Kind::transform_pairs, op, {type_of<X>(op, 0), type_of<Y>(op, 1), type_of<Z>(op, 2)});
}
template <CustomElement T>
Future<CustomReduction<T>> compile_reduction(Device& device, const CustomOperator& op) {
  using namespace detail::custom;
  return compile<CustomReduction<T>>(device, Kind::reduction, op, {type_of<T>(op, 0)});
}
template <CustomElement T>
Future<CustomSelection<T>> compile_selection(Device& device, const CustomOperator& op) {
  using namespace detail::custom;
  return compile<CustomSelection<T>>(device, Kind::selection, op, {type_of<T>(op, 0)});
}

}  // namespace troupe::primitives
