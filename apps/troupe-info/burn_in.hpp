#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <troupe/launched_job.hpp>
#include <troupe/ordered_fault.hpp>
#include <troupe/runtime.hpp>

#include "facts.hpp"

/// `troupe-info --burn-in`: each rank puts its device under load and notes what comes of it.
namespace troupe::info {

/// A buffer that did not hold what had been written to it.
struct MemoryFault {
  std::string pattern;  ///< "0x5555555555555555", "random"
  int buffer = 0;       ///< its number among the buffers of the test
  bool still = false;   ///< it was wrong when read again, too
  bool located = false;
  std::uint64_t first_byte = 0, last_byte = 0;  ///< all that is wrong in the buffer lies in between
  std::uint64_t wanted = 0, got = 0;            ///< the first wrong word of 8 bytes
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(MemoryFault, pattern, buffer, still, located,
                                                first_byte, last_byte, wanted, got)

struct MemoryFacts {
  int buffers = 0;
  std::uint64_t bytes = 0;          ///< all buffers together
  std::uint64_t verified = 0;       ///< how often a buffer was filled and read
  std::uint64_t wrong = 0;          ///< how often it was not as filled
  std::vector<MemoryFault> faults;  ///< the first ones
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(MemoryFacts, buffers, bytes, verified, wrong,
                                                faults)

/// Repetitions of one product of matrices of whole numbers, whose result is exact in any order of
/// summation: all ranks have the same.
struct ProductFacts {
  std::string dtype;                            ///< "f32"
  std::int64_t size = 0;                        ///< rows and columns of each matrix
  std::uint64_t expected = 0;                   ///< digest of the product that the host computed
  std::map<std::uint64_t, std::uint64_t> seen;  ///< digests of results, and how often each came
  std::uint64_t others = 0;  ///< results with further digests, once `seen` is full
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ProductFacts, dtype, size, expected, seen, others)

/// Data that was moved, and looked at where it arrived.
struct TransferFacts {
  std::uint64_t done = 0, wrong = 0;
  std::string first_wrong;  ///< "messages from rank 2"
  std::string peer_error;   ///< why this rank cannot fetch from the next rank of its node
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(TransferFacts, done, wrong, first_wrong, peer_error)

/// A GPU's account of itself. A figure that the driver does not tell stays 0.
struct LoadHealth {
  bool known = false;
  std::uint64_t samples = 0;  ///< taken under load
  std::uint32_t hottest_celsius = 0;
  double most_watts = 0;
  std::map<std::string, std::uint64_t> slowed_by;  ///< reasons, and how many samples had each
  std::uint64_t corrected_before = 0, corrected_after = 0;
  std::uint64_t uncorrected_before = 0, uncorrected_after = 0;
  std::uint64_t remapped_before = 0, remapped_after = 0;
  std::uint64_t nvlink_errors_before = 0, nvlink_errors_after = 0;
  std::string action_before = "none", action_after = "none";  ///< GpuHealth::recovery_action
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(LoadHealth, known, samples, hottest_celsius,
                                                most_watts, slowed_by, corrected_before,
                                                corrected_after, uncorrected_before,
                                                uncorrected_after, remapped_before, remapped_after,
                                                nvlink_errors_before, nvlink_errors_after,
                                                action_before, action_after)

/// Names of rates: the keys of BurnIn::rates and of the JSON. GB are 10^9 bytes.
namespace rate {
inline constexpr const char* kCopy = "copy_gb_s";
inline constexpr const char* kProductF32 = "product_f32_gflop_s";
inline constexpr const char* kProductF64 = "product_f64_gflop_s";
inline constexpr const char* kToDevice = "to_device_gb_s";
inline constexpr const char* kFromDevice = "from_device_gb_s";
inline constexpr const char* kPeer = "peer_gb_s";
inline constexpr const char* kAllReduce = "all_reduce_gb_s";
inline constexpr const char* kRing = "ring_gb_s";
}  // namespace rate

/// The burn-in of one rank. Travels to the other ranks as JSON.
struct BurnIn {
  int rank = 0;
  std::string host, engine, device_name, uuid;
  std::uint64_t rounds = 0;  ///< completed
  double seconds = 0;
  std::string error;        ///< why the rank gave up, or lost its device host; empty: it did not
  bool by_another = false;  ///< the error comes of a loss on another rank
  MemoryFacts memory;
  std::vector<ProductFacts> products;
  std::map<std::string, double> rates;  ///< by the names above, without those not measured
  TransferFacts transfers;
  LoadHealth health;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(BurnIn, rank, host, engine, device_name, uuid,
                                                rounds, seconds, error, by_another, memory,
                                                products, rates, transfers, health)

/// Does rounds of load until `time` is spent by the clock of rank 0, at least one round, and
/// returns the facts of all ranks. A round has three parts: memory, products, transfers. An error
/// of one rank ends the burn-in of all after the part. Faults strike before the part whose number,
/// counted from 0 over all rounds, is their iteration. All ranks call it. Throws
/// CollectiveException: the engine lacks a kind of fault.
std::vector<BurnIn> burn_in(Runtime& runtime, const LaunchedJob& job, const RankFacts& facts,
                            std::chrono::nanoseconds time, const std::vector<OrderedFault>& faults);

/// The faults that --fault orders for a burn-in of `ranks` ranks. Errors: invalid, one line (no
/// burn-in is asked for, a fault that a burn-in has no use for, no such rank).
Result<std::vector<OrderedFault>> faults_of_burn_in(const Config& config, int ranks);

}  // namespace troupe::info
