#include <cblas.h>

#include <algorithm>
#include <utility>

#include <troupe/lib/dnn.hpp>

#include "device_host/engine/cpu/library.hpp"
#include "lib/dnn/convolution/cpu.hpp"
#include "lib/dnn/ctc/cpu.hpp"
#include "lib/dnn/graph/cpu.hpp"
#include "lib/dnn/lrn/cpu.hpp"
#include "lib/dnn/rnn/cpu.hpp"
#include "lib/dnn/rnn/lengths.hpp"
#include "lib/dnn/softmax/cpu.hpp"

namespace troupe::host::cpu {
namespace {

class Dnn final : public LibraryHalfOf<Dnn, dnn::Operations> {
 public:
  explicit Dnn(Services& services) : services_(services), convolver_(services.threads()) {
    ::openblas_set_num_threads(std::max(1, services.threads()));
  }
  [[nodiscard]] Dependencies stands_on() const override {
    return {{"oneDNN", dnn::Convolver::version(), dnn::Convolver::symbol()},
            {"OpenBLAS", ::openblas_get_config(), &::openblas_get_config}};
  }

  /// It chooses an algorithm for a convolution whose shape is not cached.
  [[nodiscard]] bool blocks(const OperationInfo& info, const std::byte* op, const Call&) override {
    if (info.opcode != opcode_of<dnn::Convolution>) return false;
    const auto& convolution = *reinterpret_cast<const dnn::Convolution*>(op);
    return convolution.batch > 0 && !convolver_.has(convolution);
  }

  Result<void> run(const dnn::Convolution& op, const Call& call) {
    if (op.batch == 0) return {};
    const dnn::ConvolutionOperands operands{call.at(op.x), call.at(op.w),
                                            op.bias.present() ? call.at(op.bias) : nullptr,
                                            call.at(op.y)};
    auto work = convolver_.prepare(op, operands);
    if (!work) return work.error();
    return services_.submit(call, std::move(*work));
  }
  Result<void> run(const dnn::GraphCall&, const Call& call) {
    std::vector<std::byte*> memory;
    for (const auto& operand : call.tail()) memory.push_back(call.at(operand.range));
    auto work = dnn::work_of(call.data(), std::move(memory), services_.threads());
    if (!work) return work.error();
    return services_.submit(call, std::move(*work));
  }
  Result<void> run(const dnn::Rnn& op, const Call& call) {
    return recur(op, call, dnn::run_rnn,
                 {.x = call.at(op.x),
                  .w = call.at(op.w),
                  .initial = at(op.initial, call),
                  .y = call.at(op.y),
                  .final = at(op.final, call)});
  }
  Result<void> run(const dnn::RnnBackwardData& op, const Call& call) {
    return recur(op, call, dnn::run_rnn_backward_data,
                 {.w = call.at(op.w),
                  .initial = at(op.initial, call),
                  .dy = call.at(op.dy),
                  .dfinal = at(op.dfinal, call),
                  .dx = call.at(op.dx),
                  .dinitial = at(op.dinitial, call)});
  }
  Result<void> run(const dnn::RnnBackwardWeights& op, const Call& call) {
    return recur(op, call, dnn::run_rnn_backward_weights,
                 {.x = call.at(op.x), .initial = at(op.initial, call), .dw = call.at(op.dw)});
  }
  Result<void> run(const dnn::RnnSpace& op, const Call& call) {
    if (auto counted = check_count(op.shape); !counted) return counted;
    return services_.submit(call,
                            [bytes = dnn::rnn_reserve_bytes(op.shape),
                             told = call.at<std::int64_t>(op.reserve_bytes)] { *told = bytes; });
  }

  Result<void> run(const dnn::Softmax& op, const Call& call) {
    return for_type(op.dtype, [&]<class T>(T) {
      return services_.submit(call, [op, x = call.at<const T>(op.x), y = call.at<T>(op.y)] {
        dnn::softmax<T>(op, x, y);
      });
    });
  }
  Result<void> run(const dnn::SoftmaxBackward& op, const Call& call) {
    return for_type(op.dtype, [&]<class T>(T) {
      return services_.submit(
          call, [op, y = call.at<const T>(op.y), dy = call.at<const T>(op.dy),
                 dx = call.at<T>(op.dx)] { dnn::softmax_backward<T>(op, y, dy, dx); });
    });
  }

  Result<void> run(const dnn::Lrn& op, const Call& call) {
    return for_type(op.dtype, [&]<class T>(T) {
      if constexpr (dnn::LrnElement<T>) {
        return services_.submit(call, [op, x = call.at<const T>(op.x), y = call.at<T>(op.y)] {
          dnn::lrn<T>(op, x, y);
        });
      }
      return Result<void>();  // check() lets no other one pass
    });
  }
  Result<void> run(const dnn::LrnBackward& op, const Call& call) {
    return for_type(op.dtype, [&]<class T>(T) {
      if constexpr (dnn::LrnElement<T>) {
        return services_.submit(call, [op, x = call.at<const T>(op.x), y = call.at<const T>(op.y),
                                       dy = call.at<const T>(op.dy), dx = call.at<T>(op.dx)] {
          dnn::lrn_backward<T>(op, x, y, dy, dx);
        });
      }
      return Result<void>();  // check() lets no other one pass
    });
  }

  Result<void> run(const dnn::CtcLoss& op, const Call& call) {
    const dnn::CtcMemory memory{call.at<const float>(op.x),
                                call.at<const std::int32_t>(op.labels),
                                call.at<const std::int32_t>(op.label_lengths),
                                call.at<const std::int32_t>(op.input_lengths),
                                call.at<float>(op.costs),
                                op.gradients.present() ? call.at<float>(op.gradients) : nullptr};
    return services_.submit(call, [op, memory] { dnn::ctc_loss(op, memory); });
  }

 private:
  template <class Run>
  static Result<void> for_type(DType dtype, const Run& run) {
    switch (dtype) {
      case DType::f16: return run(Half{});
      case DType::bf16: return run(BFloat16{});
      case DType::f64: return run(double{});
      default: return run(float{});  // check() lets no other one pass
    }
  }
  static std::byte* at(const Operand& operand, const Call& call) {
    return operand.present() ? call.at(operand) : nullptr;
  }
  static Result<void> check_count(const dnn::RnnShape& shape) {
    if (dnn::can_count(shape)) return {};
    return Error{Errc::unsupported, 0,
                 "dnn.rnn: the cpu engine has batch * time and gates * hidden below 2^31"};
  }
  template <class Op>
  Result<void> recur(const Op& op, const Call& call, void (*compute)(const dnn::RnnWork&),
                     dnn::RnnMemory memory) {
    if (auto counted = check_count(op.shape); !counted) return counted;
    if (op.reserve.present()) {
      if (auto room = dnn::check_reserve(op, dnn::rnn_reserve_bytes(op.shape)); !room) return room;
      memory.reserve = call.at<float>(op.reserve);
    }
    return services_.submit(
        call,
        [compute, work = dnn::RnnWork{op.dtype, op.shape, dnn::rnn_lengths(op.shape, call.data()),
                                      memory}] { compute(work); });
  }

  Services& services_;
  dnn::Convolver convolver_;
};

}  // namespace
}  // namespace troupe::host::cpu

TROUPE_MODULE_HALF(troupe::host::cpu::Dnn, cpu)
