#include <array>

#include "call.hpp"

namespace troupe::judge {
namespace {

const std::initializer_list<std::string_view> kReductions = {
    "sum", "min", "max", "product", "bit_and", "bit_or", "bit_xor"};

primitives::ReduceOp reduction_of(const Call& c) {
  return c.choice<primitives::ReduceOp>("reduction", kReductions);
}
primitives::Order order_of(const Call& c) {
  return c.choice<primitives::Order>("order", {"ascending", "descending"});
}
primitives::Scanning scanning_of(const Call& c) {
  return c.choice<primitives::Scanning>("scanning", {"inclusive", "exclusive"});
}
primitives::Unary unary_of(const Call& c) {
  return c.choice<primitives::Unary>(
      "op", {"negate", "absolute", "square", "square_root", "reciprocal", "bit_not"});
}
primitives::Binary binary_of(const Call& c) {
  return c.choice<primitives::Binary>("op", {"add", "subtract", "multiply", "divide", "min", "max",
                                             "bit_and", "bit_or", "bit_xor"});
}
primitives::KeyBits bits_of(const Call& c) {
  if (!c.has("bits")) return {};
  const auto bits = c.get<std::array<std::uint32_t, 2>>("bits");
  return {bits[0], bits[1]};
}
primitives::Channels channels_of(const Call& c) {
  const auto channels = c.get<std::array<std::uint32_t, 2>>("channels");
  return {channels[0], channels[1]};
}
/// The array of that name, or the input where the call works in place.
template <class T>
GpuRef<T> output(Call& c, std::string_view name, const GpuRef<T>& input) {
  return c.has("in_place") ? input : c.buffer<T>(name);
}

/// Calls use(V{}) for that of the types that the request names.
template <class... V, class Use>
void with_one_of(const Call& c, std::string_view name, const Use& use) {
  const auto dtype = c.get<std::string>(name);
  const bool found = ((dtype == to_string(dtype_of<V>) && (use(V{}), true)) || ...);
  check(found, "an unknown dtype in a request");
}
template <class Use>
void with_number(const Call& c, std::string_view name, const Use& use) {
  with_one_of<float, double, std::int32_t, std::int64_t, std::uint32_t, std::uint64_t>(c, name,
                                                                                       use);
}
template <class Use>
void with_ordered(const Call& c, std::string_view name, const Use& use) {
  with_one_of<float, double, std::int32_t, std::int64_t, std::uint32_t, std::uint64_t, Half,
              BFloat16>(c, name, use);
}
/// Values that are sorted or selected with keys: of 4 or of 8 bytes.
template <class Use>
void with_value(const Call& c, const Use& use) {
  with_one_of<std::uint32_t, std::int64_t>(c, "value_dtype", use);
}

template <class T>
auto adder(Runs& runs) {
  return calls_of<T>(runs, [](Device& device) { return primitives::on(device); });
}

template <class T>
void add_sorts(Runs& runs) {
  const auto add = adder<T>(runs);
  add("sort", [](Call& c, auto lib) {
    lib.sort(c.buffer<T>("keys"), c.buffer<T>("sorted"), order_of(c), bits_of(c)).get();
  });
  add("sort_pairs", [](Call& c, auto lib) {
    with_value(c, [&]<class V>(V) {
      lib.sort(c.buffer<T>("keys"), c.buffer<V>("values"), c.buffer<T>("sorted"),
               c.buffer<V>("sorted_values"), order_of(c), bits_of(c))
          .get();
    });
  });
  add("segmented_sort", [](Call& c, auto lib) {
    lib.segmented_sort(c.buffer<T>("keys"), c.buffer<std::int64_t>("offsets"),
                       c.buffer<T>("sorted"), order_of(c))
        .get();
  });
  add("segmented_sort_pairs", [](Call& c, auto lib) {
    with_value(c, [&]<class V>(V) {
      lib.segmented_sort(c.buffer<T>("keys"), c.buffer<V>("values"),
                         c.buffer<std::int64_t>("offsets"), c.buffer<T>("sorted"),
                         c.buffer<V>("sorted_values"), order_of(c))
          .get();
    });
  });
  add("merge", [](Call& c, auto lib) {
    lib.merge(c.buffer<T>("a"), c.buffer<T>("b"), c.buffer<T>("merged"), order_of(c)).get();
  });
  add("merge_pairs", [](Call& c, auto lib) {
    with_value(c, [&]<class V>(V) {
      lib.merge(c.buffer<T>("a"), c.buffer<V>("values_a"), c.buffer<T>("b"),
                c.buffer<V>("values_b"), c.buffer<T>("merged"), c.buffer<V>("merged_values"),
                order_of(c))
          .get();
    });
  });
}

template <class T>
void add_reductions(Runs& runs) {
  const auto add = adder<T>(runs);
  add("reduce", [](Call& c, auto lib) {
    lib.reduce(c.buffer<T>("x"), c.buffer<T>("result"), reduction_of(c)).get();
  });
  add("arg_reduce", [](Call& c, auto lib) {
    lib.arg_reduce(c.buffer<T>("x"), c.buffer<T>("value"), c.buffer<std::int64_t>("index"),
                   c.choice<primitives::Extreme>("extreme", {"min", "max"}))
        .get();
  });
  if constexpr (primitives::Number<T>) {
    add("segmented_reduce", [](Call& c, auto lib) {
      lib.segmented_reduce(c.buffer<T>("x"), c.buffer<std::int64_t>("offsets"),
                           c.buffer<T>("result"), reduction_of(c))
          .get();
    });
  }
  add("transform_reduce", [](Call& c, auto lib) {
    lib.transform_reduce(c.buffer<T>("x"), c.buffer<T>("result"), unary_of(c), reduction_of(c))
        .get();
  });
}

template <class T>
void add_selections(Runs& runs) {
  const auto add = adder<T>(runs);
  add("select_flagged", [](Call& c, auto lib) {
    const auto count = lib.select_flagged(c.buffer<T>("x"), c.buffer<std::uint8_t>("flags"),
                                          c.buffer<T>("selected"));
    c.answer("count", count.get());
  });
  add("partition_flagged", [](Call& c, auto lib) {
    const auto count =
        lib.partition_flagged(c.buffer<T>("x"), c.buffer<std::uint8_t>("flags"), c.buffer<T>("y"));
    c.answer("count", count.get());
  });
  add("unique", [](Call& c, auto lib) {
    c.answer("count", lib.unique(c.buffer<T>("x"), c.buffer<T>("selected")).get());
  });
  add("select_nonzero", [](Call& c, auto lib) {
    const auto count = lib.select_nonzero(c.buffer<T>("x"), c.buffer<std::int64_t>("selected"));
    c.answer("count", count.get());
  });
  add("partition_three_way", [](Call& c, auto lib) {
    const auto counts =
        lib.partition_three_way(c.buffer<T>("x"), c.buffer<std::uint8_t>("first_flags"),
                                c.buffer<std::uint8_t>("second_flags"), c.buffer<T>("first"),
                                c.buffer<T>("second"), c.buffer<T>("rest"), on_failure(c));
    c.answer("counts", counts.get());
  });
}

template <class T>
void add_runs(Runs& runs) {
  const auto add = adder<T>(runs);
  if constexpr (primitives::Number<T>) {
    add("reduce_by_key", [](Call& c, auto lib) {
      const auto count = lib.reduce_by_key(c.buffer<T>("x"), c.buffer<std::int64_t>("weights"),
                                           c.buffer<T>("values"), c.buffer<std::int64_t>("results"),
                                           reduction_of(c));
      c.answer("count", count.get());
    });
  }
  add("run_length_encode", [](Call& c, auto lib) {
    const auto count = lib.run_length_encode(c.buffer<T>("x"), c.buffer<T>("values"),
                                             c.buffer<std::int64_t>("lengths"));
    c.answer("count", count.get());
  });
  add("non_trivial_runs", [](Call& c, auto lib) {
    const auto count = lib.non_trivial_runs(c.buffer<T>("x"), c.buffer<std::int64_t>("offsets"),
                                            c.buffer<std::int64_t>("lengths"), on_failure(c));
    c.answer("count", count.get());
  });
  add("unique_by_key", [](Call& c, auto lib) {
    with_value(c, [&]<class V>(V) {
      const auto count =
          lib.unique_by_key(c.buffer<T>("keys"), c.buffer<V>("values"), c.buffer<T>("unique_keys"),
                            c.buffer<V>("first_values"), on_failure(c));
      c.answer("count", count.get());
    });
  });
}

template <class T>
void add_scans(Runs& runs) {
  const auto add = adder<T>(runs);
  add("scan", [](Call& c, auto lib) {
    const auto x = c.buffer<T>("x"), y = output(c, "y", x);
    if (c.has("initial")) {
      lib.scan(x, y, reduction_of(c), scanning_of(c), c.get<T>("initial")).get();
    } else {
      lib.scan(x, y, reduction_of(c), scanning_of(c)).get();
    }
  });
  add("scan_by_key", [](Call& c, auto lib) {
    with_number(c, "value_dtype", [&]<class V>(V) {
      const auto keys = c.buffer<T>("keys");
      const auto x = c.buffer<V>("x"), y = output(c, "y", x);
      if (c.has("initial")) {
        lib.scan_by_key(keys, x, y, reduction_of(c), scanning_of(c), c.get<V>("initial")).get();
      } else {
        lib.scan_by_key(keys, x, y, reduction_of(c), scanning_of(c)).get();
      }
    });
  });
}

template <class T>
void add_transforms_of(Runs& runs) {
  const auto add = adder<T>(runs);
  add("search", [](Call& c, auto lib) {
    lib.search(c.buffer<T>("sorted"), c.buffer<T>("values"), c.buffer<std::int64_t>("positions"),
               c.choice<primitives::Bound>("bound", {"lower", "upper"}))
        .get();
  });
  add("transform", [](Call& c, auto lib) {
    const auto x = c.buffer<T>("x");
    lib.transform(x, output(c, "y", x), unary_of(c)).get();
  });
  add("transform_pairs", [](Call& c, auto lib) {
    const auto x = c.buffer<T>("x"), y = c.buffer<T>("y");
    lib.transform(x, y, output(c, "z", x), binary_of(c)).get();
  });
  add("convert", [](Call& c, auto lib) {
    with_ordered(c, "y_dtype",
                 [&]<class Y>(Y) { lib.convert(c.buffer<T>("x"), c.buffer<Y>("y")).get(); });
  });
  if constexpr (primitives::Number<T>) {
    add("adjacent_difference", [](Call& c, auto lib) {
      const auto x = c.buffer<T>("x");
      lib.adjacent_difference(x, output(c, "y", x),
                              c.choice<primitives::Neighbour>("neighbour", {"left", "right"}))
          .get();
    });
  }
}

template <class T>
void add_histograms(Runs& runs) {
  const auto add = adder<T>(runs);
  using Level = primitives::LevelOf<T>;
  add("histogram_even", [](Call& c, auto lib) {
    with_one_of<std::uint32_t, std::uint64_t>(c, "count_dtype", [&]<class C>(C) {
      lib.histogram_even(c.buffer<T>("x"), c.buffer<C>("counts"), c.get<Level>("lower"),
                         c.get<Level>("upper"), channels_of(c))
          .get();
    });
  });
  add("histogram_range", [](Call& c, auto lib) {
    with_one_of<std::uint32_t, std::uint64_t>(c, "count_dtype", [&]<class C>(C) {
      lib.histogram_range(c.buffer<T>("x"), c.buffer<Level>("levels"), c.buffer<C>("counts"),
                          channels_of(c))
          .get();
    });
  });
}

/// "parts" are the copies, each [first element in "from", first one in "to", elements].
template <class T>
void add_copies(Runs& runs) {
  adder<T>(runs)("copy_batched", [](Call& c, auto lib) {
    const auto from = c.buffer<T>("from"), to = c.buffer<T>("to");
    std::vector<GpuRef<T>> sources, destinations;
    for (const auto& [source, destination, length] :
         c.get<std::vector<std::array<std::int64_t, 3>>>("parts")) {
      sources.push_back(from.slice(source, length));
      destinations.push_back(to.slice(destination, length));
    }
    lib.copy_batched(sources, destinations).get();
  });
}

}  // namespace

void add_primitives(Runs& runs) {
  for_types<float, double, std::int32_t, std::int64_t, std::uint32_t, std::uint64_t>(
      [&]<class T>(T) { add_scans<T>(runs), add_histograms<T>(runs); });
  for_types<Half, BFloat16, float, double, std::int32_t, std::int64_t, std::uint32_t,
            std::uint64_t>([&]<class T>(T) {
    add_sorts<T>(runs), add_reductions<T>(runs), add_selections<T>(runs), add_runs<T>(runs);
    add_transforms_of<T>(runs);
  });
  add_histograms<std::uint8_t>(runs);
  for_types<Half, BFloat16, float, double, Float8E4M3, Float8E5M2, std::int8_t, std::uint8_t,
            std::int16_t, std::uint16_t, std::int32_t, std::uint32_t, std::int64_t, std::uint64_t,
            std::complex<float>, std::complex<double>, Float4E2M1Pair, Int4Pair, FactorUE4M3,
            FactorUE8M0>([&]<class T>(T) { add_copies<T>(runs); });
}

}  // namespace troupe::judge
