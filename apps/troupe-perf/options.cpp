#include "options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

namespace troupe::perf {
namespace {

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 40;
constexpr std::int64_t kMostRecorded = 400;  ///< commands of a sequence with collectives in it

Error bad(const std::string& option, const std::string& why) {
  return {Errc::invalid, 0, fmt::format("--{}: {}", option, why)};
}

/// An option with a letter, that leaves results as they are.
OptionSpec lettered(char letter, OptionSpec option) {
  option.letter = letter;
  option.shapes_result = false;
  return option;
}

std::vector<std::string> all_operations() {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kOperationCount; ++i)
    names.emplace_back(traits(static_cast<Operation>(i)).name);
  names.emplace_back("all");
  return names;
}

template <class Values>
std::vector<std::string> names_and_all(const Values& values) {
  std::vector<std::string> names;
  for (const auto value : values) names.emplace_back(name_of(value));
  names.emplace_back("all");
  return names;
}

/// The one of that name, or all of them.
template <class T>
std::vector<T> chosen(const std::vector<T>& all, const std::string& name) {
  if (name == "all") return all;
  return {*std::find_if(all.begin(), all.end(), [&](T value) { return name_of(value) == name; })};
}

OptionSpec number(const char* name, const char* fallback, const char* help, const char* least,
                  const char* most) {
  return {name, OptionType::integer, fallback, "N", help, {}, least, most};
}

}  // namespace

std::vector<OptionSpec> option_specs() {
  using enum OptionType;
  return {
      lettered(0, {"operation", list, "all_reduce", "OPERATION,...",
                   "what is measured: collectives, messages from rank to rank (send_recv), all of "
                   "these (all); tokens (fetch, put), messages to actors (tell)",
                   all_operations()}),
      lettered('b', {"minbytes", text, "32M", "SIZE", "smallest size; K, M, G: powers of 1024"}),
      lettered('e', {"maxbytes", text, "32M", "SIZE", "largest size"}),
      lettered('i', {"stepbytes", text, "1M", "SIZE", "from size to size: so much is added"}),
      lettered('f', number("stepfactor", "1", "from size to size: multiplied by it, if it is not 1",
                           "1", "1000000")),
      lettered('n', number("iters", "20", "timed calls of each size", "1", "1000000")),
      lettered('w',
               number("warmup_iters", "1", "calls of each size before, not timed", "0", "1000000")),
      lettered('c', number("datacheck", "1",
                           "checks of the results of each size, all elements on all ranks; also "
                           "--check N, as nccl-tests has it",
                           "0", "1000")),
      lettered('o', {"op", text, "sum", "REDUCTION", "reduction", names_and_all(reductions())}),
      lettered('d', {"datatype", text, "float", "TYPE", "type of the elements",
                     names_and_all(dtypes())}),
      lettered('r', {"root", integer, "0", "RANK|all", "root", {"all"}, "0", "1048576"}),
      lettered('z', number("blocking", "0",
                           "wait after each call; 1: with a barrier, 2: without one, 3: with one "
                           "that is not timed",
                           "0", "3")),
      lettered('G', number("cudagraph", "0",
                           "record the calls as a sequence, and run it N times; 0: do not", "0",
                           "1000000")),
      lettered('a', number("average", "1",
                           "of the ranks' times; 0: rank 0's, 1: the mean, 2: the least, 3: the "
                           "largest",
                           "0", "3")),
      lettered('t', number("nthreads", "1", "1: each rank is a process", "1", "1024")),
      lettered('g', number("ngpus", "1", "1: each rank has one GPU", "1", "1024")),
      lettered('J', {"output_file", text, "", "FILE", "write the results as JSON"}),
      lettered(0, {"json", text, "", "FILE", "the same, by its name in troupe's programs"}),
      lettered(0, number("group", "0",
                         "ranks of each group, which all work at once; 0: one, of all ranks", "0",
                         "1048576")),
      lettered(0, {"peer",
                   text,
                   "none",
                   "none|nccl|mpi",
                   "measure the same without troupe beside it: by NCCL on the same GPUs, by MPI in "
                   "host memory with the cpu engine",
                   {"none", "nccl", "mpi"}}),
      fault_option(),
  };
}

std::vector<char*> rewritten(int argc, char** argv) {
  static char letter[] = "-c";
  const auto is_number = [](const std::string& text) {
    return !text.empty() && std::all_of(text.begin(), text.end(),
                                        [](unsigned char c) { return std::isdigit(c) != 0; });
  };
  std::vector<char*> words(argv, argv + argc);
  for (std::size_t i = 1; i + 1 < words.size(); ++i)
    if (std::string(words[i]) == "--check" && is_number(words[i + 1])) words[i] = letter;
  words.push_back(nullptr);
  return words;
}

Result<std::int64_t> parse_size(const std::string& text) {
  double value = 0;
  const auto* const end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, value);
  std::string unit(stop, end);
  for (auto& c : unit) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  const std::pair<const char*, int> units[] = {{"", 0},   {"B", 0},    {"K", 10}, {"KIB", 10},
                                               {"M", 20}, {"MIB", 20}, {"G", 30}, {"GIB", 30}};
  for (const auto& [name, power] : units) {
    if (status != std::errc{} || unit != name) continue;
    const double bytes = value * static_cast<double>(std::int64_t{1} << power);
    if (bytes >= 1 && bytes <= static_cast<double>(kMaxBytes))
      return static_cast<std::int64_t>(bytes);
  }
  return Error{Errc::invalid, 0,
               fmt::format("'{}' is not a size such as 8, 64K or 128M, up to 1024G", text)};
}

