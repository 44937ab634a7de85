#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include <troupe/lib/rng.hpp>
#include <troupe/troupe.hpp>

#include "progress.hpp"
#include "report.hpp"
#include "text.hpp"
#include "transformer.hpp"

namespace troupe::train {

/// The run: each step takes the next sequences, computes gradients, averages them over the ranks
/// and updates the parameters, by AdamW.
template <Element T>
class Training {
 public:
  Training(Runtime& runtime, const Options& options, const std::vector<std::uint8_t>& text)
      : world_(runtime.world()),
        device_(runtime.device()),
        options_(options),
        places_(options.shape),
        kernels_(device_, dtype_of<T>),
        scratch_(device_),
        model_(device_, kernels_, scratch_, options.shape, places_, options.batch),
        text_(device_.alloc<std::uint8_t>(std::ssize(text), "text")),
        first_moments_(device_.alloc<float>(places_.count)),
        second_moments_(device_.alloc<float>(places_.count)),
        losses_(device_.alloc<float>(kMostSteps)),
        norms_(device_.alloc<float>(kMostSteps)),
        square_sums_(scratch_.room<float>(kSquareSums, "sums of squares")),
        norm_(scratch_.room<float>(1, "gradient norm")),
        backward_(places_.layers.size()),
        faults_(runtime, options.faults),
        progress_(std::make_shared<Progress>(
            static_cast<double>(options.tokens_of_rank() * world_.size()))) {
    device_.upload<std::uint8_t>(text, text_);
  }

  /// Compares this rank's gradients, and an update, with the host's, with parameters of its own.
  GradientCheck check() {
    HostProblem problem{.shape = options_.shape};
    BeforeUpdate before{.step = 3, .parameters = parameters_to_check(options_.shape)};
    problem.parameters.assign(before.parameters.begin(), before.parameters.end());
    device_.upload<float>(before.parameters, model_.parameters());
    draw();
    model_.forward();
    for (auto layer = options_.shape.layers; layer-- > 0;) model_.backward(layer);
    model_.backward_embeddings();
    problem.tokens = device_.download(model_.tokens());
    problem.targets = device_.download(model_.targets());
    before.gradients = device_.download(model_.gradients());
    auto check = check_gradients(problem, static_cast<double>(device_.download(model_.loss())[0]),
                                 before.gradients, dtype_of<T>);
    // Moments of the size of gradients.
    for (std::size_t i = 0; i < before.gradients.size(); ++i) {
      const float other = before.gradients[before.gradients.size() - 1 - i];
      before.first_moments.push_back(other);
      before.second_moments.push_back(other * other + 1e-12f);
    }
    device_.upload<float>(before.first_moments, first_moments_);
    device_.upload<float>(before.second_moments, second_moments_);
    update(before.step);
    check.update_ratio = update_ratio(options_, before, device_.download(model_.parameters()));
    return check;
  }

  /// All steps; fills in the report.
  void run(Report& report) {
    begin();
    Checkpoint state(device_);
    state.add("parameters", model_.parameters());
    state.add("first moments", first_moments_), state.add("second moments", second_moments_);
    state.add("losses", losses_), state.add("gradient norms", norms_);
    scratch_.add_to(state);
    world_.barrier();
    const auto start = std::chrono::steady_clock::now();
    world_.run(state,
               [&](std::int64_t step) {
                 if (step >= options_.steps) return Step::done;  // a saved state was that far
                 faults_.strike(step);
                 advance(step);
                 return step + 1 < options_.steps ? Step::again : Step::done;
               },
               {.commit_every = options_.commit_every});
    if (last_line_.valid()) last_line_.wait();
    world_.barrier();
    report.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    report.restarted_from = world_.restarted_from();
    report.steps_done = std::max<std::int64_t>(
        0, options_.steps - std::max<std::int64_t>(0, report.restarted_from));
    report.recoveries = world_.recoveries();
    const auto later = progress_->span();
    report.later_steps = later.steps, report.later_seconds = later.seconds;
    const auto end = std::max(options_.steps, report.restarted_from);
    report.losses = device_.download(losses_.slice(0, end));
    report.gradient_norms = device_.download(norms_.slice(0, end));
    const auto parameters = device_.download(model_.parameters());
    report.parameters =
        world_.gather_values(hash_of(parameters.data(), parameters.size() * sizeof(float)));
  }

 private:
  static constexpr std::int64_t kSquareSums = 1024;

  /// The state before the first step, the same on all ranks.
  void begin() {
    std::uint64_t number = 0;
    for (const auto& place : places_.all) {
      const auto part = model_.parameters().slice(place.first, place.length);
      const RandomOptions random{.seed = options_.seed, .subsequence = number++};
      if (place.deviation > 0)
        device_.rng().normal<float>(part, random, 0, static_cast<float>(place.deviation));
      else
        device_.fill(part, static_cast<float>(place.value));
    }
    for (const auto* const zeros : {&first_moments_, &second_moments_, &losses_, &norms_})
      device_.fill(*zeros, 0.0f);
  }

