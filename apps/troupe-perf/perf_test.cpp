#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>

#include "common/core/narrow_float.hpp"
#include "options.hpp"
#include "report.hpp"
#include "values.hpp"

// What troupe-perf expects in buffers, and how it counts and prints.

namespace troupe::perf {
namespace {

using Bytes = std::vector<std::byte>;

template <class T>
double number(T value) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<double>(value);
  else
    return widen(value);
}
template <class T>
T element(double value) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<T>(value);
  else
    return narrow<T>(static_cast<float>(value));
}
template <class T>
std::vector<T> elements(const Bytes& bytes) {
  std::vector<T> list(bytes.size() / sizeof(T));
  std::memcpy(list.data(), bytes.data(), bytes.size());
  return list;
}
template <class T>
Bytes bytes_of(const std::vector<T>& list) {
  const auto* data = reinterpret_cast<const std::byte*>(list.data());
  return {data, data + list.size() * sizeof(T)};
}

Bytes all_of_source(const Case& one, int rank) {
  return source_of(one, rank, 0, extents(one.call, rank, one.size).source);
}
std::int64_t wrong_in(const Case& one, int rank, const Bytes& destination) {
  return count_wrong(one, rank, [&](std::int64_t first, std::int64_t elements) {
    const auto size = static_cast<std::ptrdiff_t>(size_of(one.call.dtype));
    return Bytes(destination.begin() + first * size,
                 destination.begin() + (first + elements) * size);
  });
}

std::vector<Bytes> sources(const Case& one) {
  std::vector<Bytes> all;
  for (int rank = 0; rank < one.size; ++rank) all.push_back(all_of_source(one, rank));
  return all;
}

Bytes part(const Bytes& whole, int index, const Case& one) {
  const auto bytes = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(one.call.count) *
                                                 size_of(one.call.dtype));
  return {whole.begin() + index * bytes, whole.begin() + (index + 1) * bytes};
}

/// all_to_all_v among three ranks: each sends a third of its source to the next one, the rest to
/// the one behind that.
Bytes one_by_one(const Case& one, int rank) {
  const auto all = sources(one);
  Bytes result;
  for (int from = 0; from < 3; ++from) {
    if (from == rank) continue;
    const auto& source = all[static_cast<std::size_t>(from)];
    const auto third = static_cast<std::ptrdiff_t>(source.size() / 3);
    const int next = (from + 1) % 3, last = (from + 2) % 3;
    // The parts lie in the order of their ranks, and none is for the sender.
    const bool comes_first = rank < (rank == next ? last : next);
    const auto length = rank == next ? third : 2 * third;
    const auto begin = source.begin() + (comes_first ? 0 : 3 * third - length);
    result.insert(result.end(), begin, begin + length);
  }
  return result;
}

/// What a rank gets when elements are only moved, by the definitions of the collectives.
Bytes moved(const Case& one, int rank) {
  const auto all = sources(one);
  const auto at = [&](int index) {
    return all[static_cast<std::size_t>((index + one.size) % one.size)];
  };
  Bytes joined;
  for (int from = 0; from < one.size; ++from) {
    const auto next =
        one.call.operation == Operation::all_to_all ? part(at(from), rank, one) : at(from);
    joined.insert(joined.end(), next.begin(), next.end());
  }
  switch (one.call.operation) {
    case Operation::all_to_all_v: return one_by_one(one, rank);
    case Operation::broadcast: return at(one.call.root);
    case Operation::scatter: return part(at(one.call.root), rank, one);
    case Operation::fetch: return at(rank + 1);
    case Operation::send_recv:
    case Operation::put:
    case Operation::tell: return at(rank - 1);
    default: return joined;
  }
}

