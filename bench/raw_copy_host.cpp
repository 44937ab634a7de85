#include <cstring>
#include <vector>

#include "raw_copy.hpp"

namespace troupe::bench {
namespace {

class HostCopy final : public RawCopy {
 public:
  explicit HostCopy(std::uint64_t bytes) : source_(bytes, 1), destination_(bytes, 2) {}
  void run() override { std::memcpy(destination_.data(), source_.data(), source_.size()); }

 private:
  std::vector<char> source_, destination_;
};

}  // namespace

std::unique_ptr<RawCopy> make_host_copy(std::uint64_t bytes) {
  return std::make_unique<HostCopy>(bytes);
}

#ifndef TROUPE_HAVE_CUDA
std::unique_ptr<RawCopy> RawCopy::make(const DeviceInfo&, std::uint64_t bytes) {
  return make_host_copy(bytes);
}
#endif

}  // namespace troupe::bench
