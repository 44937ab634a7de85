#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>
#include <troupe/troupe.hpp>

/// What the programs that compute have in common at the end of a job.
namespace troupe::app {

/// "rank 3 on node7: NVIDIA H200 GPU-0f1c..." of each rank. All ranks call it.
std::vector<std::string> devices_of(Runtime& runtime);

/// As scripts/scaling.sh reads them.
nlohmann::json to_json(const std::vector<Recovery>& recoveries);
/// How many, and a line for each. `step`: what the program calls an iteration.
std::string to_text(const std::vector<Recovery>& recoveries, std::string_view step);

nlohmann::json to_json(const std::vector<Corruption>& corruptions);
/// A line for each; empty where there are none.
std::string to_text(const std::vector<Corruption>& corruptions);

/// What each step took the slowest rank, on rank 0, of those from `first` on. All ranks call it.
std::vector<double> slowest_times(World& world, const std::vector<double>& mine,
                                  std::int64_t first);
/// 0 of none.
double median_of(std::vector<double> values);

/// The begin of a program, before its work: whether its report can be written. All ranks call it;
/// rank 0 looks. Throws CollectiveException on all of them (io).
void require_report_file(World& world, const std::string& path);

/// The end of a program, after its work: rank 0 prints the text and, unless the path is empty,
/// writes the JSON. All ranks call it, with the same verdict. Gives the exit status. Throws
/// CollectiveException on all of them (io).
int conclude(World& world, bool right, const std::string& json_path,
             const std::function<std::string()>& text, const std::function<nlohmann::json()>& json);

}  // namespace troupe::app