template <class T>
Bytes all_reduced(const Case& one) {
  const auto all = sources(one);
  std::vector<T> result;
  for (std::int64_t i = 0; i < one.call.count; ++i) {
    const auto of = [&](int rank) {
      return number(elements<T>(all[static_cast<std::size_t>(rank)])[static_cast<std::size_t>(i)]);
    };
    double value = of(0) * (one.call.reduction == Reduction::mulsum ? scalar_of(0) : 1);
    for (int rank = 1; rank < one.size; ++rank) {
      switch (one.call.reduction) {
        case Reduction::prod: value *= of(rank); break;
        case Reduction::min: value = std::min(value, of(rank)); break;
        case Reduction::max: value = std::max(value, of(rank)); break;
        case Reduction::mulsum: value += scalar_of(rank) * of(rank); break;
        default: value += of(rank);
      }
      value = number(element<T>(value));  // each step is rounded
    }
    if (one.call.reduction == Reduction::avg) value /= one.size;
    result.push_back(element<T>(value));
  }
  return bytes_of(result);
}

TEST(PerfValues, WhatIsMovedIsExpectedWhereItBelongs) {
  for (const auto operation :
       {Operation::broadcast, Operation::all_gather, Operation::gather, Operation::scatter,
        Operation::all_to_all, Operation::all_to_all_v, Operation::send_recv, Operation::fetch,
        Operation::put, Operation::tell}) {
    for (const auto dtype : dtypes()) {
      const Case one{{operation, dtype, Reduction::sum, 1, 5003}, 3, 7};
      SCOPED_TRACE(std::string(traits(operation).name) + " " + std::string(name_of(dtype)));
      for (const int rank : {1, 2}) {
        auto got = moved(one, rank);
        EXPECT_EQ(wrong_in(one, rank, got), 0);
        if (operation == Operation::gather && rank != one.call.root) continue;
        const auto size = size_of(dtype);
        got[4500 * size] ^= std::byte{1};
        got[17 * size + size - 1] ^= std::byte{0x80};
        EXPECT_EQ(wrong_in(one, rank, got), 2) << "each wrong element is counted";
        const Case later{one.call, one.size, one.repetition + 1};
        EXPECT_GT(wrong_in(later, rank, moved(one, rank)), one.call.count / 2)
            << "what was there before is wrong";
      }
    }
  }
}

template <class T>
void expect_exact(int ranks) {
  for (const auto reduction : reductions()) {
    if (reduction == Reduction::avg && !std::is_integral_v<T> && (ranks & (ranks - 1)) != 0)
      continue;
    SCOPED_TRACE(std::string(name_of(dtype_of<T>)) + " " + std::string(name_of(reduction)) +
                 " of " + std::to_string(ranks));
    const Case one{{Operation::all_reduce, dtype_of<T>, reduction, 0, 97}, ranks, 3};
    auto got = all_reduced<T>(one);
    EXPECT_EQ(wrong_in(one, ranks - 1, got), 0);
    got[50 * sizeof(T)] ^= std::byte{1};
    EXPECT_EQ(wrong_in(one, ranks - 1, got), 1);
  }
}

TEST(PerfValues, ReductionsAreExactInEveryType) {
  for (const int ranks : {1, 2, 3, 5, 8, 40}) {
    expect_exact<std::int8_t>(ranks), expect_exact<std::uint8_t>(ranks);
    expect_exact<std::int64_t>(ranks), expect_exact<std::uint64_t>(ranks);
    expect_exact<float>(ranks), expect_exact<double>(ranks);
    expect_exact<Half>(ranks), expect_exact<BFloat16>(ranks);
    expect_exact<Float8E4M3>(ranks), expect_exact<Float8E5M2>(ranks);
  }
}

