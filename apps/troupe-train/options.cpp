#include "options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "check.hpp"
#include "program_options.hpp"
#include "text.hpp"

namespace troupe::train {
namespace {

using app::bad;
using app::on_the_way;

struct Preset {
  const char* name;
  Shape shape;
};
/// tiny is nanoGPT's example for a CPU, the others are GPT-2's. nanoGPT:
/// https://github.com/karpathy/nanoGPT
constexpr Preset kPresets[] = {{"tiny", {4, 4, 128, 64, kByteTokens}},
                               {"gpt2", {12, 12, 768, 1024, kByteTokens}},
                               {"gpt2-medium", {24, 16, 1024, 1024, kByteTokens}},
                               {"gpt2-large", {36, 20, 1280, 1024, kByteTokens}},
                               {"gpt2-xl", {48, 25, 1600, 1024, kByteTokens}}};

/// A number of the model's shape.
OptionSpec of_shape(const char* name, const char* help, const char* maximum) {
  return {name, OptionType::integer, "model", "N", help, {"model"}, "1", maximum};
}

Result<Shape> parse_shape(const Config& config) {
  const auto preset = std::find_if(std::begin(kPresets), std::end(kPresets), [&](const auto& one) {
    return one.name == config.text("model");
  });
  Shape shape = preset->shape;
  for (const auto& [name, number] :
       {std::pair{"layers", &shape.layers}, std::pair{"heads", &shape.heads},
        std::pair{"channels", &shape.channels}, std::pair{"sequence", &shape.sequence}}) {
    if (config.text(name) != "model") *number = config.integer(name);
  }
  shape.vocabulary = config.integer("vocabulary");
  if (shape.channels % 8 != 0)
    return bad("channels", fmt::format("{} is no multiple of 8", shape.channels));
  if (shape.channels % shape.heads != 0)
    return bad("heads",
               fmt::format("{} heads cannot share {} channels", shape.heads, shape.channels));
  if (shape.vocabulary % 8 != 0)
    return bad("vocabulary", fmt::format("{} is no multiple of 8", shape.vocabulary));
  const auto head = shape.head_size();
  if (config.text("dtype") == "bf16" && (head % 8 != 0 || head > 128))
    return bad("dtype", fmt::format("attention in bf16 wants heads of 8, 16, ... 128 channels, "
                                    "not {}",
                                    head));
  return shape;
}

}  // namespace

double Options::learning_rate_of(std::int64_t step) const {
  if (step < warmup)
    return learning_rate * static_cast<double>(step + 1) / static_cast<double>(warmup);
  if (decay_steps == 0) return learning_rate;
  const double along = static_cast<double>(step - warmup) /
                       static_cast<double>(std::max<std::int64_t>(1, decay_steps - warmup));
  const double high = (1 + std::cos(std::numbers::pi * std::min(1.0, along))) / 2;
  return learning_rate * (0.1 + 0.9 * high);
}

std::vector<OptionSpec> option_specs() {
  using enum OptionType;
  std::vector<std::string> models;
  for (const auto& preset : kPresets) models.emplace_back(preset.name);
  return {
      {"model", text, "tiny", "NAME", "the shape of a model that is known", models},
      of_shape("layers", "another number of layers", "1000"),
      of_shape("heads", "another number of heads", "1000"),
      of_shape("channels", "other channels; a multiple of 8 and of the heads", "12288"),
      of_shape("sequence", "another number of positions", "65536"),
      {"vocabulary",
       integer,
       "256",
       "N",
       "tokens; those beyond the 256 bytes are in no text. A multiple of 8",
       {},
       "256",
       "1000000"},
      // The saved state has the number of all ranks together, which is what shapes the result.
      on_the_way(
          {"batch", integer, "8", "N", "sequences of each rank in a step", {}, "1", "65536"}),
      on_the_way({"steps",
                  integer,
                  "100",
                  "N",
                  "steps of the optimiser",
                  {},
                  "1",
                  std::to_string(kMostSteps)}),
      {"learning-rate", real, "0.001", "X", "AdamW's, after the warm-up", {}, "0", "1"},
      {"warmup", integer, "10", "N", "steps in which the learning rate rises", {}, "0"},
      {"decay-steps",
       integer,
       "0",
       "N",
       "step at which the learning rate has fallen to a tenth, as a cosine; 0: it stays",
       {},
       "0"},
      {"weight-decay", real, "0.1", "X", "AdamW's, of weights and embeddings", {}, "0", "1"},
      {"grad-clip", real, "1", "X", "largest norm of all gradients together; 0: any", {}, "0"},
      {"dtype",
       text,
       "f32",
       "f32|bf16",
       "type of activations and products; parameters, their gradients and the optimiser are f32",
       {"f32", "bf16"}},
      {"text", file, "", "FILE", "what is learnt, any bytes; none: a text of the program's"},
      on_the_way({"commit-every",
                  integer,
                  "50",
                  "N",
                  "steps from commit to commit of the state",
                  {},
                  "1"}),
      on_the_way({"log-every", integer, "10", "N", "steps from line to line; 0: none", {}, "0"}),
      on_the_way({"record", flag, "on", "on|off",
                  "run recorded sequences, instead of the calls one by one"}),
      on_the_way({"check-gradients", flag, "off", "on|off",
                  "first compare the gradients with those of a host program; for small models"}),
      on_the_way({"json", text, "", "FILE", "write the report as JSON"}),
      fault_option(),
  };
}

Result<Options> parse_options(const Config& config) {
  Options options;
  options.model = config.text("model");
  const auto shape = parse_shape(config);
  if (!shape) return shape.error();
  options.shape = *shape;
  options.batch = config.integer("batch");
  options.steps = config.integer("steps");
  options.learning_rate = config.real("learning-rate");
  options.warmup = config.integer("warmup"), options.decay_steps = config.integer("decay-steps");
  options.weight_decay = config.real("weight-decay"), options.grad_clip = config.real("grad-clip");
  if (options.grad_clip > 0 && static_cast<float>(options.grad_clip) == 0)
    return bad("grad-clip",
               fmt::format("{:g} is 0 in f32, which means any norm", options.grad_clip));
  options.seed = static_cast<std::uint64_t>(config.integer("seed"));
  options.dtype = config.text("dtype") == "f32" ? DType::f32 : DType::bf16;
  options.text = config.text("text");
  options.commit_every = config.integer("commit-every");
  options.log_every = config.integer("log-every");
  options.record = config.flag("record"), options.check_gradients = config.flag("check-gradients");
  options.json = config.text("json");
  auto faults = ordered_faults(config);
  if (!faults) return faults.error();
  options.faults = std::move(*faults);
  for (const auto& fault : options.faults) {
    if (fault.iteration >= options.steps)
      return bad("fault",
                 fmt::format("there is no step {} among {}", fault.iteration, options.steps));
  }
  if (options.check_gradients && !may_be_checked(options))
    return bad("check-gradients", "the model and the batch are too large for the host program");
  if (!options.text.empty()) {
    const auto read = read_text(options.text);
    if (!read) return Error{Errc::invalid, 0, "--text: " + read.error().message};
    if (std::ssize(*read) <= options.shape.sequence)
      return bad("text", fmt::format("{}: {} bytes, and a sequence takes {}", options.text,
                                     read->size(), options.shape.sequence + 1));
  }
  return options;
}

}  // namespace troupe::train
