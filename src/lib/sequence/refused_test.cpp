#include <cmath>
#include <cstring>
#include <functional>
#include <optional>
#include <thread>

#include <troupe/lib/fft.hpp>
#include <troupe/lib/kernel.hpp>
#include <troupe/lib/primitives.hpp>
#include <troupe/lib/rng.hpp>
#include <troupe/lib/sequence.hpp>
#include <troupe/lib/sparse.hpp>
#include <troupe/sequence.hpp>

#include "bad_arguments.hpp"

namespace troupe::test {
namespace {

/// The error that recording `calls` throws; none: ok.
Error refused(const std::function<void()>& calls) {
  try {
    (void)device().record(calls);
  } catch (const Exception& e) {
    return e.error();
  }
  return {};
}

TEST(SequencesRefuse, BranchesOutsideOfRecordings) {
  const auto flag = put(std::vector<std::int32_t>{0});
  try {
    if_(device(), flag, [] { FAIL() << "it is called"; });
    ADD_FAILURE() << "it is not refused";
  } catch (const Exception& e) {
    EXPECT_EQ(e.code(), Errc::invalid);
  }
}

TEST(SequencesRefuse, WhatCannotBeRecordedByName) {
  const auto x = put(std::vector<double>(16, 1.0));
  auto pinned = device().pinned<double>(16);
  const auto is_refused = [](const std::function<void()>& calls, const std::string& name) {
    const auto error = refused(calls);
    EXPECT_EQ(error.code, Errc::unsupported) << error.message;
    EXPECT_NE(error.message.find(name), std::string::npos) << error.message;
    EXPECT_NE(error.message.find("recorded"), std::string::npos) << error.message;
  };
  is_refused([&] { device().inject(memory::FaultKind::kill); }, "memory.fault");
  is_refused([&] { device().nop(); }, "memory.nop");
  is_refused([&] { device().copy(pinned, x); }, "memory.copy");
  is_refused([&] { device().copy(x, pinned); }, "memory.copy");
  is_refused(
      [&] { (void)primitives::on(device()).select_nonzero(x, device().alloc<std::int64_t>(16)); },
      "a call with a value");
  is_refused([&] { device().upload<double>(std::vector<double>(16), x); }, "upload");
  EXPECT_EQ(refused([&] {
              try {
                (void)device().download(x);
              } catch (const Exception&) {
              }
            }).code,
            Errc::unsupported);
  EXPECT_EQ(refused([] {}).code, Errc::invalid);
  EXPECT_EQ(refused([&] { (void)device().record([&] { device().fill(x, 1.0); }); }).code,
            Errc::invalid);
  EXPECT_EQ(refused([&] { device().fill(x, 1.0), device().copy(x, x.slice(0, 8)); }).code,
            Errc::invalid);
  EXPECT_EQ(device().download(x), std::vector<double>(16, 1.0)) << "something was launched";
  EXPECT_TRUE(device().take_error().ok()) << "what a recording refuses is told by it alone";
}

/// A run is one command, which could not name them all.
TEST(SequencesRefuse, MoreRangesThanACommandNames) {
  std::vector<GpuRef<double>> buffers;
  for (int i = 0; i < 4097; ++i) buffers.push_back(device().alloc<double>(1));
  const auto record = [&](std::size_t count) {
    return refused([&] {
      for (std::size_t i = 0; i < count; ++i) device().fill(buffers[i], 1.0);
    });
  };
  const auto error = record(buffers.size());
  EXPECT_EQ(error.code, Errc::unsupported) << error.message;
  EXPECT_NE(error.message.find("4097 ranges"), std::string::npos) << error.message;
  EXPECT_EQ(record(600).message, "");
  EXPECT_TRUE(device().take_error().ok());
}

/// Its end is missing, so that the sequence would do anything.
TEST(SequencesRefuse, ABranchThatAnExceptionLeaves) {
  const auto x = put(std::vector<double>(4, 1.0));
  const auto flag = put(std::vector<std::int32_t>{0});
  for (const auto branch : {if_, while_}) {
    const auto error = refused([&] {
      try {
        branch(device(), flag, [&] {
          device().fill(x, 2.0);
          throw 1;
        });
      } catch (int) {
      }
      device().fill(x, 3.0);
    });
    EXPECT_EQ(error.code, Errc::invalid);
    EXPECT_NE(error.message.find("an exception has left"), std::string::npos) << error.message;
  }
  EXPECT_EQ(device().download(x)[0], 1.0);
}

TEST(SequencesRefuse, ParametersThatTheyDoNotHave) {
  const auto x = put(std::vector<double>(16, 1.0));
  const Parameter<double> one(1.0), other(1.0);
  const auto sequence = device().record([&] { device().blas().scal(one, x); });
  EXPECT_EQ(sequence.run({other(2.0)}).wait().code(), Errc::invalid);
  EXPECT_EQ(device().download(x), std::vector<double>(16, 1.0));
  (void)device().take_error();
}

}  // namespace
}  // namespace troupe::test