template <class T>
void expect_rounded() {
  const Case one{{Operation::all_reduce, dtype_of<T>, Reduction::avg, 0, 200}, 3, 5};
  SCOPED_TRACE(name_of(one.call.dtype));
  const auto all = sources(one);
  std::vector<T> multiplied_first;
  for (std::size_t i = 0; i < 200; ++i) {
    double sum = 0;
    for (const auto& source : all) {
      const auto share = element<T>(number(elements<T>(source)[i]) * number(element<T>(1.0 / 3)));
      sum = number(element<T>(sum + number(share)));
    }
    multiplied_first.push_back(element<T>(sum));
  }
  EXPECT_EQ(wrong_in(one, 0, bytes_of(multiplied_first)), 0);
  EXPECT_EQ(wrong_in(one, 0, all_reduced<T>(one)), 0);
  auto wrong = elements<T>(all_reduced<T>(one));
  wrong[3] = element<T>(number(wrong[3]) * 2), wrong[4] = element<T>(std::nan(""));
  EXPECT_EQ(wrong_in(one, 0, bytes_of(wrong)), 2);
}

TEST(PerfValues, AveragesMayBeRounded) {
  expect_rounded<float>(), expect_rounded<double>();
  expect_rounded<Half>(), expect_rounded<BFloat16>();
  expect_rounded<Float8E4M3>();
}

TEST(PerfValues, PiecesOfLongOnesFit) {
  const auto count = kPiece + 1000;
  const Case one{{Operation::broadcast, DType::i8, Reduction::sum, 0, count}, 2, 1};
  auto whole = all_of_source(one, 0);
  const auto end = source_of(one, 0, kPiece, 1000);
  EXPECT_TRUE(std::equal(end.begin(), end.end(), whole.begin() + kPiece));
  EXPECT_EQ(wrong_in(one, 1, whole), 0);
  whole.front() ^= std::byte{1}, whole.back() ^= std::byte{1};
  EXPECT_EQ(wrong_in(one, 1, whole), 2);
}

TEST(PerfValues, PartsOfReductionsAreTheirRanks) {
  const Case one{{Operation::reduce_scatter, DType::f32, Reduction::sum, 0, 10}, 4, 1};
  const Case whole{{Operation::all_reduce, DType::f32, Reduction::sum, 0, 40}, 4, 1};
  const auto all = all_reduced<float>(whole);
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(wrong_in(one, rank, part(all, rank, one)), 0);
    EXPECT_GT(wrong_in(one, rank, part(all, (rank + 1) % 4, one)), 0);
  }
  const Case reduced{{Operation::reduce, DType::f32, Reduction::sum, 2, 40}, 4, 1};
  EXPECT_EQ(wrong_in(reduced, 2, all), 0);
  EXPECT_EQ(wrong_in(reduced, 1, Bytes(160)), 0) << "nothing is looked at but at the root";
  EXPECT_GT(wrong_in(reduced, 2, Bytes(160)), 0);
}

TEST(PerfCounts, AreThoseOfNcclTests) {
  EXPECT_EQ(count_of(Operation::all_reduce, 1000, DType::f32, 3), 250);
  EXPECT_EQ(count_of(Operation::all_gather, 1000, DType::f32, 3), 80) << "16 bytes: 4 elements";
  EXPECT_EQ(count_of(Operation::reduce_scatter, 8, DType::f32, 2), 0);
  EXPECT_EQ(count_of(Operation::all_to_all, 4096, DType::i8, 4), 1024);
  const auto bus = [](Operation operation, int size) {
    const Call call{operation, DType::f32, Reduction::sum, 0, 1'000'000};
    return bandwidth(call, size, 1e-3).bus;
  };
  EXPECT_DOUBLE_EQ(bus(Operation::all_reduce, 4), 4 * 2 * 3 / 4.0);
  EXPECT_DOUBLE_EQ(bus(Operation::reduce_scatter, 4), 16 * 3 / 4.0);
  EXPECT_DOUBLE_EQ(bus(Operation::all_gather, 4), 16 * 3 / 4.0);
  EXPECT_DOUBLE_EQ(bus(Operation::all_to_all, 4), 16 * 3 / 4.0);
  for (const auto operation : {Operation::broadcast, Operation::reduce, Operation::send_recv,
                               Operation::fetch, Operation::put, Operation::tell})
    EXPECT_DOUBLE_EQ(bus(operation, 4), 4);
}

