#include "keeper/program.hpp"

#include <cstdlib>

#include "keeper/meeting.hpp"

namespace troupe::keeper {

const std::vector<std::string> kLaunchersOwn = {"PMI_",
                                                "PMIX_",
                                                "PRTE_",
                                                "OMPI_MCA_ess",
                                                "OMPI_MCA_orte",
                                                "OMPI_MCA_pmix",
                                                "OMPI_FILE_LOCATION",
                                                "HYDI_"};

Process launch(const Arguments& arguments, const Job& job, const Gifts& gifts) {
  auto [here, there] = need(ipc::Socket::make_pair());
  const auto file = need(write_job(job));
  ::setenv(kEnvironment, "1", 1);
  auto child = need(ipc::ChildProcess::spawn(
      {.program = arguments.program,
       .arguments = arguments.arguments,
       .strip_environment = kLaunchersOwn,
       .descriptors = {there.fd(), gifts.listener, file.get(), gifts.start, gifts.estate},
       // The launcher's signals go to all of its group and are for ranks: keepers pass them on.
       .leads_group = job.rank == Job::kSpare,
       .named = true}));
  return {std::move(child), std::move(here)};
}

}  // namespace troupe::keeper
