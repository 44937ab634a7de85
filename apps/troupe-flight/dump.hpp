#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <troupe/error.hpp>

namespace troupe::flight {

/// One operation as a rank's flight recorder had it. Times are nanoseconds on rank 0's clock; 0: it
/// has not come to that.
struct Operation {
  std::uint64_t ticket = 0;
  std::string name;
  std::uint64_t bytes = 0, count = 0;
  int peer = -1;                 ///< root or only partner
  std::uint32_t epoch = 0;       ///< 0: no collective
  std::uint32_t group = 0;       ///< of which it is one; 0: of the world
  std::uint32_t collective = 0;  ///< its number among those of its communicator; 0: none
  std::int64_t submitted_ns = 0, issued_ns = 0, completed_ns = 0;
  std::string outcome;  ///< the error class; empty: none known
  bool repeated = false;
};

/// What the GPU of a rank has said of its health.
struct Health {
  std::int64_t time_ns = 0;  ///< on rank 0's clock
  std::string kind, text;
  bool failing = false;
};

/// What one rank has dumped.
struct Dump {
  std::string file, job, host, reason;
  std::string whereabouts;  ///< of the rank's program; empty: not known
  int rank = 0, size = 1;
  std::int64_t time_ns = 0;           ///< when, on rank 0's clock
  std::uint32_t epoch = 0;            ///< of the newest of the world's collectives here …
  std::uint32_t collectives = 0;      ///< … and its number
  std::vector<Operation> operations;  ///< by ticket
  std::vector<Health> health;         ///< in the order of time
};

/// Reads a dump. Errors name the file: io (it cannot be read), invalid (it is no dump).
Result<Dump> read_dump(const std::string& file);

/// Reads the dumps of one job, ordered by rank. Errors beside those of read_dump(): invalid (dumps
/// of different jobs, two of one rank).
Result<std::vector<Dump>> read_dumps(const std::vector<std::string>& files);

}  // namespace troupe::flight
