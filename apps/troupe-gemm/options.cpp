#include "options.hpp"

#include <fmt/format.h>

#include <charconv>

#include "program_options.hpp"

namespace troupe::gemm {
namespace {

using app::bad;
using app::lettered;
using app::on_the_way;

constexpr const char* kMost = "2147483647";  // of a layout

struct Type {
  const char* name;
  DType dtype;
};
constexpr Type kTypes[] = {{"float", DType::f32},
                           {"double", DType::f64},
                           {"zfloat", DType::c64},
                           {"zdouble", DType::c128}};

/// "128,128"; nothing where the option is not given.
Result<std::optional<Pair>> parse_pair(const Config& config, const char* option) {
  const auto& words = config.list(option);
  if (words.empty()) return std::optional<Pair>();
  if (words.size() != 2) return bad(option, "it takes two numbers: ROWS,COLUMNS");
  Pair pair{};
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& word = words[i];
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), pair[i]);
    if (error != std::errc{} || end != word.data() + word.size() || pair[i] < 1 ||
        pair[i] > INT32_MAX)
      return bad(option, fmt::format("'{}' is no number from 1 to {}", word, kMost));
  }
  return std::optional<Pair>(pair);
}

Result<void> parse_transposes(const std::string& text, Options& options) {
  if (text.size() != 2)
    return bad("transpose", "it takes two letters, for A and B: N, T or C each");
  blas::Transpose* const of[] = {&options.transpose_a, &options.transpose_b};
  for (std::size_t i = 0; i < 2; ++i) {
    switch (text[i]) {
      case 'N':
      case 'n': *of[i] = blas::Transpose::no; break;
      case 'T':
      case 't': *of[i] = blas::Transpose::yes; break;
      case 'C':
      case 'c': *of[i] = blas::Transpose::conjugate; break;
      default: return bad("transpose", fmt::format("'{}' is none of N, T and C", text[i]));
    }
  }
  return {};
}

}  // namespace

std::vector<OptionSpec> option_specs() {
  using enum OptionType;
  const char* const form = "ROWS,COLUMNS";
  return {
      lettered('m', {"m_dim", integer, "1000", "M", "rows of op(A) and C", {}, "1", kMost}),
      lettered('n', {"n_dim", integer, "1000", "N", "columns of op(B) and C", {}, "1", kMost}),
      lettered('k',
               {"k_dim", integer, "1000", "K", "columns of op(A), rows of op(B)", {}, "1", kMost}),
      on_the_way(lettered('r', {"n_rep", integer, "2", "N", "repetitions", {}, "1", "1000000"})),
      lettered('t', {"type",
                     text,
                     "double",
                     "TYPE",
                     "of the elements; z: complex numbers",
                     {"float", "double", "zfloat", "zdouble"}}),
      on_the_way({"test", flag, "off", "on|off",
                  "compare every element with a product that the host computes; slow"}),
      {"block_a", list, "", form, "blocks of A as it is stored; default: one for each rank"},
      {"block_b", list, "", form, "the same of B"},
      {"block_c", list, "", form, "the same of C"},
      lettered('p', {"p_grid", list, "", form, "the grid of ranks; default: one row"}),
      {"transpose", text, "NN", "XX", "for A and B: N, T (transposed) or C (its conjugate)"},
      {"alpha", real, "1", "ALPHA", "the product's factor", {}, "-1000", "1000"},
      {"beta", real, "1", "BETA", "the factor of what C was before a repetition", {}, "-1", "1"},
      {"panel", integer, "1024", "N", "columns of op(A) that are sent at once", {}, "1", kMost},
      on_the_way({"commit-every",
                  integer,
                  "10",
                  "N",
                  "repetitions from commit to commit of the state",
                  {},
                  "1"}),
      on_the_way({"json", text, "", "FILE", "write the report as JSON"}),
      fault_option(),
  };
}

Result<Options> parse_options(const Config& config) {
  Options options;
  options.m = config.integer("m_dim");
  options.n = config.integer("n_dim");
  options.k = config.integer("k_dim");
  options.repetitions = config.integer("n_rep");
  for (const auto& type : kTypes)
    if (config.text("type") == type.name) options.dtype = type.dtype;
  options.test = config.flag("test");
  for (const auto& [name, pair] :
       {std::pair{"block_a", &options.block_a}, std::pair{"block_b", &options.block_b},
        std::pair{"block_c", &options.block_c}, std::pair{"p_grid", &options.grid}}) {
    auto parsed = parse_pair(config, name);
    if (!parsed) return parsed.error();
    *pair = *parsed;
  }
  if (auto letters = parse_transposes(config.text("transpose"), options); !letters.ok())
    return letters.error();
  options.alpha = config.real("alpha");
  options.beta = config.real("beta");
  options.panel = config.integer("panel");
  options.commit_every = config.integer("commit-every");
  options.seed = static_cast<std::uint64_t>(config.integer("seed"));
  options.json = config.text("json");
  auto faults = ordered_faults(config);
  if (!faults) return faults.error();
  options.faults = std::move(*faults);
  for (const auto& fault : options.faults) {
    if (fault.iteration >= options.repetitions)
      return bad("fault", fmt::format("there is no repetition {} among {}", fault.iteration,
                                      options.repetitions));
  }
  return options;
}

double Options::flops() const {
  const bool complex = dtype == DType::c64 || dtype == DType::c128;
  return (complex ? 8.0 : 2.0) * static_cast<double>(m) * static_cast<double>(n) *
         static_cast<double>(k);
}

std::string transposes(const Options& options) {
  const auto letter = [](blas::Transpose transpose) {
    return transpose == blas::Transpose::no ? 'N' : transpose == blas::Transpose::yes ? 'T' : 'C';
  };
  return {letter(options.transpose_a), letter(options.transpose_b)};
}

std::string type_name(DType dtype) {
  for (const auto& type : kTypes)
    if (type.dtype == dtype) return type.name;
  return {};
}

}  // namespace troupe::gemm