TEST(PerfOptions, SizesAreThoseOfNcclTests) {
  EXPECT_EQ(*parse_size("8"), 8);
  EXPECT_EQ(*parse_size("64K"), 65'536);
  EXPECT_EQ(*parse_size("1.5m"), 3 << 19);
  EXPECT_EQ(*parse_size("8G"), std::int64_t{8} << 30);
  EXPECT_EQ(*parse_size("4KiB"), 4096);
  for (const auto* text : {"", "K", "0", "-8", "8Q", "8 M", "2048G", "0x8", "nan", "1e300"})
    EXPECT_FALSE(parse_size(text).ok()) << text;
  Options options;
  options.smallest = 8, options.largest = 128, options.step_factor = 4;
  EXPECT_EQ(options.sizes(), (std::vector<std::int64_t>{8, 32, 128}));
  options.step_factor = 1, options.step_bytes = 50;
  EXPECT_EQ(options.sizes(), (std::vector<std::int64_t>{8, 58, 108}));
}

/// What a command line is refused for.
std::string refusal(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "troupe-perf");
  const auto specs = option_specs();
  const auto config = Config::parse(static_cast<int>(arguments.size()), arguments.data(), specs);
  if (!config) return config.error().message;
  const auto options = parse_options(*config);
  return options.ok() ? "" : options.error().message;
}

TEST(PerfOptions, WhatCannotBeMeasuredIsRefused) {
  const auto expect_refused = [](const std::vector<const char*>& arguments,
                                 const std::vector<std::string>& words) {
    const auto message = refusal(arguments);
    EXPECT_EQ(message.find('\n'), std::string::npos);
    for (const auto& word : words) EXPECT_NE(message.find(word), std::string::npos) << message;
  };
  ::setenv("TROUPE_SITE_CONFIG", "", 1);
  EXPECT_EQ(refusal({"-b", "8", "-e", "128M", "-f", "2", "-g", "1", "-n5", "-w", "0", "-c", "1"}),
            "");
  expect_refused({"-b", "lots"}, {"minbytes", "lots"});
  expect_refused({"-b", "8", "-e", "4"}, {"minbytes", "maxbytes"});
  expect_refused({"-f", "2", "-i", "4K"}, {"stepfactor", "stepbytes"});
  expect_refused({"-b", "1", "-e", "1G", "-i", "1"}, {"stepbytes", "sizes"});
  expect_refused({"-d", "quad"}, {"datatype", "quad"});
  expect_refused({"-o", "xor"}, {"op", "xor"});
  expect_refused({"--operation", "put,all_nothing"}, {"operation", "all_nothing"});
  expect_refused({"--operation", "all", "-G", "0", "-r", "x"}, {"root"});
  expect_refused({"-z", "4"}, {"blocking", "4"});
  expect_refused({"-g", "8"}, {"ngpus", "mpirun"});
  expect_refused({"-t", "2"}, {"nthreads", "mpirun"});
  expect_refused({"-G", "2", "--operation", "all_reduce,put"}, {"cudagraph", "put"});
  expect_refused({"-G", "2", "-n", "401"}, {"cudagraph", "iters"});
  expect_refused({"-G", "2", "-z", "1"}, {"cudagraph", "blocking"});
  expect_refused({"--peer", "mpi", "-G", "2"}, {"MPI", "records"});
  expect_refused({"--operation", "tell"}, {"maxbytes", "65000"});
  expect_refused({"--operation", "tell", "-b", "8", "-e", "8", "--peer", "nccl"}, {"peer", "NCCL"});
  expect_refused({"--on-loss", "shrink"}, {"on-loss", "shrink"});
  expect_refused({"--fault", "kill@1"}, {"fault", "KIND@ITERATION:RANK"});
  expect_refused({"--fault", "kill@verify:1"}, {"fault", "in an iteration"});
  EXPECT_EQ(refusal({"--fault", "kill@verify:1,kill@1:0"}), "");
  expect_refused({"--fault", "kill@1:0", "--isolation", "thread"}, {"isolation", "fault"});

  Options options;
  options.root = 2;
  EXPECT_EQ(check_against_world(options, 3, "cpu").ok(), true);
  const auto against = [&](int ranks, const std::string& engine) {
    const auto fits = check_against_world(options, ranks, engine);
    return fits.ok() ? "" : fits.error().message;
  };
  EXPECT_EQ(against(2, "cpu"), "--root: there is no rank 2 among 2");
  options.group = 2;
  EXPECT_EQ(against(3, "cpu"), "--group: 3 ranks make no groups of 2");
  EXPECT_EQ(against(4, "cpu"), "--root: there is no rank 2 among 2");
  options.root = 1, options.peer = "nccl";
  EXPECT_NE(against(4, "cpu").find("NCCL needs GPUs"), std::string::npos);
  options.peer = "mpi";
  EXPECT_NE(against(4, "cuda").find("see --peer nccl"), std::string::npos);
}

