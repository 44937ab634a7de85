#include <troupe/lib/kernel.hpp>
#include <troupe/lib/operation_table.hpp>

#include <algorithm>

#include "common/wire/checker.hpp"

namespace troupe::kernel {

using wire::checker;

namespace {

Error wrong(std::string_view op, std::string what) {
  return {Errc::invalid, 0, std::string(op) + ": " + std::move(what)};
}

}  // namespace

Result<void> Describe::check() const {
  return checker(*this)
      .holds("image", image, 1, 8)
      .require(threads <= 1024, "a block has at most 1024 threads")
      .holds("facts", facts, sizeof(Facts) / 8, 8)
      .result();
}

Result<void> Describe::check_parts(const Parts& parts) const {
  if (parts.data.empty()) return wrong(kName, "it names no kernel");
  return {};
}

namespace {

/// What a launch has in common with one on another rank's device.
template <class Op>
auto checks_of(const Op& op) {
  auto checks = checker(op);
  checks.require(op.cooperative <= 1, "unknown cooperative")
      .require(op.name_bytes > 0 && op.name_bytes <= kMaxNameBytes, "the kernel's name is too long")
      .require(op.arguments <= kMaxArguments, "it has more than 128 arguments")
      .require(op.symbol_bytes <= Op::kData, "the names of its variables are too long");
  for (int i = 0; i < 3; ++i)
    checks.require(op.grid[i] > 0 && op.block[i] > 0, "a grid or a block is empty");
  return checks;
}

}  // namespace

Result<void> Launch::check() const {
  return checks_of(*this).holds("image", image, 1, 8).result();
}

Result<void> LaunchThere::check() const {
  return checks_of(*this)
      .require(symbol_bytes == 0, "variables are those of the other rank")
      .result();
}

Result<void> Launch::check_parts(const Parts& parts) const {
  const auto parsed = Inline::parse(kName, extent(), parts);
  return parsed.ok() ? Result<void>() : parsed.error();
}

// It runs several times for each launch, so it takes no memory.
Result<Inline> Inline::parse(std::string_view operation, const InlineExtent& extent,
                             const Parts& parts) {
  auto left = parts.data;
  bool whole = true;
  const auto take = [&](std::size_t bytes) {
    whole &= padded(bytes) <= left.size();
    if (!whole) return std::span<const std::byte>();
    const auto taken = left.first(bytes);
    left = left.subspan(padded(bytes));
    return taken;
  };
  const auto text = [](std::span<const std::byte> bytes) {
    return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  Inline all;
  all.name_ = text(take(extent.name_bytes));
  const auto sizes = take(extent.arguments * sizeof(std::uint32_t));
  all.sizes_ = {reinterpret_cast<const std::uint32_t*>(sizes.data()),
                sizes.size() / sizeof(std::uint32_t)};
  std::size_t bytes = 0;
  for (const auto size : all.sizes_) bytes += padded(size);
  all.values_ = take(bytes);
  all.symbols_ = text(take(extent.symbol_bytes));
  if (!whole || !left.empty()) return wrong(operation, "its arguments are not as long as said");
  if (bytes > kMaxArgumentBytes) return wrong(operation, "its arguments are too long");
  if (!all.symbols_.empty() && all.symbols_.back() != '\0')
    return wrong(operation, "the names of its variables are malformed");
  for (const auto& part : parts.tail) {
    if (!part.range.present()) return wrong(operation, "a buffer is missing");
    if ((part.tag & Launch::kSymbol) != 0) {
      if (part.written() || all.symbol(part.tag & ~Launch::kSymbol).empty())
        return wrong(operation, "an operand stands for no variable");
      continue;
    }
    const std::size_t index = part.tag & 0xff, offset = part.tag >> 8;
    if (index >= all.sizes_.size() || offset + sizeof(void*) > all.sizes_[index])
      return wrong(operation, "the address of a buffer lies outside of its argument");
  }
  return all;
}

std::vector<std::byte> Inline::pack(std::string_view name, std::span<const std::uint32_t> sizes,
                                    std::span<const std::byte> values, std::string_view symbols) {
  std::vector<std::byte> data;
  data.reserve(padded(name.size()) + padded(sizes.size_bytes()) + padded(values.size()) +
               padded(symbols.size()));
  for (const auto part : {std::as_bytes(std::span(name)), std::as_bytes(sizes), values,
                          std::as_bytes(std::span(symbols))}) {
    data.insert(data.end(), part.begin(), part.end());
    data.resize(padded(data.size()));
  }
  return data;
}

std::string_view Inline::symbol(std::size_t index) const noexcept {
  auto left = symbols_;
  for (; index != 0 && !left.empty(); --index) left.remove_prefix(left.find('\0') + 1);
  return left.substr(0, std::min(left.find('\0'), left.size()));
}

std::span<const OperationInfo* const> operations() noexcept {
  return tables_of(Operations{});
}

}  // namespace troupe::kernel
