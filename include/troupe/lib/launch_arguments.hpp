#pragma once

#include <array>
#include <cstddef>
#include <cstring>

#include <troupe/lib/kernel.hpp>

namespace troupe::kernel {

/// The arguments of a launch as a kernel or a function gets them, addresses in place. `Call` is
/// that of a device host. Takes no memory: every launch makes one.
class Arguments {
 public:
  template <class Call>
  Arguments(const Inline& given, const Call& call) {
    if (!given.values().empty())
      std::memcpy(values_.data(), given.values().data(), given.values().size());
    std::size_t at = 0;
    for (std::size_t i = 0; i < given.sizes().size(); ++i) {
      addresses_[i] = values_.data() + at;
      at += Inline::padded(given.sizes()[i]);
    }
    for (const auto& part : call.tail()) {
      if ((part.tag & Launch::kSymbol) != 0) continue;
      void* const address = call.at(part.range);
      std::memcpy(static_cast<std::byte*>(addresses_[part.tag & 0xff]) + (part.tag >> 8), &address,
                  sizeof address);
    }
  }
  Arguments(const Arguments&) = delete;  // addresses_ points into it
  Arguments& operator=(const Arguments&) = delete;

  /// An address for each argument.
  [[nodiscard]] void** get() noexcept { return addresses_.data(); }

 private:
  alignas(std::max_align_t) std::array<std::byte, kMaxArgumentBytes> values_;
  std::array<void*, kMaxArguments> addresses_;
};

}  // namespace troupe::kernel
