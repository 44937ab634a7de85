#include "call.hpp"

namespace troupe::judge {
namespace {

const std::vector<std::string> kReductions = {"sum",     "min",    "max",    "product",
                                              "bit_and", "bit_or", "bit_xor"};

primitives::Reduction reduction_of(const Call& c) {
  return c.choice<primitives::Reduction>("reduction", kReductions);
}
primitives::Order order_of(const Call& c) {
  return c.choice<primitives::Order>("order", {"ascending", "descending"});
}

template <class T>
void add_of(Runs& runs) {
  const auto add = calls_of<T>(runs, [](Device& device) { return primitives::on(device); });
  add("sort", [](Call& c, auto lib) {
    lib.sort(c.buffer<T>("keys"), c.buffer<T>("sorted"), order_of(c)).get();
  });
  add("sort_pairs", [](Call& c, auto lib) {
    lib.sort(c.buffer<T>("keys"), c.buffer<std::int64_t>("values"), c.buffer<T>("sorted"),
             c.buffer<std::int64_t>("sorted_values"), order_of(c))
        .get();
  });
  add("reduce", [](Call& c, auto lib) {
    lib.reduce(c.buffer<T>("x"), c.buffer<T>("result"), reduction_of(c)).get();
  });
  add("arg_reduce", [](Call& c, auto lib) {
    lib.arg_reduce(c.buffer<T>("x"), c.buffer<T>("value"), c.buffer<std::int64_t>("index"),
                   c.choice<primitives::Extreme>("extreme", {"min", "max"}))
        .get();
  });
  add("segmented_reduce", [](Call& c, auto lib) {
    lib.segmented_reduce(c.buffer<T>("x"), c.buffer<std::int64_t>("offsets"), c.buffer<T>("result"),
                         reduction_of(c))
        .get();
  });
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
  add("reduce_by_key", [](Call& c, auto lib) {
    const auto count = lib.reduce_by_key(c.buffer<T>("x"), c.buffer<std::int64_t>("weights"),
                                         c.buffer<T>("values"), c.buffer<std::int64_t>("results"),
                                         reduction_of(c));
    c.answer("count", count.get());
  });
  add("run_length_encode", [](Call& c, auto lib) {
    const auto count = lib.run_length_encode(c.buffer<T>("x"), c.buffer<T>("values"),
                                             c.buffer<std::int64_t>("lengths"));
    c.answer("count", count.get());
  });
}

template <class T>
void add_of_integers(Runs& runs) {
  const auto add = calls_of<T>(runs, [](Device& device) { return primitives::on(device); });
  add("scan", [](Call& c, auto lib) {
    lib.scan(c.buffer<T>("x"), c.buffer<T>("y"),
             c.choice<primitives::Scanning>("scanning", {"inclusive", "exclusive"}))
        .get();
  });
}

}  // namespace

void add_primitives(Runs& runs) {
  for_types<float, double, std::int32_t, std::int64_t, std::uint32_t, std::uint64_t>(
      [&]<class T>(T) { add_of<T>(runs); });
  for_types<std::int32_t, std::int64_t, std::uint32_t, std::uint64_t>(
      [&]<class T>(T) { add_of_integers<T>(runs); });
}

}  // namespace troupe::judge
