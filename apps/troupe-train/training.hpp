#pragma once

#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <troupe/lib/rng.hpp>
#include <troupe/troupe.hpp>

#include "portion.hpp"
#include "report.hpp"
#include "text.hpp"
#include "transformer.hpp"
#include "work.hpp"

namespace troupe::train {

/// This rank's share of the work, for the members that the world has when this is made: each step
/// takes the next sequences, computes gradients, averages them over the ranks and updates the
/// parameters, by AdamW.
///
/// Ranks may have different numbers of sequences. So each divides its sum of gradients by the same
/// number, the tokens of all ranks over the number of ranks: then the average over the ranks is the
/// mean over all tokens.
template <Element T>
class Training {
 public:
  explicit Training(Work& work)
      : work_(work),
        world_(work.runtime->world()),
        device_(work.runtime->device()),
        options_(*work.options),
        places_(options_.shape),
        portion_(portion_of(world_.rank(), world_.size(), work.sequences, options_.batch)),
        kernels_(device_, dtype_of<T>, options_.shape),
        scratch_(device_),
        model_(device_, kernels_, scratch_, options_.shape, places_, portion_.sequences_of_pass,
               tokens_of(work.sequences) / static_cast<double>(world_.size())),
        text_(device_.alloc<std::uint8_t>(std::ssize(work.text), "text")),
        first_moments_(device_.alloc<float>(places_.count)),
        second_moments_(device_.alloc<float>(places_.count)),
        losses_(device_.alloc<float>(kMostSteps)),
        norms_(device_.alloc<float>(kMostSteps)),
        square_sums_(scratch_.room<float>(kSquareSums, "sums of squares")),
        norm_(scratch_.room<float>(1, "gradient norm")),
        backward_(places_.layers.size()) {
    device_.upload<std::uint8_t>(work.text, text_);
    if (portion_.passes == 1) return;
    gradient_sums_ = scratch_.room<float>(places_.count, "gradients of passes before");
    loss_sum_ = scratch_.room<float>(1, "loss of passes before");
  }

  /// Compares this rank's gradients, and an update, with the host's, with parameters of its own.
  GradientCheck check() {
    HostProblem problem{.shape = options_.shape};
    BeforeUpdate before{.step = 3, .parameters = parameters_to_check(options_.shape)};
    problem.parameters.assign(before.parameters.begin(), before.parameters.end());
    device_.upload<float>(before.parameters, model_.parameters());
    forward(0, 0);
    for (auto layer = options_.shape.layers; layer-- > 0;) backward(layer);
    backward_embeddings();
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

  /// The state before the first step, the same on all ranks; it belongs to the checkpoint.
  void begin(Checkpoint& state) {
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
    // The same on all ranks: each commit compares them.
    state.add_replicated("parameters", model_.parameters());
    state.add_replicated("first moments", first_moments_);
    state.add_replicated("second moments", second_moments_);
    state.add("losses", losses_), state.add("gradient norms", norms_);
    state.add_constant("text", text_, [this] { device_.upload<std::uint8_t>(work_.text, text_); });
    state.add_constant(kSequencesEntry, std::span<const std::int64_t>(&work_.sequences, 1));
    scratch_.add_to(state);
    device_.nop().get();
  }

  /// Loads the state that another number of ranks has saved, all of them the same. Throws Exception
  /// (invalid: a step had another number of sequences; io).
  void take_over(const SavedState& saved, Checkpoint& state) {
    const int part = world_.rank() % saved.parts();
    const SavedPiece number{part, kSequencesEntry, 0, 1};
    const auto sequences = SavedState::as<std::int64_t>(saved.read({&number, 1}).take()[0])[0];
    if (sequences != work_.sequences)
      throw Exception({Errc::invalid, 0,
                       fmt::format("--batch: a step of the saved state has {} sequences, and here "
                                   "it has {}",
                                   sequences, work_.sequences)});
    const auto& entries = state.saved_entries();
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const SavedPiece whole{part, entries[i].name, 0, entries[i].count};
      const auto loaded = state.load(i, saved.read({&whole, 1}).take()[0]);
      if (!loaded.ok()) throw Exception(loaded.error());
    }
  }

  Step step(std::int64_t step) {
    if (step >= options_.steps) return Step::done;  // a saved state was that far
    work_.faults.strike(step);
    advance(step);
    return step + 1 < options_.steps ? Step::again : Step::done;
  }

  /// Waits for the last line of progress.
  void settle() {
    if (last_line_.valid()) last_line_.wait();
  }
  /// What has come of all steps up to that one. All ranks call it.
  void tell_results(std::int64_t end, Report& report) {
    report.losses = device_.download(losses_.slice(0, end));
    report.gradient_norms = device_.download(norms_.slice(0, end));
    const auto parameters = device_.download(model_.parameters());
    report.parameters =
        world_.gather_values(hash_of(parameters.data(), parameters.size() * sizeof(float)));
  }

 private:
  static constexpr std::int64_t kSquareSums = 1024;
  static constexpr const char* kSequencesEntry = "number of sequences of a step (--batch)";

  [[nodiscard]] double tokens_of(std::int64_t sequences) const {
    return static_cast<double>(sequences * options_.shape.sequence);
  }

