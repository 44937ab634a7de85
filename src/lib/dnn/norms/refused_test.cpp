#include <troupe/lib/dnn.hpp>

#include <string>

#include "conformance.hpp"

namespace troupe::test {
namespace {

/// What a norm that cannot be is refused with.
class DnnNormRefused : public ::testing::Test {
 protected:
  static void refuses(const std::string& why, const Future<void>& call) {
    const Result<void> refused = call.wait();
    ASSERT_EQ(refused.code(), Errc::invalid) << why;
    EXPECT_NE(refused.error().message.find(why), std::string::npos) << refused.error().message;
    (void)device().take_error();
  }
  /// A norm of x by scale and bias, with memory for y alone.
  void refuses_graph(const std::string& why, dnn::Norm which, const dnn::Layout& x,
                     const dnn::Layout& scale, const dnn::Layout& bias, float epsilon = 1e-5f,
                     bool averages = false) {
    dnn::Graph graph;
    const auto x_in = graph.input(DType::f32, x), scale_in = graph.input(DType::f32, scale);
    const auto bias_in = bias.extents.size() == 1 ? dnn::TensorId() : graph.input(DType::f32, bias);
    const dnn::Running running{averages ? scale_in : dnn::TensorId(), {}};
    const auto made =
        dnn::norm(graph, which, x_in, scale_in, bias_in, epsilon, dnn::Phase::inference, running);
    if (made.y.present()) graph.output(made.y, DType::f32);
    refuses(why, dnn::on(device()).run(graph, {{x_in, ref}, {scale_in, ref}, {made.y, y}}));
  }
  GpuRef<float> ref = device().alloc<float>(64), y = device().alloc<float>(64);
};

TEST_F(DnnNormRefused, WhatCannotBe) {
  const dnn::Layout absent{1}, x{2, 8, 2, 2}, channels{1, 8, 1, 1};
  refuses_graph("different numbers of dimensions", dnn::Norm::layer, x, {1, 8}, {1, 8});
  refuses_graph("neither that of x nor 1", dnn::Norm::layer, x, {1, 4, 1, 1}, channels);
  refuses_graph("does not have extents 1, channels, 1", dnn::Norm::instance, x, {1, 8, 2, 1},
                channels);
  refuses_graph("bias has other extents than scale", dnn::Norm::layer, x, channels, {1, 8, 2, 2});
  refuses_graph("only an rms norm may lack bias", dnn::Norm::layer, x, channels, absent);
  refuses_graph("epsilon is no constant, or negative", dnn::Norm::layer, x, channels, channels,
                -1.0f);
  refuses_graph("running averages are not complete", dnn::Norm::batch, x, channels, channels, 1e-5f,
                true);
  refuses_graph("one element for each channel", dnn::Norm::batch, channels, channels, channels);
  auto on_device = dnn::on(device());
  refuses("as many elements as some rows of scale",
          on_device.layer_norm(ref, ref.slice(0, 24), ref.slice(0, 24), y));
  refuses("the groups do not divide the channels",
          on_device.group_norm(ref, ref, ref, y, {.channels = 64, .spatial = {1}}, {.groups = 3}));
  refuses("more than 3 spatial dimensions",
          on_device.instance_norm(ref, ref, ref, y, {.channels = 1, .spatial = {1, 1, 1, 1}}));
  refuses("needs 2 elements, has 1",
          on_device.layer_norm_backward(ref, ref, ref.slice(0, 32), {ref.slice(0, 1), ref}, y,
                                        device().alloc<float>(32), device().alloc<float>(32)));
}

}  // namespace
}  // namespace troupe::test
