#pragma once

#include <set>
#include <string>

#include <nlohmann/json.hpp>

/// The operations of the libraries that come with troupe, by their definitions: no device is asked.
namespace troupe::info {

/// For each operation, by name, the dtypes that each engine computes it in:
/// {"blas.axpy": {"cpu": ["f32", …], "cuda": […]}}. An empty list: that engine answers unsupported.
nlohmann::json operations();

/// The same as a table, a line for each operation. Columns are two or more spaces apart; "any" is
/// every dtype, "unsupported" none. Of libraries that are `missing` for this engine it says "not
/// installed".
std::string operations_text(const nlohmann::json& operations, const std::string& engine,
                            const std::set<std::string>& missing);

}  // namespace troupe::info
