#include <memory>

#include <troupe/lib/function.hpp>
#include <troupe/lib/launch_arguments.hpp>

#include "device_host/engine/cpu/library.hpp"
#include "lib/function/loaded.hpp"

namespace troupe::host::cpu {
namespace {

class FunctionHalf final : public LibraryHalfOf<FunctionHalf, functions::Operations> {
 public:
  explicit FunctionHalf(Services& services) : services_(services) {}

  Result<void> run(const functions::Call& op, const Call& call) {
    const auto given =
        kernel::Inline::parse(op.kName, op.extent(), Parts(call.tail(), call.data()));
    if (!given) return given.error();
    const auto function = loaded_.find(given->symbol(0), op.library_id, given->name());
    if (!function) return function.error();
    if (auto fits = functions::check_arguments(*function, *given); !fits) return fits.error();
    // The record is gone when the function runs.
    const std::vector<std::uint32_t> sizes(given->sizes().begin(), given->sizes().end());
    auto arguments = std::make_shared<kernel::Arguments>(*given, call);
    return services_.submit(
        call, [function = *function, sizes, arguments, name = std::string(given->name()),
               status = call.at<std::int32_t>(op.status)] {
          const FunctionCall made{nullptr, arguments->get(), sizes.data(),
                                  static_cast<unsigned>(sizes.size())};
          *status = function(&made);
        });
  }

 private:
  Services& services_;
  functions::Loaded loaded_;
};

}  // namespace
}  // namespace troupe::host::cpu

TROUPE_MODULE_HALF(troupe::host::cpu::FunctionHalf, cpu)