TEST(PerfOptions, ANumberBehindCheckIsThatOfC) {
  std::vector<std::string> words{"troupe-perf", "--check",     "5",
                                 "--check",     "collectives", "--check"};
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  const auto rewritten_ones = rewritten(static_cast<int>(argv.size()), argv.data());
  std::string line;
  for (const auto* word : rewritten_ones)
    if (word != nullptr) line += std::string(" ") + word;
  EXPECT_EQ(line, " troupe-perf -c 5 --check collectives --check");
}

TEST(PerfTable, HasTheColumnsOfNcclTests) {
  Row row;
  row.call = {Operation::all_reduce, DType::f32, Reduction::sum, 0, 33'554'432};
  row.bytes = 134'217'728;
  row.out_of_place = {true, 1234.567, {108.716, 163.07}, 0};
  row.in_place = {true, 12'345'678.9, {0.0108, 0.016}, 1'234'567};
  char expected[200];
  std::snprintf(expected, sizeof expected, "%12li  %12li  %8s  %6s  %6i  %7s  %6s  %6s  %6g",
                134217728L, 33554432L, "float", "sum", -1, "1234.57", "108.72", "163.07", 0.0);
  std::string line = expected;
  std::snprintf(expected, sizeof expected, "  %7s  %6s  %6s  %6g\n", "1.2e+07", "0.01", "0.02",
                1234567.0);
  line += expected;
  EXPECT_EQ(to_text(row, Options{}), line);
  row.call.operation = Operation::all_to_all, row.in_place = {}, row.out_of_place.wrong = -1;
  EXPECT_EQ(to_text(row, Options{}),
            "   134217728      33554432     float    none      -1  1234.57  108.72  163.07     N/A"
            "      N/A     N/A     N/A     N/A\n");
  Options beside;
  beside.peer = "nccl";
  EXPECT_EQ(to_text(row, beside).size(), to_text(row, Options{}).size() + 2 * 33);
}

TEST(PerfTable, CountsWhatIsWrong) {
  Report report;
  report.rows.resize(2);
  report.rows[0].out_of_place = {true, 1, {1, 2}, 0};
  report.rows[0].in_place = {true, 1, {1, 4}, 3};
  report.rows[1].out_of_place = {true, 1, {1, 6}, -1};
  report.rows[1].peer_out_of_place = {true, 1, {1, 100}, 0};
  EXPECT_EQ(report.failures(), 1);
  EXPECT_DOUBLE_EQ(report.average_bus(), 4);
  EXPECT_NE(footing(report, Options{})
                .find("# Out of bounds values : 1 FAILED\n# Avg bus bandwidth    : 4 \n"),
            std::string::npos);
  report.rows[0].in_place.wrong = 0;
  EXPECT_NE(footing(report, Options{}).find("# Out of bounds values : 0 OK\n"), std::string::npos);
}

}  // namespace
}  // namespace troupe::perf
