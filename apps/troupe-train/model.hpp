#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::train {

/// How large a GPT-2 is (Radford et al., "Language Models are Unsupervised Multitask Learners",
/// 2019): a decoder with learned position embeddings, layer norms before attention and MLP and at
/// the end, an MLP of four times the channels with GELU, and token embeddings that are the weights
/// of the output, too.
struct Shape {
  std::int64_t layers = 0, heads = 0, channels = 0;
  std::int64_t sequence = 0;    ///< positions
  std::int64_t vocabulary = 0;  ///< tokens are bytes; from 256 on there is none in any text

  [[nodiscard]] std::int64_t head_size() const { return channels / heads; }
  /// Of a forward and a backward pass: 6 for each parameter that is a factor, and 12 layers
  /// channels sequence for attention. Sources: Kaplan et al., "Scaling Laws for Neural Language
  /// Models", 2020, section 2.1; Chowdhery et al., "PaLM", 2022, appendix B, which adds attention
  /// and, as is usual, counts all of the sequence although a causal mask hides half of it.
  [[nodiscard]] double flops_of_token() const;
};

inline constexpr std::int64_t kByteTokens = 256;  ///< tokens that there are in texts

/// A range of elements in the buffer of all parameters. Those of gradients and of the optimiser's
/// moments lie in their buffers in the same way.
struct Place {
  std::int64_t first = 0, length = 0;
  /// What the parameters begin with: normal numbers of this deviation or, if that is 0, `value`.
  double deviation = 0, value = 0;
};

/// Weights are row-major, a row for each output.
struct LayerPlaces {
  Place qkv, projection, rise, fall;  ///< weights: 3 C x C, C x C, 4 C x C, C x 4 C
  Place norm1_scale, norm1_bias, qkv_bias, projection_bias;
  Place norm2_scale, norm2_bias, rise_bias, fall_bias;
};

/// What is reduced over ranks, and updated, at once.
struct Block {
  std::int64_t first = 0, length = 0;
  std::int64_t decayed = 0;  ///< so many from the first on: weights and embeddings
};

/// Where the parameters are. A layer has those to which weight decay applies first.
struct Parameters {
  explicit Parameters(const Shape& shape);

  Place token_embedding, position_embedding;  ///< vocabulary x C, sequence x C
  std::vector<LayerPlaces> layers;
  Place final_scale, final_bias;
  Block embeddings, last;  ///< `last`: those of the last norm
  /// Parts of `embeddings`: of the tokens that are in texts, of the others, of positions. The
  /// others' gradients are there first: the output makes all of them.
  Block bytes, no_bytes, positions;
  std::vector<Block> layer_blocks;
  std::vector<Place> all;          ///< in order
  std::vector<std::string> names;  ///< of these
  std::int64_t count = 0;

 private:
  Place add(std::string name, std::int64_t length, double deviation, double value = 0);
};

}  // namespace troupe::train
