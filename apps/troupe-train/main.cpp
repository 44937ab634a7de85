// Trains a GPT-2 on the bytes of a text: data parallel, gradients averaged over all ranks while the
// backward pass goes on.
//
//   mpirun -n N troupe-train [--model gpt2] [--text FILE] [--steps 1000] [--fault kill@500:0]

#include <cstdio>

#include "job_report.hpp"
#include "training.hpp"

namespace troupe::train {
namespace {

/// What is wrong in a way that only this rank, or only the job, can tell.
Result<std::vector<std::uint8_t>> text_of(World& world, const Options& options) {
  world.agree(check_ranks(options.faults, world.size()));
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

template <Element T>
void train(Runtime& runtime, const Options& options, Report& report) {
  auto& world = runtime.world();
  const auto text = text_of(world, options).take();
  report.text_bytes = text.size();
  Training<T> training(runtime, options, text);
  if (options.check_gradients) {
    const auto check = training.check();
    report.check = check;
    // The worst rank's.
    const auto of = [&](double GradientCheck::*number) {
      const auto all = world.gather_values(check.*number);
      (*report.check).*number = *std::max_element(all.begin(), all.end());
    };
    of(&GradientCheck::gradient_error), of(&GradientCheck::loss_error);
    of(&GradientCheck::difference_ratio), of(&GradientCheck::update_ratio);
  }
  training.run(report);
}

int run(Runtime& runtime) {
  auto& world = runtime.world();
  const auto options = parse_options(runtime.config()).take();
  Report report;
  report.engine = runtime.device().info().engine;
  report.devices = app::devices_of(runtime);
  if (options.dtype == DType::f32) {
    train<float>(runtime, options, report);
  } else {
    train<BFloat16>(runtime, options, report);
  }
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
