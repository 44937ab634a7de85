#pragma once

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "job.hpp"

/// What the tests of programs that write a report have in common.
namespace troupe::test {

using Json = nlohmann::json;

/// Runs the program to an end with that status, a good one without a word of complaint; its report.
inline Json report_of(int ranks, const Arguments& arguments, int status = 0,
                      std::string* text = nullptr) {
  const Scratch scratch;
  const auto file = scratch.file("report.json");
  Job job(ranks, arguments + Arguments{"--json", file, "--log-level", "error"});
  EXPECT_EQ(job.wait(), status) << job.out() << job.err();
  EXPECT_TRUE(status != 0 || job.err().empty()) << job.err();
  EXPECT_TRUE(job.nothing_left());
  if (text != nullptr) *text = job.out();
  auto report = Json::parse(read_file(file), nullptr, false);
  EXPECT_TRUE(report.is_object()) << job.out();
  return report.is_object() ? report : Json::object();
}

/// Each of these arguments is refused with one line that has the text.
inline void expect_refusals(std::span<const std::pair<Arguments, std::string>> cases) {
  for (const auto& [arguments, line] : cases) {
    Job job(Job::kNoMpirun, arguments);
    EXPECT_EQ(job.wait(), 2) << line;
    const auto complaints = job.complaints();
    ASSERT_EQ(complaints.size(), 1u) << job.err();
    EXPECT_NE(complaints[0].find(line), std::string::npos) << job.err();
    EXPECT_TRUE(job.nothing_left());
  }
}

}  // namespace troupe::test
