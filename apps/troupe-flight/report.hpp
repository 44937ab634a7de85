#pragma once

#include <string>
#include <vector>

#include "analysis.hpp"

namespace troupe::flight {

/// What a person reads: who waits for whom, and a table of each rank's last `rows` operations up to
/// the break.
std::string to_text(const std::vector<Dump>& dumps, const Analysis& analysis, std::size_t rows);

/// The same as one JSON object.
std::string to_json(const std::vector<Dump>& dumps, const Analysis& analysis, std::size_t rows);

}  // namespace troupe::flight
