#include <troupe/lib/function.hpp>
#include <troupe/lib/launch_arguments.hpp>

#include "device_host/engine/cuda/library.hpp"
#include "lib/function/loaded.hpp"

namespace troupe::host::cuda {
namespace {

class FunctionHalf final : public LibraryHalfOf<FunctionHalf, functions::Operations> {
 public:
  explicit FunctionHalf(Services& services) : services_(services) {}

  /// The first call loads the library, and its kernels.
  [[nodiscard]] bool blocks(const OperationInfo&, const std::byte* bytes,
                            const Call& call) override {
    const auto& op = *reinterpret_cast<const functions::Call*>(bytes);
    if (op.only_queues == 0) return true;
    const auto given =
        kernel::Inline::parse(op.kName, op.extent(), Parts(call.tail(), call.data()));
    return given.ok() && !loaded_.has(given->symbol(0), given->name());
  }

  Result<void> run(const functions::Call& op, const Call& call) {
    const auto given =
        kernel::Inline::parse(op.kName, op.extent(), Parts(call.tail(), call.data()));
    if (!given) return given.error();
    const auto function = loaded_.find(given->symbol(0), op.library_id, given->name());
    if (!function) return function.error();
    if (auto fits = functions::check_arguments(*function, *given); !fits) return fits.error();
    kernel::Arguments arguments(*given, call);
    const FunctionCall made{services_.stream(call.queue()), arguments.get(), given->sizes().data(),
                            static_cast<unsigned>(given->sizes().size())};
    const auto returned = (*function)(&made);
    // Else a later call trips over what the function has left.
    if (const auto left = cudaGetLastError(); left != cudaSuccess) {
      const auto error = error_of(left, "function.call");
      if (error.code == Errc::device_lost || error.code == Errc::device_failed) return error;
    }
    if (returned != 0 && services_.records())
      return Error{Errc::unsupported, returned, "function.call: the function does not succeed"};
    // Nothing else uses the cell, so it need not wait for the stream.
    std::memcpy(call.at(op.status), &returned, sizeof returned);
    return {};
  }

 private:
  Services& services_;
  functions::Loaded loaded_;
};

}  // namespace
}  // namespace troupe::host::cuda

TROUPE_MODULE_HALF(troupe::host::cuda::FunctionHalf, cuda)
