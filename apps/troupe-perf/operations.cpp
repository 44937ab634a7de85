#include "operations.hpp"

#include <algorithm>
#include <array>
#include <numeric>

namespace troupe::perf {
namespace {

constexpr std::int64_t kPartBytes = 16;  ///< that parts are multiples of

constexpr std::array<OperationTraits, kOperationCount> kTraits = {{
    {.name = "all_reduce", .reduces = true},
    {.name = "all_gather", .parts = true, .all_but_one = true},
    {.name = "reduce_scatter", .reduces = true, .parts = true, .all_but_one = true},
    {.name = "broadcast", .rooted = true},
    {.name = "reduce", .reduces = true, .rooted = true},
    {.name = "all_to_all", .parts = true, .in_place = false, .all_but_one = true},
    {.name = "all_to_all_v", .parts = true, .in_place = false, .all_but_one = true},
    {.name = "gather", .rooted = true, .parts = true, .all_but_one = true},
    {.name = "scatter", .rooted = true, .parts = true, .all_but_one = true},
    {.name = "send_recv", .in_place = false},
    {.name = "fetch", .in_place = false, .collective = false},
    {.name = "put", .in_place = false, .collective = false},
    {.name = "tell", .in_place = false, .collective = false},
}};

struct Named {
  DType dtype;
  std::string_view name;
};
constexpr std::array<Named, 12> kTypes = {{{DType::i8, "int8"},
                                           {DType::u8, "uint8"},
                                           {DType::i32, "int32"},
                                           {DType::u32, "uint32"},
                                           {DType::i64, "int64"},
                                           {DType::u64, "uint64"},
                                           {DType::f16, "half"},
                                           {DType::f32, "float"},
                                           {DType::f64, "double"},
                                           {DType::bf16, "bfloat16"},
                                           {DType::f8e4m3, "f8e4m3"},
                                           {DType::f8e5m2, "f8e5m2"}}};

/// What one rank sends another in all_to_all_v: so many units as it is ranks behind, and the units
/// of all peers are size * (size - 1) / 2.
std::int64_t part_of(const Call& call, int from, int to, int size) {
  if (size == 1) return call.count;
  return 2 * call.count / (size - 1) * ((to - from + size) % size);
}

}  // namespace

const OperationTraits& traits(Operation operation) {
  return kTraits[static_cast<std::size_t>(operation)];
}

Extents extents(const Call& call, int rank, int size) {
  const auto whole = call.count * size;
  const auto own = call.count * rank;
  switch (call.operation) {
    case Operation::all_gather:
    case Operation::gather: return {call.count, whole, call.in_place ? own : 0, 0};
    case Operation::reduce_scatter:
    case Operation::scatter: return {whole, call.count, 0, call.in_place ? own : 0};
    case Operation::all_to_all: return {whole, whole, 0, 0};
    case Operation::all_to_all_v: {
      const auto parts = sent_parts(call, rank, size);
      const auto all = std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
      return {all, all, 0, 0};
    }
    default: return {call.count, call.count, 0, 0};
  }
}

std::vector<std::int64_t> sent_parts(const Call& call, int rank, int size) {
  std::vector<std::int64_t> parts;
  for (int peer = 0; peer < size; ++peer) parts.push_back(part_of(call, rank, peer, size));
  return parts;
}

std::vector<std::int64_t> received_parts(const Call& call, int rank, int size) {
  std::vector<std::int64_t> parts;
  for (int peer = 0; peer < size; ++peer) parts.push_back(part_of(call, peer, rank, size));
  return parts;
}

std::int64_t count_of(Operation operation, std::int64_t bytes, DType dtype, int size) {
  const auto element = static_cast<std::int64_t>(size_of(dtype));
  const auto count = bytes / element;
  if (!traits(operation).parts) return count;
  const auto step = kPartBytes / element;
  return count / size / step * step;
}

Bandwidth bandwidth(const Call& call, int size, double seconds) {
  const auto elements = extents(call, 0, size).largest();
  Bandwidth result;
  if (seconds <= 0) return result;
  result.algorithm =
      static_cast<double>(elements) * static_cast<double>(size_of(call.dtype)) / seconds / 1e9;
  const double others = static_cast<double>(size - 1) / size;
  result.bus = result.algorithm;
  if (traits(call.operation).all_but_one) result.bus *= others;
  if (call.operation == Operation::all_reduce) result.bus *= 2 * others;
  return result;
}

std::string_view name_of(DType dtype) {
  return std::find_if(kTypes.begin(), kTypes.end(), [=](const auto& t) { return t.dtype == dtype; })
      ->name;
}

std::string_view name_of(Reduction reduction) {
  constexpr std::array<std::string_view, 6> kNames = {"sum", "prod", "max", "min", "avg", "mulsum"};
  return kNames[static_cast<std::size_t>(reduction)];
}

const std::vector<DType>& dtypes() {
  static const auto all = [] {
    std::vector<DType> list;
    for (const auto& type : kTypes) list.push_back(type.dtype);
    return list;
  }();
  return all;
}

const std::vector<Reduction>& reductions() {
  using enum Reduction;
  static const std::vector<Reduction> all = {sum, prod, max, min, avg, mulsum};
  return all;
}

}  // namespace troupe::perf
