#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <typeinfo>

#include <boost/core/demangle.hpp>

#include "common/core/version.hpp"
#include "rank/exit_status.hpp"
#include "rank/job_launch.hpp"
#include "rank/launch.hpp"
#include "rank/runtime_parts.hpp"

namespace troupe {
namespace {

void say(const Program& program, const std::string& line) {
  std::fprintf(stderr, "%s: %s\n", program.name.c_str(), line.c_str());
  std::fflush(stderr);
}

std::string name_of(int rank) {
  return "[rank " + std::to_string(rank) + "] ";
}

std::string line_of(const Error& error) {
  const bool named =
      error.code == Errc::invalid || error.code == Errc::io || error.code == Errc::unsupported;
  return named ? error.message : error.to_string();
}

/// One line, from rank 0: all ranks have the same to say.
int complain(const Program& program, const Error& error, int rank) {
  if (rank == 0) say(program, line_of(error));
  return rank_process::exit_status(error.code);
}

/// The exception that is being handled is known to this rank alone: the others would wait for it
/// for ever. One line, and the end of the job.
[[noreturn]] void end_the_job(const Program& program, int rank) {
  const auto end = [&](const std::string& line, int status) {
    say(program, name_of(rank) + line);
    rank_process::Session::abort(status);
  };
  try {
    throw;
  } catch (const Exception& e) {
    end(line_of(e.error()), rank_process::exit_status(e.code()));
  } catch (const std::bad_alloc&) {
    end("out_of_memory: host memory", rank_process::exit_status(Errc::out_of_memory));
  } catch (const std::exception& e) {
    end("the program ended with an exception: " + boost::core::demangle(typeid(e).name()) + ": " +
            e.what(),
        kExitFailure);
  } catch (...) {
    end("the program ended with an exception that is no std::exception", kExitFailure);
  }
  std::abort();  // not reached
}

std::string line_of(const UnreadErrors& errors) {
  if (errors.count == 0) return {};
  return (errors.count == 1 ? std::string("a command failed, and nobody read its error: ")
                            : std::to_string(errors.count) +
                                  " commands failed, and nobody read their errors; the first: ") +
         errors.first.to_string();
}

/// Rank 0 says one line for what ranks have to say at the end, each for itself (`mine`; empty:
/// nothing). All ranks call it. False if there is nothing.
bool tell(const Program& program, const std::string& mine,
          const rank_process::HostGroup& everyone) {
  const auto lines = everyone.gather_text(mine);
  const auto empty = [](const auto& line) { return line.empty(); };
  const auto first = std::find_if_not(lines.begin(), lines.end(), empty);
  if (first == lines.end()) return false;
  const auto others = std::count_if(first + 1, lines.end(), std::not_fn(empty));
  if (everyone.rank() == 0) {
    say(program, name_of(static_cast<int>(first - lines.begin())) + *first +
                     (others == 0 ? ""
                                  : " (and errors on " + std::to_string(others) + " other rank" +
                                        (others == 1 ? ")" : "s)")));
  }
  return true;
}

/// Waits for the end of all ranks' programs. A rank that ends with a status of its own, while
/// others wait for it, ends the job. `unsaid`: what would be said once all have ended.
void end_body(const Program& program, rank_process::Session& mpi, int status,
              const std::string& unsaid) {
  constexpr auto kEver = std::chrono::hours(24 * 365);
  if (mpi.all_have_ended(status == kExitSuccess ? kEver : kEndPatience)) return;
  if (status == kExitSuccess || rank_process::Session::forsaken()) return;
  say(program, name_of(mpi.rank()) + "this rank's program has ended with status " +
                   std::to_string(status) + ", that of others has not: the job ends" +
                   (unsaid.empty() ? "" : " (" + unsaid + ")"));
  rank_process::Session::abort(status);
}

int answer(const Program& program, const Config& config, bool first) {
  if (!first) return kExitSuccess;
  const std::string text = config.wants_help() ? config.help_text(program.name, program.synopsis)
                           : config.wants_version()
                               ? program.name + " (troupe) " + std::string(kVersion) + "\n"
                               : config.print();
  std::fputs(text.c_str(), stdout);
  return kExitSuccess;
}

/// To troupe-run, whose launcher may have been told to go on whatever becomes of a process: what a
/// keeper tells, where there is none.
void tell_launcher(int status) {
  if (std::getenv("LIBTROUPE_TELL_STATUS") != nullptr)
    std::fprintf(stderr, "troupe-keeper: job status %d\n", status);
}

/// As a keeper, if one is wanted, or in a process that waits to become a rank. Errors: a keeper
/// cannot be had; see become_keeper().
Result<void> launch_again(const Config& config, char** argv) {
  try {
    const auto settings = Settings::of(config);
    if (auto sound = rank_process::check_settings(settings); !sound)
      return {};  // said by all ranks
    auto launched = rank_process::become_keeper(settings, argv);
    if (launched.ok()) rank_process::start_early_host(settings);
    return launched;
  } catch (const Exception&) {
    return {};  // as the Runtime says
  }
}

}  // namespace

int run_program(int argc, char** argv, const Program& program,
                const std::function<int(Runtime&)>& body,
                const std::function<Result<void>(const Config&)>& check_usage) {
  auto config = Config::parse(argc, argv, program.options);
  const bool asks =
      config.ok() && (config->wants_help() || config->wants_version() || config->wants_print());
  Result<void> usage = config.ok() ? Result<void>() : Result<void>(config.error());
  if (usage.ok() && !asks && check_usage) usage = check_usage(*config);
  if (usage.ok() && !asks) usage = launch_again(*config, argv);
  // It outlives the Runtime: no rank leaves before rank 0 has said what went wrong, for mpirun
  // kills the others once one leaves with a status that is not 0.
  const auto mpi = rank_process::Session::open(&argc, &argv);
  if (asks) return answer(program, *config, mpi->rank() == 0);
  if (!usage.ok()) {
    const int status = complain(program, usage.error(), mpi->rank());
    if (mpi->rank() == 0) tell_launcher(status);
    return status;
  }
  int status = kExitSuccess;
  std::chrono::nanoseconds patience{};
  try {
    Runtime runtime(argc, argv, *config);
    const auto& settings = runtime.parts_->settings;
    if (settings.stall_report.count() > 0)
      patience = settings.stall_report + settings.phase_timeout;
    std::string unsaid;  // what rank 0 may not know of
    std::string reason;  // what rank 0 says, unless it does not come to that
    try {
      status = body(runtime);
      if (status == kExitSuccess) runtime.parts_->world_core->wait_done();
      unsaid = line_of(runtime.device().unread_errors());
      if (unsaid.empty() && (std::fflush(stdout) != 0 || std::ferror(stdout) != 0))
        unsaid = "standard output cannot be written: what was printed is lost";
    } catch (
        const rank_process::RunLeft& e) {  // unless the rank that left has ended the job by then
      status = rank_process::exit_status(e.code());
      unsaid = line_of(e.error());
    } catch (const CollectiveException& e) {  // the others end as well, spectators without it
      status = complain(program, e.error(), runtime.world().rank());
      reason = line_of(e.error());
    } catch (...) {
      end_the_job(program, mpi->rank());
    }
    mpi->respawns().expect_no_more();
    if (rank_process::Session::forsaken()) rank_process::Session::abort(status);
    const rank_process::Whereabouts::Wait wait(runtime.parts_->world_core->whereabouts(),
                                               "the end of the program",
                                               rank_process::Awaits::end_of_program);
    end_body(program, *mpi, status, unsaid.empty() ? reason : unsaid);
    if (rank_process::Session::forsaken()) rank_process::Session::abort(status);
    runtime.parts_->conclude(status == kExitSuccess);
    if (rank_process::Session::forsaken()) rank_process::Session::abort(status);
    if (unsaid.empty()) unsaid = line_of(runtime.device().unread_errors());
    if (tell(program, unsaid, mpi->everyone()) && status == kExitSuccess) status = kExitFailure;
    runtime.parts_->clear_near_states(status);
  } catch (const Exception& e) {
    status = complain(program, e.error(), mpi->rank());
  } catch (...) {
    end_the_job(program, mpi->rank());
  }
  if (rank_process::Session::forsaken()) rank_process::Session::abort(status);
  mpi->end_with(status, patience);
  return status;
}

}  // namespace troupe
