#include "mpi_tests.hpp"

// troupe-mpi-tests --case NAME: one case under mpirun.

int main(int argc, char** argv) {
  using namespace troupe;
  const std::vector<std::pair<std::string, std::function<void(test::Context&)>>> cases = {
      {"collectives", test::collectives},
      {"group_collectives", test::group_collectives},
      {"splits", test::splits},
      {"split_disagreement", test::split_disagreement},
      {"split_counts", test::split_counts},
      {"split_interrupted", test::split_interrupted},
      {"split_faults", test::split_faults},
      {"group_faults", test::group_faults},
      {"groups_in_run", test::groups_in_run},
      {"group_members", test::group_members},
      {"group_gone", test::group_gone},
      {"sequences", test::sequences},
      {"sequence_collectives", test::sequence_collectives},
      {"sequence_first_use", test::sequence_first_use},
      {"sequence_differences", test::sequence_differences},
      {"sequence_faults", test::sequence_faults},
      {"recorded_steps", test::recorded_steps},
      {"pgemm", test::pgemm},
      {"pgemm_refusals", test::pgemm_refusals},
      {"pgemm_faults", test::pgemm_faults},
      {"pfft3", test::pfft3},
      {"pfft3_faults", test::pfft3_faults},
      {"actors", test::actors},
      {"reproducible", test::reproducible},
      {"actor_faults", test::actor_faults},
      {"actor_members", test::actor_members},
      {"collective_check", test::collective_check},
      {"collective_differences", test::collective_differences},
      {"reformation", test::reformation},
      {"phases", test::phases},
      {"epochs", test::epochs},
      {"checkpoint", test::checkpoint},
      {"last_step", test::last_step},
      {"failed_commit", test::failed_commit},
      {"left_alone", test::left_alone},
      {"left_run", test::left_run},
      {"last_error", test::last_error},
      {"timelines", test::timelines},
      {"late_errors", test::late_errors},
      {"standing_still", test::standing_still},
      {"run_twice", test::run_twice},
      {"lost_before_run", test::lost_before_run},
      {"fault_in_prepare", test::fault_in_prepare},
      {"last_read", test::last_read},
      {"full_ring", test::full_ring},
      {"early_return", test::early_return},
      {"disagreement", test::disagreement},
      {"late_to_barrier", test::late_to_barrier},
      {"late_to_recovery", test::late_to_recovery},
      {"budget", test::budget},
      {"absent", test::absent},
      {"loss_after_absence", test::loss_after_absence},
      {"hidden_fault", test::hidden_fault},
      {"stuck", test::stuck},
      {"idle", test::idle},
      {"independence", test::independence},
      {"first_message", test::first_message},
      {"first_use", test::first_use},
      {"long_wait", test::long_wait},
      {"libraries", test::libraries},
      {"saved_states",
       [](test::Context& c) {
         test::saved_states(c);
         test::saved_runs(c);
       }},
      {"saved_under_fire", test::saved_under_fire},
      {"stop_requests", test::stop_requests},
      {"rehearsal", test::rehearsal},
      {"rehearsal_of_strides", test::rehearsal_of_strides},
      {"rehearsal_within", test::rehearsal_within},
      {"shrink", test::shrink},
      {"shrink_by_hand", test::shrink_by_hand},
      {"failing_gpu", test::failing_gpu},
      {"grow", test::grow},
      {"rejoin_after", test::rejoin_after},
      {"tokens", test::tokens},
      {"remote_kernels", test::remote_kernels},
      {"token_order", test::token_order},
      {"token_faults", test::token_faults},
      {"token_errors", test::token_errors},
      {"token_remote", test::token_remote},
      {"token_timeout", test::token_timeout},
      {"token_pieces", test::token_pieces},
      {"token_rollback", test::token_rollback},
      {"token_spoilt", test::token_spoilt},
      {"token_commits", test::token_commits},
      {"kept_references", test::kept_references},
      {"token_epochs", test::token_epochs},
      {"host_calls", test::host_calls},
      {"host_calls_differ", test::host_calls_differ},
      {"refusals",
       [](test::Context& c) {
         test::run_refusals(c);
         test::argument_refusals(c);
         test::many_entries(c);
       }},
      {"ended_program", test::early_return},
      {"silent_rank", test::silent_rank},
      {"silent_rank_in_run", test::silent_rank_in_run},
  };
  std::vector<std::string> names;
  for (const auto& [name, function] : cases) names.push_back(name);
  const Program program{"troupe-mpi-tests",
                        "Tests of the world under mpirun.",
                        {{"case", OptionType::text, names.front(), "NAME", "what to test", names}}};
  return run_program(argc, argv, program, [&](Runtime& runtime) {
    test::Context context(runtime);
    const auto name = runtime.config().text("case");
    for (const auto& [known, function] : cases) {
      if (known == name) function(context);
    }
    if (name == "early_return") return 3;
    if (name == "ended_program") return kExitSuccess;
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
