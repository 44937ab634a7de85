// Trains a GPT-2 on the bytes of a text: data parallel, gradients averaged over all ranks while the
// backward pass goes on.
//
//   mpirun -n N troupe-train [--model gpt2] [--text FILE] [--steps 1000] [--fault kill@500:0]

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>

#include "job_report.hpp"
#include "training.hpp"

namespace troupe::train {
namespace {

/// What is wrong in a way that only this rank, or only the job, can tell.
Result<std::vector<std::uint8_t>> text_of(World& world, const Options& options) {
  world.agree(check_ranks(options.faults, world.size()));
  app::require_report_file(world, options.json);
  auto text = options.text.empty() ? Result(made_text()) : read_text(options.text);
  world.agree(text.ok() ? Result<void>() : Result<void>(text.error()));
  const auto hashes = world.gather_values(hash_of(text->data(), text->size()));
  for (std::size_t rank = 1; rank < hashes.size(); ++rank) {
    if (hashes[rank] != hashes[0])
      return Error{Errc::invalid, 0,
                   "--text: rank " + std::to_string(rank) + " has another text than rank 0"};
  }
  return text;
}

/// The gradients of all ranks: of each figure the worst.
template <Element T>
GradientCheck worst_check(Work& work) {
  auto check = Training<T>(work).check();
  const auto of = [&](double GradientCheck::*number) {
    const auto all = work.runtime->world().gather_values(check.*number);
    check.*number = *std::max_element(all.begin(), all.end());
  };
  of(&GradientCheck::gradient_error), of(&GradientCheck::loss_error);
  of(&GradientCheck::difference_ratio), of(&GradientCheck::update_ratio);
  return check;
}

/// All steps; fills in the report, but on a rank that is out of the world at the end.
template <Element T>
void train(Work& work, Report& report) {
  using Clock = std::chrono::steady_clock;
  auto& world = work.runtime->world();
  const auto& options = *work.options;
  if (options.check_gradients) report.check = worst_check<T>(work);
  std::unique_ptr<Training<T>> share;
  Checkpoint state(work.runtime->device());
  const auto make_share = [&] {
    share.reset();  // its memory is needed
    share = std::make_unique<Training<T>>(work);
    share->begin(state);
  };
  auto start = Clock::now();
  world.run(state, [&](std::int64_t step) { return share->step(step); },
            {.commit_every = options.commit_every,
             .prepare =
                 [&] {
                   make_share();
                   start = Clock::now();
                 },
             .redistribute = [&](const SavedState& saved) { share->take_over(saved, state); },
             .resized = make_share});
  report.restarted_from = world.restarted_from();
  report.final_ranks = world.size();
  report.recoveries = world.recoveries();
  report.corruptions = world.corruptions();
  if (world.spectator()) return;
  share->settle();
  world.barrier();
  report.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  report.steps_done =
      std::max<std::int64_t>(0, options.steps - std::max<std::int64_t>(0, report.restarted_from));
  const auto later = work.progress->span();
  report.later_steps = later.steps, report.later_seconds = later.seconds;
  share->tell_results(std::max(options.steps, report.restarted_from), report);
}

int run(Runtime& runtime) {
  auto& world = runtime.world();
  const auto options = parse_options(runtime.config()).take();
  Report report;
  report.engine = runtime.device().info().engine;
  report.devices = app::devices_of(runtime);
  Work work{
      &runtime,
      &options,
      text_of(world, options).take(),
      options.batch * world.size(),
      FaultsOfRank(runtime, options.faults),
      std::make_shared<Progress>(static_cast<double>(options.tokens_of_rank() * world.size()))};
  report.text_bytes = work.text.size();
  if (options.dtype == DType::f32) {
    train<float>(work, report);
  } else {
    train<BFloat16>(work, report);
  }
  if (world.spectator()) return kExitSuccess;  // the others have the result
  return app::conclude(
      world, report.right(), options.json, [&] { return to_text(report, options); },
      [&] { return to_json(report, options); });
}

}  // namespace
}  // namespace troupe::train

int main(int argc, char** argv) {
  using namespace troupe;
  const Program program{
      "troupe-train",
      "Trains a GPT-2 on the bytes of a text, data parallel over the devices of an MPI job. Ends "
      "with 0 if the loss has fallen and all ranks have the same parameters.",
      train::option_specs()};
  return run_program(argc, argv, program, train::run, [](const Config& config) -> Result<void> {
    const auto options = train::parse_options(config);
    return options.ok() ? Result<void>() : Result<void>(options.error());
  });
}
