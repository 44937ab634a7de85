#include "model.hpp"

#include <cmath>

namespace troupe::train {

double Shape::flops_of_token() const {
  const Parameters parameters(*this);
  const auto factors = parameters.count - parameters.position_embedding.length;
  return 6.0 * static_cast<double>(factors) +
         12.0 * static_cast<double>(layers * channels) * static_cast<double>(sequence);
}

Place Parameters::add(std::string name, std::int64_t length, double deviation, double value) {
  all.push_back({count, length, deviation, value});
  names.push_back(std::move(name));
  count += length;
  return all.back();
}

Parameters::Parameters(const Shape& shape) {
  // GPT-2's: 0.02, and less where sums of 2 layers' outputs grow.
  constexpr double kDeviation = 0.02;
  const double of_sums = kDeviation / std::sqrt(2 * static_cast<double>(shape.layers));
  const auto c = shape.channels;
  const auto block_since = [this](std::int64_t first, std::int64_t decayed) {
    return Block{first, count - first, decayed};
  };
  token_embedding = add("token embedding", shape.vocabulary * c, kDeviation);
  position_embedding = add("position embedding", shape.sequence * c, kDeviation);
  embeddings = block_since(0, count);
  bytes = {0, kByteTokens * c, 0};
  no_bytes = {bytes.length, token_embedding.length - bytes.length, 0};
  positions = {position_embedding.first, position_embedding.length, 0};
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    const auto first = count;
    const auto prefix = "layer " + std::to_string(layer) + " ";
    auto& of = layers.emplace_back();
    of.qkv = add(prefix + "qkv", 3 * c * c, kDeviation);
    of.projection = add(prefix + "projection", c * c, of_sums);
    of.rise = add(prefix + "MLP rise", 4 * c * c, kDeviation);
    of.fall = add(prefix + "MLP fall", 4 * c * c, of_sums);
    const auto decayed = count - first;
    of.norm1_scale = add(prefix + "norm 1 scale", c, 0, 1);
    of.norm1_bias = add(prefix + "norm 1 bias", c, 0);
    of.qkv_bias = add(prefix + "qkv bias", 3 * c, 0);
    of.projection_bias = add(prefix + "projection bias", c, 0);
    of.norm2_scale = add(prefix + "norm 2 scale", c, 0, 1);
    of.norm2_bias = add(prefix + "norm 2 bias", c, 0);
    of.rise_bias = add(prefix + "MLP rise bias", 4 * c, 0);
    of.fall_bias = add(prefix + "MLP fall bias", c, 0);
    layer_blocks.push_back(block_since(first, decayed));
  }
  const auto first = count;
  final_scale = add("last norm scale", c, 0, 1);
  final_bias = add("last norm bias", c, 0);
  last = block_since(first, 0);
}

}  // namespace troupe::train
