#pragma once

#include <string>
#include <vector>

#include <troupe/running.hpp>

namespace troupe::top {

/// The ranks for people: a heading for each job, a line for each rank. `ranks` is as
/// RunningRanks::look() gives it; `job`: the only one that is asked for, or empty.
std::string to_text(const std::vector<RunningRank>& ranks, const std::string& host,
                    const std::string& job);
/// The same as one line of JSON.
std::string to_json(const std::vector<RunningRank>& ranks, const std::string& host);

/// The text for a terminal that has shown the one before: each line in the place of the old one,
/// cut to `columns`.
std::string on_terminal(const std::string& text, unsigned columns);

}  // namespace troupe::top
