// Contractions, permutations and reductions of tensors by troupe, and by cuTENSOR itself.
//
// Both sides are measured by this one program, in turn, as in cuda_raw_bench. A figure is met if
// the interval of its ratio reaches it; of small calls the difference counts.
#include <troupe/lib/tensor.hpp>

#include "beside.hpp"
#include "local_device.hpp"
#include "raw_tensor.hpp"

namespace troupe::bench {
namespace {

using What = RawTensors::What;

template <class T>
constexpr cudaDataType_t kType = std::is_same_v<T, double>     ? CUDA_R_64F
                                 : std::is_same_v<T, BFloat16> ? CUDA_R_16BF
                                                               : CUDA_R_32F;

/// Buffers may be aligned in another way than the raw side's, and kernels be others.
template <class T>
constexpr double kTolerance = std::is_same_v<T, double>     ? 1e-13
                              : std::is_same_v<T, BFloat16> ? 1e-2
                                                            : 1e-5;

std::int64_t volume(const std::string& modes, const Extents& extents) {
  std::int64_t elements = 1;
  for (const char mode : modes) elements *= extents.at(mode);
  return elements;
}

/// A tensor on both sides, without gaps.
template <class T>
struct Sides {
  Both<T> both;
  std::string modes;
  tensor::View<T> view;

  Sides(const Bench& bench, Raw& raw, const std::string& its_modes, const Extents& extents,
        std::uint64_t seed)
      : both(raw, *bench.device, numbers<T>(volume(its_modes, extents), seed)),
        modes(its_modes),
        view(both.ours, numbers_of(its_modes, extents)) {}

  [[nodiscard]] RawTerm raw() const { return {modes, both.raw}; }
  [[nodiscard]] tensor::TermOf<T> ours() const { return view(modes); }

 private:
  static tensor::Numbers numbers_of(const std::string& modes, const Extents& extents) {
    std::vector<std::int64_t> all;
    for (const char mode : modes) all.push_back(extents.at(mode));
    return tensor::Numbers(std::span<const std::int64_t>(all));
  }
};

template <class T>
void contract(const Bench& bench, const std::string& name, int calls, const std::string& a,
              const std::string& b, const std::string& d, const Extents& extents) {
  Raw raw;
  const Sides<T> x(bench, raw, a, extents, 1), y(bench, raw, b, extents, 2),
      z(bench, raw, d, extents, 3);
  RawTensors theirs(raw, What::contract, kType<T>, extents, {x.raw(), y.raw(), z.raw()});
  bench.measure(
      name, raw, calls, [&] { theirs.run(); },
      [&] { return tensor::on(*bench.device).contract(x.ours(), y.ours(), z.ours()); });
  check_equal(raw, z.both.raw, *bench.device, z.both.ours, name, kTolerance<T>);
}

template <class T>
void one_operand(const Bench& bench, const std::string& name, What what, int calls,
                 const std::string& a, const std::string& d, const Extents& extents) {
  Raw raw;
  const Sides<T> x(bench, raw, a, extents, 1), z(bench, raw, d, extents, 2);
  RawTensors theirs(raw, what, kType<T>, extents, {x.raw(), z.raw()});
  bench.measure(
      name, raw, calls, [&] { theirs.run(); },
      [&] {
        auto on_device = tensor::on(*bench.device);
        return what == What::permute ? on_device.permute(x.ours(), z.ours())
                                     : on_device.reduce(tensor::Binary::add, x.ours(), z.ours());
      });
  check_equal(raw, z.both.raw, *bench.device, z.both.ours, name, kTolerance<T>);
}

std::vector<OptionSpec> option_specs() {
  return {
      {"repetitions", OptionType::integer, "15", "N", "measurements of each side", {}, "1", "1000"},
      {"edge",
       OptionType::integer,
       "64",
       "N",
       "extent of each mode of large tensors, whose matrices have N^2 rows",
       {},
       "2",
       "128"},
      {"json", OptionType::text, "", "FILE", "write the results as JSON"},
  };
}

int run(const Config& config) {
  LocalDevice device(config, "cuda");
  std::vector<Comparison> lines;
  const Bench bench{&*device, config.integer("repetitions"), &lines};
  const auto edge = config.integer("edge"), n = edge * edge;
  const auto of = [](const std::string& modes, std::int64_t extent) {
    Extents extents;
    for (const char mode : modes) extents[mode] = extent;
    return extents;
  };
  contract<float>(bench, fmt::format("mk,kn->mn f32 n={}", n), 10, "mk", "kn", "mn", of("mkn", n));
  contract<BFloat16>(bench, fmt::format("mk,kn->mn bf16 n={}", n), 40, "mk", "kn", "mn",
                     of("mkn", n));
  contract<double>(bench, fmt::format("ijab,abkl->ijkl f64, {}^4", edge), 10, "ijab", "abkl",
                   "ijkl", of("ijabkl", edge));
  contract<double>(bench, fmt::format("iajb,kbla->ijkl f64, {}^4", edge), 10, "iajb", "kbla",
                   "ijkl", of("ijabkl", edge));
  auto batch = of("mkn", 8 * edge);
  batch['b'] = edge;
  contract<float>(bench, fmt::format("bmk,bkn->bmn f32, {} of {}", edge, 8 * edge), 20, "bmk",
                  "bkn", "bmn", batch);
  one_operand<float>(bench, fmt::format("abcd->dbca f32, {}^4", edge), What::permute, 100, "abcd",
                     "dbca", of("abcd", edge));
  one_operand<float>(bench, fmt::format("abcd->ac f32, {}^4", edge), What::reduce, 100, "abcd",
                     "ac", of("abcd", edge));
  contract<float>(bench, "ijab,abkl->ijkl f32, 4^4", 5000, "ijab", "abkl", "ijkl", of("ijabkl", 4));
  one_operand<float>(bench, "abcd->dbca f32, 4^4", What::permute, 5000, "abcd", "dbca",
                     of("abcd", 4));
  print(fmt::format("{}: cuTENSOR's own calls and troupe, medians of {} pairs", device->info().name,
                    bench.repetitions),
        lines);
  write_json(config.text("json"), lines).take();
  return 0;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  return troupe::bench::run_benchmark(argc, argv, "tensor_bench",
                                      "Operations on tensors, by troupe and directly.",
                                      troupe::bench::option_specs(), troupe::bench::run);
}
