#pragma once

#include <string>
#include <vector>

#include "burn_in.hpp"
#include "verdicts.hpp"

/// The verdicts of `troupe-info --burn-in`: pure functions of what the ranks have measured.
namespace troupe::info {

/// A verdict, and the ranks that have failed.
struct Judged {
  Finding finding;
  std::vector<int> failed;
};

// Each takes the burn-ins of all ranks, in their order, at least one.

/// Every rank came to the end, with the device host that it began with. A rank that gave up because
/// of another one is not named if that one is known.
Judged judge_end(const std::vector<BurnIn>& ranks);
/// Each buffer held the pattern that was written to it.
Judged judge_memory(const std::vector<BurnIn>& ranks);
/// Every rank has the product that most ranks have, each time. Where no more than half of them
/// agree, the product that their hosts have computed decides.
Judged judge_products(const std::vector<BurnIn>& ranks);
/// Data that was moved arrived as it was sent.
Judged judge_transfers(const std::vector<BurnIn>& ranks);
/// Each rank is about as fast as the median of the ranks with the same kind of device. Of an even
/// number the faster one of the two in the middle is the median. A rate below 0.5 of it has failed;
/// one below 0.8 is a warning, or below 0.7 if the data leaves the device. Rates of the cpu engine
/// are told and not judged. `check` is one of kRateChecks.
Judged judge_rates(const std::vector<BurnIn>& ranks, const std::string& check);
/// No GPU says anything against itself that it had not said before the load.
Judged judge_health(const std::vector<BurnIn>& ranks);

inline constexpr const char* kRateChecks[] = {"copy rate", "product rate", "host copies",
                                              "peer rate", "collectives"};
/// All of them, in the order of their lines.
std::vector<Judged> judge_burn_in(const std::vector<BurnIn>& ranks);

/// The hosts of the ranks that have failed, each once, in the order of their names.
std::vector<std::string> bad_hosts(const std::vector<Judged>& verdicts,
                                   const std::vector<BurnIn>& ranks);
/// "burn-in: bad hosts: n1,n7" or "burn-in: no bad host"
std::string line_of_hosts(const std::vector<std::string>& bad);

}  // namespace troupe::info
