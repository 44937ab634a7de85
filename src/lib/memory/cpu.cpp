#include <troupe/lib/memory.hpp>

#include <algorithm>
#include <array>
#include <cstring>

#include "device_host/engine/cpu/library.hpp"

namespace troupe::host::cpu {
namespace {

template <std::size_t kBytes>
void fill(std::byte* destination, std::uint64_t count, const std::uint8_t* pattern) {
  std::array<std::uint8_t, kBytes> element{};
  std::memcpy(element.data(), pattern, kBytes);
  auto* elements = reinterpret_cast<std::array<std::uint8_t, kBytes>*>(destination);
  std::fill_n(elements, count, element);
}

std::uint64_t digest(const std::byte* data, std::uint64_t bytes) {
  using memory::Digest;
  std::uint64_t sum = Digest::mix(bytes), place = Digest::kPlace, word = 0;
  for (; bytes >= sizeof word; bytes -= sizeof word, data += sizeof word, place += Digest::kPlace) {
    std::memcpy(&word, data, sizeof word);
    sum += Digest::mix(word + place);
  }
  if (bytes == 0) return sum;
  word = 0;
  std::memcpy(&word, data, bytes);
  return sum + Digest::mix(word + place);
}

class Memory final : public LibraryHalfOf<Memory, memory::Operations> {
 public:
  explicit Memory(Services& services) : services_(services) {}
  Result<void> run(const memory::Fill& op, const Call& call);
  Result<void> run(const memory::Copy& op, const Call& call);
  Result<void> run(const memory::CopyRows& op, const Call& call);
  Result<void> run(const memory::Digest& op, const Call& call);
  Result<void> run(const memory::Flip& op, const Call& call);
  Result<void> run(const memory::StrayWrite& op, const Call& call);

 private:
  Services& services_;
};

Result<void> Memory::run(const memory::Fill& op, const Call& call) {
  return services_.submit(call, [op, destination = call.at(op.destination)] {
    switch (size_of(op.dtype)) {
      case 1: return fill<1>(destination, op.count, op.pattern);
      case 2: return fill<2>(destination, op.count, op.pattern);
      case 4: return fill<4>(destination, op.count, op.pattern);
      case 8: return fill<8>(destination, op.count, op.pattern);
      default: return fill<16>(destination, op.count, op.pattern);
    }
  });
}

Result<void> Memory::run(const memory::Copy& op, const Call& call) {
  return services_.submit(call, [bytes = op.source.bytes, source = call.at(op.source),
                                 destination = call.at(op.destination)] {
    if (bytes != 0) std::memmove(destination, source, bytes);
  });
}

Result<void> Memory::run(const memory::CopyRows& op, const Call& call) {
  return services_.submit(
      call, [op, source = call.at(op.source), destination = call.at(op.destination)] {
        const auto size = size_of(op.dtype), bytes = static_cast<std::size_t>(op.length) * size;
        for (std::int64_t i = 0; i < op.rows && bytes != 0; ++i)
          std::memcpy(destination + static_cast<std::size_t>(i * op.destination_leading) * size,
                      source + static_cast<std::size_t>(i * op.source_leading) * size, bytes);
      });
}

Result<void> Memory::run(const memory::Digest& op, const Call& call) {
  return services_.submit(
      call, [bytes = op.source.bytes, source = call.at(op.source),
             result = call.at<std::uint64_t>(op.result)] { *result = digest(source, bytes); });
}

Result<void> Memory::run(const memory::Flip& op, const Call& call) {
  return services_.submit(call, [bit = op.bit, range = call.at(op.range)] {
    range[bit / 8] ^= std::byte{1} << bit % 8;
  });
}

Result<void> Memory::run(const memory::StrayWrite& op, const Call& call) {
  return run(memory::Flip{op.dtype, op.bit, op.range}, call);
}

}  // namespace
}  // namespace troupe::host::cpu

TROUPE_MODULE_HALF(troupe::host::cpu::Memory, cpu)