  /// Gradients of a layer are averaged while those of the layers before it are computed; where
  /// there are several passes, in the last one.
  void advance(std::int64_t step) {
    const auto last = portion_.passes - 1;
    for (std::int64_t pass = 0; pass < last; ++pass) {
      forward(step, pass);
      for (auto layer = options_.shape.layers; layer-- > 0;) backward(layer);
      backward_embeddings();
      add_to_sums(pass);
    }
    forward(step, last);
    if (last > 0) device_.blas().axpy(1.0f, loss_sum_, model_.loss());
    average(places_.no_bytes);
    average(places_.last, model_.loss());
    for (auto layer = options_.shape.layers; layer-- > 0;) {
      const auto& block = places_.layer_blocks[static_cast<std::size_t>(layer)];
      backward(layer);
      average(block);
    }
    backward_embeddings();
    average(places_.positions);
    average(places_.bytes);
    update(step);
    if (world_.rank() == 0 && options_.log_every > 0 && (step + 1) % options_.log_every == 0)
      tell(step);
  }

  /// Averages gradients over the ranks, when those of the passes before are added.
  void average(const Block& block) {
    if (block.length == 0) return;
    add_sums(block);
    world_.all_reduce(gradients_of(block), ReduceOp::avg);
  }
  /// The same, and the loss; little of both.
  void average(const Block& block, const GpuRef<float>& loss) {
    add_sums(block);
    auto together = world_.bundle();
    together.all_reduce(gradients_of(block), ReduceOp::avg);
    together.all_reduce(loss, ReduceOp::avg);
    together.submit();
  }

  /// Calls, or by one command what they have recorded the first time.
  template <class F>
  void run(Sequence& sequence, const std::vector<ParameterValue>& values, F calls) {
    if (!options_.record) return calls();
    if (!sequence) sequence = device_.record(calls);
    sequence.run(values);
  }

  /// Of the sequences of a pass.
  void forward(std::int64_t step, std::int64_t pass) {
    const auto first = portion_.first_of(pass),
               drawn = portion_.count_of(pass) * options_.shape.sequence;
    if (!options_.record) {
      step_ = Parameter<std::int64_t>(step);
      first_ = Parameter<std::int64_t>(first), drawn_ = Parameter<std::int64_t>(drawn);
    }
    run(forward_, {step_(step), first_(first), drawn_(drawn)}, [&] {
      const auto& tokens = model_.tokens();
      device_.launch(kernels_.draw, OwnKernels::each(tokens.length()), step_, options_.seed, first_,
                     static_cast<int>(options_.shape.sequence), drawn_, tokens.length(),
                     text_.length(), read(text_), write(tokens), write(model_.targets()));
      model_.forward();
    });
  }
  void backward(std::int64_t layer) {
    run(backward_[static_cast<std::size_t>(layer)], {}, [&] { model_.backward(layer); });
  }
  void backward_embeddings() {
    run(embeddings_, {}, [&] { model_.backward_embeddings(); });
  }

  /// Keeps what a pass has computed until the last one.
  void add_to_sums(std::int64_t pass) {
    if (pass == 0) {
      device_.copy(model_.gradients(), gradient_sums_), device_.copy(model_.loss(), loss_sum_);
    } else {
      device_.blas().axpy(1.0f, model_.gradients(), gradient_sums_);
      device_.blas().axpy(1.0f, model_.loss(), loss_sum_);
    }
  }
  /// Adds the gradients of the passes before to those of the last one.
  void add_sums(const Block& block) {
    if (portion_.passes > 1)
      device_.blas().axpy(1.0f, gradient_sums_.slice(block.first, block.length),
                          gradients_of(block));
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
    device_.launch(kernels_.adamw, OwnKernels::each(block.length / 8, false), block.length / 8,
                   block.decayed / 8, rate_, static_cast<float>(options_.weight_decay),
                   static_cast<float>(options_.grad_clip), static_cast<float>(kBeta1),
                   static_cast<float>(kBeta2), static_cast<float>(kAdamEpsilon), correction1_,
                   correction2_, read(norm_), read(part(model_.gradients())),
                   troupe::update(part(model_.parameters())), troupe::update(part(first_moments_)),
                   troupe::update(part(second_moments_)));
  }

  /// Prints the loss when the device has it; nothing waits.
  void tell(std::int64_t step) {
    auto loss = std::make_shared<PinnedBuffer<float>>(device_.pinned<float>(1));
    last_line_ = device_.copy(model_.loss(), *loss).then([loss, step, progress = work_.progress] {
      progress->done(step, (*loss)[0]);
    });
  }

  [[nodiscard]] GpuRef<float> gradients_of(const Block& block) const {
    return model_.gradients().slice(block.first, block.length);
  }

  Work& work_;
  World& world_;
  Device& device_;
  const Options& options_;
  const Parameters places_;
  const Portion portion_;
  const OwnKernels kernels_;
  Scratch scratch_;
  Transformer<T> model_;
  GpuRef<std::uint8_t> text_;
  GpuRef<float> first_moments_, second_moments_;
  GpuRef<float> losses_, norms_;  ///< of each step
  GpuRef<float> square_sums_, norm_;
  GpuRef<float> gradient_sums_, loss_sum_;  ///< of the passes before the last one
  Sequence forward_, embeddings_, update_;
  std::vector<Sequence> backward_;
  // What differs from step to step, or from pass to pass.
  Parameter<std::int64_t> step_{0}, first_{0}, drawn_{0};
  Parameter<float> rate_{0}, correction1_{1}, correction2_{1};
  Future<void> last_line_;
};

}  // namespace troupe::train
