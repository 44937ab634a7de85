#include "mpi_tests.hpp"

// troupe-mpi-tests --case NAME: one case under mpirun.

int main(int argc, char** argv) {
  using namespace troupe;
  std::vector<std::string> names;
  for (const auto& one : test::Case::all()) names.push_back(one.first);
  const Program program{"troupe-mpi-tests",
                        "Tests of the world under mpirun.",
                        {{"case", OptionType::text, names.front(), "NAME", "what to test", names}}};
  return run_program(argc, argv, program, [&](Runtime& runtime) {
    test::Context context(runtime);
    const auto name = runtime.config().text("case");
    test::Case::all().at(name)(context);
    if (context.status()) return *context.status();
    if (runtime.world().spectator())  // its failures are for itself to say
      return context.failures() == 0 ? kExitSuccess : kExitFailure;
    int failures = 0;
    for (const int count : runtime.world().gather_values(context.failures())) failures += count;
    context.report(
        name + ": " + (failures == 0 ? "passed" : std::to_string(failures) + " failures") + " on " +
        std::to_string(runtime.world().size()) + " ranks, " + runtime.device().info().engine);
    return failures == 0 ? kExitSuccess : kExitFailure;
  });
}