std::vector<std::int64_t> Options::sizes() const {
  std::vector<std::int64_t> list;
  for (auto size = smallest; size <= largest;
       size = step_factor > 1 ? size * step_factor : size + step_bytes)
    list.push_back(size);
  return list;
}

bool Options::measures(Operation operation) const {
  return std::find(operations.begin(), operations.end(), operation) != operations.end();
}

std::string Options::operation_names() const {
  std::string names;
  for (const auto operation : operations)
    names += (names.empty() ? "" : ",") + std::string(traits(operation).name);
  return names;
}

Result<Options> parse_options(const Config& config) {
  Options options;
  const std::pair<const char*, std::int64_t*> sizes[] = {{"minbytes", &options.smallest},
                                                         {"maxbytes", &options.largest},
                                                         {"stepbytes", &options.step_bytes}};
  for (const auto& [name, value] : sizes) {
    const auto parsed = parse_size(config.text(name));
    if (!parsed) return bad(name, parsed.error().message);
    *value = *parsed;
  }
  options.step_factor = config.integer("stepfactor");
  options.iterations = config.integer("iters");
  options.warm_up = config.integer("warmup_iters");
  options.checks = config.integer("datacheck");
  options.dtypes = chosen(dtypes(), config.text("datatype"));
  options.reductions = chosen(reductions(), config.text("op"));
  options.root = config.text("root") == "all" ? -1 : static_cast<int>(config.integer("root"));
  options.blocking = static_cast<int>(config.integer("blocking"));
  options.replays = config.integer("cudagraph");
  options.average = static_cast<int>(config.integer("average"));
  options.group = static_cast<int>(config.integer("group"));
  if (config.text("peer") != "none") options.peer = config.text("peer");
  for (const auto& name : config.list("operation")) {
    for (std::size_t i = 0; i < kOperationCount; ++i) {
      const auto operation = static_cast<Operation>(i);
      const auto& of = traits(operation);
      if (of.name == name || (name == "all" && of.collective))
        options.operations.push_back(operation);
    }
  }
  if (options.operations.empty()) return Error{Errc::invalid, 0, "--operation: it names none"};
  for (const auto* name : {"output_file", "json"})
    if (!config.text(name).empty()) options.json.push_back(config.text(name));
  auto faults = ordered_faults(config);
  if (!faults) return faults.error();
  options.faults = std::move(*faults);

  if (options.smallest > options.largest) {
    return bad("minbytes", fmt::format("{} is more than --maxbytes {}", config.text("minbytes"),
                                       config.text("maxbytes")));
  }
  constexpr std::int64_t kMostSizes = 100'000;
  if (options.step_factor == 1 &&
      (options.largest - options.smallest) / options.step_bytes >= kMostSizes)
    return bad("stepbytes", fmt::format("these are more than {} sizes", kMostSizes));
  if (config.given("stepbytes") && options.step_factor > 1)
    return bad("stepfactor", "not together with --stepbytes");
  for (const auto* one : {"nthreads", "ngpus"}) {
    if (config.integer(one) != 1)
      return bad(one, "a rank is one process with one GPU; mpirun -n starts more of them");
  }
  if (options.measures(Operation::tell) && options.largest > kLongestMessage)
    return bad("maxbytes", fmt::format("a message has at most {} bytes", kLongestMessage));
  if (options.replays > 0) {
    for (const auto operation : options.operations) {
      const auto& of = traits(operation);
      if (!of.collective) return bad("cudagraph", fmt::format("{} cannot be recorded", of.name));
    }
    if (options.blocking != 0)
      return bad("cudagraph", "not with --blocking: nobody waits within a recorded sequence");
    if (options.iterations > kMostRecorded)
      return bad("cudagraph",
                 fmt::format("a sequence has at most {} calls; see --iters", kMostRecorded));
    if (options.peer == "mpi") return bad("cudagraph", "MPI, as --peer asks for, records nothing");
  }
  if (options.peer == "nccl" && options.measures(Operation::tell))
    return bad("peer", "NCCL knows no messages between host memories; see --peer mpi");
  if (config.text("on-loss") == "shrink")
    return bad("on-loss", "shrink: a table is of one number of ranks");
  const auto comes_first = [](const OrderedFault& fault) { return fault.phase.empty(); };
  if (!options.faults.empty() &&
      std::none_of(options.faults.begin(), options.faults.end(), comes_first))
    return bad("fault", "one in a phase of a recovery wants another one, in an iteration");
  return options;
}

Result<void> check_against_world(const Options& options, int ranks, const std::string& engine) {
  if (auto known = check_ranks(options.faults, ranks); !known) return known;
  const int size = options.group == 0 ? ranks : options.group;
  if (ranks % size != 0)
    return bad("group", fmt::format("{} ranks make no groups of {}", ranks, size));
  if (options.root >= size)
    return bad("root", fmt::format("there is no rank {} among {}", options.root, size));
  if (options.peer == "nccl" && engine != "cuda")
    return bad("peer",
               fmt::format("NCCL needs GPUs, and the engine is {}; see --peer mpi", engine));
  if (options.peer == "mpi" && engine != "cpu")
    return bad("peer",
               fmt::format("MPI moves host memory, and the engine is {}; see --peer nccl", engine));
  return {};
}

}  // namespace troupe::perf