  /// Gradients of a layer are averaged while those of the layers before it are computed.
  void advance(std::int64_t step) {
    const std::vector<ParameterValue> of_step{step_(step)};
    if (!options_.record) step_ = Parameter<std::int64_t>(step);
    run(forward_, of_step, [&] {
      draw();
      model_.forward();
    });
    auto together = world_.bundle();
    together.all_reduce(gradients_of(places_.last), ReduceOp::avg);
    together.all_reduce(model_.loss(), ReduceOp::avg);
    together.submit();
    for (auto layer = options_.shape.layers; layer-- > 0;) {
      const auto which = static_cast<std::size_t>(layer);
      run(backward_[which], {}, [&] { model_.backward(layer); });
      world_.all_reduce(gradients_of(places_.layer_blocks[which]), ReduceOp::avg);
    }
    run(embeddings_, {}, [&] { model_.backward_embeddings(); });
    world_.all_reduce(gradients_of(places_.embeddings), ReduceOp::avg);
    update(step);
    if (world_.rank() == 0 && options_.log_every > 0 && (step + 1) % options_.log_every == 0)
      tell(step);
  }

  /// Calls, or by one command what they have recorded the first time.
  template <class F>
  void run(Sequence& sequence, const std::vector<ParameterValue>& values, F calls) {
    if (!options_.record) return calls();
    if (!sequence) sequence = device_.record(calls);
    sequence.run(values);
  }

  /// The tokens of this rank's sequences: what a rank of a job of one would have of its batch.
  void draw() {
    const auto tokens = options_.tokens_of_rank();
    device_.launch(kernels_.draw, OwnKernels::each(tokens), step_, options_.seed,
                   options_.batch * world_.rank(), static_cast<int>(options_.shape.sequence),
                   tokens, text_.length(), read(text_), write(model_.tokens()),
                   write(model_.targets()));
  }

  void update(std::int64_t step) {
    const auto correction = [&](double beta) {
      return static_cast<float>(1 - std::pow(beta, static_cast<double>(step + 1)));
    };
    const auto rate = static_cast<float>(options_.learning_rate_of(step));
    const std::vector<ParameterValue> values{step_(step), rate_(rate),
                                             correction1_(correction(kBeta1)),
                                             correction2_(correction(kBeta2))};
    if (!options_.record) {
      rate_ = Parameter<float>(rate);
      correction1_ = Parameter<float>(correction(kBeta1));
      correction2_ = Parameter<float>(correction(kBeta2));
    }
    run(update_, values, [&] {
      const auto& gradients = model_.gradients();
      device_.launch(kernels_.square_sums, kernels_.rows(kSquareSums), gradients.length(),
                     read(gradients), write(square_sums_));
      device_.launch(kernels_.gradient_norm, kernels_.rows(1), static_cast<int>(kSquareSums),
                     read(square_sums_), write(norm_));
      update(places_.embeddings);
      for (const auto& block : places_.layer_blocks) update(block);
      update(places_.last);
      device_.launch(kernels_.keep, {.grid = 1, .block = 1}, step_, read(model_.loss()),
                     read(norm_), troupe::update(losses_), troupe::update(norms_));
    });
  }
  void update(const Block& block) {
    const auto part = [&](const GpuRef<float>& all) {
      return all.slice(block.first, block.length);
    };
    device_.launch(kernels_.adamw, OwnKernels::each(block.length, false), block.length,
                   block.decayed, rate_, static_cast<float>(options_.weight_decay),
                   static_cast<float>(options_.grad_clip), static_cast<float>(kBeta1),
                   static_cast<float>(kBeta2), static_cast<float>(kAdamEpsilon), correction1_,
                   correction2_, read(norm_), read(part(model_.gradients())),
                   troupe::update(part(model_.parameters())), troupe::update(part(first_moments_)),
                   troupe::update(part(second_moments_)));
  }

  /// Prints the loss when the device has it; nothing waits.
  void tell(std::int64_t step) {
    auto loss = std::make_shared<PinnedBuffer<float>>(device_.pinned<float>(1));
    last_line_ = device_.copy(model_.loss(), *loss).then([loss, step, progress = progress_] {
      progress->done(step, (*loss)[0]);
    });
  }

  [[nodiscard]] GpuRef<float> gradients_of(const Block& block) const {
    return model_.gradients().slice(block.first, block.length);
  }

  World& world_;
  Device& device_;
  const Options& options_;
  const Parameters places_;
  const OwnKernels kernels_;
  Scratch scratch_;
  Transformer<T> model_;
  GpuRef<std::uint8_t> text_;
  GpuRef<float> first_moments_, second_moments_;
  GpuRef<float> losses_, norms_;  ///< of each step
  GpuRef<float> square_sums_, norm_;
  Sequence forward_, embeddings_, update_;
  std::vector<Sequence> backward_;
  // What differs from step to step.
  Parameter<std::int64_t> step_{0};
  Parameter<float> rate_{0}, correction1_{1}, correction2_{1};
  FaultsOfRank faults_;
  std::shared_ptr<Progress> progress_;
  Future<void> last_line_;
};

}  // namespace troupe::train
