#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include <troupe/config.hpp>
#include <troupe/device.hpp>
#include <troupe/world.hpp>

namespace troupe {

class ActorSystem;

/// Exit statuses of troupe's programs.
inline constexpr int kExitSuccess = 0;
inline constexpr int kExitFailure = 1;   ///< wrong result, not converged, or an error while running
inline constexpr int kExitUsage = 2;     ///< bad usage, input or environment
inline constexpr int kExitRequeue = 75;  ///< the restart budget is spent, or the run was asked to
                                         ///< stop: requeue the job (EX_TEMPFAIL)

struct Program;

/// Everything a rank needs: MPI, the configuration, its device, the world. One per process, made
/// and destroyed by the main thread.
class Runtime {
 public:
  /// Initialises MPI (MPI_THREAD_MULTIPLE) unless the program has, reads the configuration, starts
  /// the device host and forms the world. Throws Exception on every rank with the same error:
  /// Errc::invalid for usage, the cause else.
  Runtime(int argc, char** argv, std::span<const OptionSpec> options = {});
  /// With a configuration that was parsed before.
  Runtime(int argc, char** argv, const Config& config);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  [[nodiscard]] Device& device();
  [[nodiscard]] World& world();
  [[nodiscard]] const Config& config() const;
  /// Where the program's own actors live (<troupe/actor.hpp>): on --actor-workers threads of their
  /// own, started by the first call, so that a handler that takes long holds up nothing of
  /// troupe's. Shut down when all ranks' programs have ended, while device and world still serve.
  /// The main thread. Throws Exception: invalid.
  [[nodiscard]] ActorSystem& actors();
  /// The cores near the GPU that troupe's own threads are bound to, "0-3,8"; empty: not bound.
  [[nodiscard]] const std::string& actor_cores() const;

 private:
  friend int run_program(int argc, char** argv, const Program& program,
                         const std::function<int(Runtime&)>& body,
                         const std::function<Result<void>(const Config&)>& check_usage);

  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// Name and version of the MPI library. Any thread, also before MPI_Init.
std::string mpi_version();

/// A program's name and what --help says of it.
struct Program {
  std::string name;
  std::string synopsis;
  std::vector<OptionSpec> options;
};

/// The main() of an MPI program: parses the options (answering --help, --version and
/// --print-config), runs `check_usage` if given, makes a Runtime and runs `body`. Errors become one
/// line on rank 0's stderr and the documented exit status; no rank is left behind.
///
/// An exception that leaves `body` ends the job, on all ranks: with one line, and with status 1
/// where it is none of troupe's. A body that returns 0 is waited for: everything that it submitted
/// ends first. If any rank then has errors that nobody read (Device::unread_errors()), the first
/// becomes a line and the status is 1.
int run_program(int argc, char** argv, const Program& program,
                const std::function<int(Runtime&)>& body,
                const std::function<Result<void>(const Config&)>& check_usage = {});

}  // namespace troupe
