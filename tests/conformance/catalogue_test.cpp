#include <cctype>
#include <map>
#include <ranges>
#include <set>
#include <sstream>
#include <string>

#include <troupe/lib/operations.hpp>

#include "catalogue/catalogue.hpp"
#include "conformance.hpp"
#include "torture/program.hpp"

// Every call of the catalogue, as it comes of a few seeds.

namespace troupe::catalogue {
namespace {

using test::device;

#ifdef TROUPE_BRIEF_TESTS
constexpr std::uint64_t kSeeds = 3, kMoreSeeds = 24;
#else
constexpr std::uint64_t kSeeds = 12, kMoreSeeds = 96;  ///< the more for calls that vary
#endif

struct DrawnCall {
  const CallInfo* call;
  DType dtype;

  friend void PrintTo(const DrawnCall& drawn, std::ostream* out) {
    *out << drawn.call->library << "." << drawn.call->name << " " << to_string(drawn.dtype);
  }
};

std::vector<DrawnCall> all_calls() {
  std::vector<DrawnCall> all;
  for (const auto& call : Catalogue::all().calls()) {
    for (std::size_t i = 0; i < kDTypeCount; ++i) {
      if (call.dtypes.has(static_cast<DType>(i))) all.push_back({&call, static_cast<DType>(i)});
    }
  }
  return all;
}
std::string name_of(const ::testing::TestParamInfo<DrawnCall>& drawn) {
  std::ostringstream out;
  PrintTo(drawn.param, &out);
  auto name = out.str();
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

/// The cpu engine has all calls of the libraries that it has.
bool may_be_missing(const CallInfo& call, const Error& error) {
  if (error.message.find("not installed") != std::string::npos)
    return call.missing != Missing::never;
  return call.missing == Missing::itself && device().info().engine == "cuda";
}

class CatalogueCalls : public ::testing::TestWithParam<DrawnCall> {};

TEST_P(CatalogueCalls, ComeOutAsExpected) {
  const auto& [call, dtype] = GetParam();
  std::uint64_t seeds = kSeeds;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(seed);
    Trial trial(device(), seed, Breadth::wide);
    Catalogue::all().of(*call, dtype)(trial);
    const auto outcome = trial.over().wait();
    if (outcome.code() == Errc::unsupported && may_be_missing(*call, outcome.error())) {
      (void)device().take_error();
      GTEST_SKIP() << outcome.error().to_string();
    }
    ASSERT_TRUE(outcome.ok()) << outcome.error().to_string();
    ASSERT_EQ(trial.judge(), "");
    if (trial.varies()) seeds = kMoreSeeds;
  }
  (void)device().take_error();  // of forms that may be refused
}
INSTANTIATE_TEST_SUITE_P(Catalogue, CatalogueCalls, ::testing::ValuesIn(all_calls()), name_of);

/// Each operation of these libraries is called in each of its dtypes, unless torture has a kind of
/// its own for it.
TEST(CatalogueOf, EveryOperation) {
  std::map<std::string, std::uint32_t> dtypes;  // by operation
  std::set<std::string_view> libraries;
  for (const auto& call : Catalogue::all().calls()) {
    libraries.insert(call.library);
    std::istringstream names{std::string(call.operations)};
    for (std::string name; names >> name;)
      dtypes[std::string(call.library) + "." + name] |= call.dtypes.bits;
  }
  EXPECT_EQ(libraries, (std::set<std::string_view>{"blas", "direct", "dnn", "fft", "primitives",
                                                   "rng", "solver", "sparse", "tensor"}));
  const std::set<std::string_view> own{
      "primitives.sort", "primitives.scan", "primitives.select_nonzero",
      "sparse.spmv",     "sparse.gather",   "sparse.spgemm",
      "dnn.convolution"};
  std::size_t found = 0;
  for (const auto* info : all_operations()) {
    if (!libraries.contains(info->library()) || own.contains(info->name)) continue;
    ++found;
    const DTypes called{dtypes[std::string(info->name)]};
    if (info->name == "dnn.graph") {  // its type is that between nodes, its tensors have others
      EXPECT_TRUE(called.has(DType::f16));
    } else if (info->name == "primitives.copy_batched") {  // moves bytes, whatever they are
      EXPECT_TRUE(called.has(DType::u8));
    } else {
      EXPECT_EQ(called.bits, info->dtypes.bits) << info->name;
    }
  }
  EXPECT_EQ(found, dtypes.size());  // and none that there is not
}

/// And torture draws each of them.
TEST(CatalogueOf, WhatTortureDraws) {
  std::vector<const CallInfo*> calls;
  std::set<std::pair<const CallInfo*, DType>> left;
  for (const auto& [call, dtype] : all_calls()) left.insert({call, dtype});
  for (const auto& call : Catalogue::all().calls()) calls.push_back(&call);
  for (std::uint64_t seed = 1; seed <= 500 && !left.empty(); ++seed) {
    const auto program = torture::generate(seed, {.calls = calls, .ranks = 2, .operations = 1000});
    for (const auto& round : program.rounds) {
      for (const auto& threads : round.scripts | std::views::join) {
        for (const auto& op : threads | std::views::join) left.erase({op.call, op.dtype});
      }
    }
  }
  for (const auto& [call, dtype] : left)
    ADD_FAILURE() << call->library << "." << call->name << " " << to_string(dtype);
}

}  // namespace
}  // namespace troupe::catalogue
