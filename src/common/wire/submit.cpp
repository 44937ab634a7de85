#include <troupe/lib/submit.hpp>

#include <algorithm>
#include <atomic>
#include <complex>
#include <string>

namespace troupe {

bool Scalar::is_zero(DType dtype) const noexcept {
  if (device.present()) return false;
  switch (dtype) {
    case DType::f16:
    case DType::bf16: return (as<Half>().bits & 0x7fff) == 0;
    case DType::f8e4m3:
    case DType::f8e5m2: return (as<Float8E4M3>().bits & 0x7f) == 0;
    case DType::f32: return as<float>() == 0;
    case DType::f64: return as<double>() == 0;
    case DType::c64: return as<std::complex<float>>() == std::complex<float>();
    case DType::c128: return as<std::complex<double>>() == std::complex<double>();
    default: break;
  }
  return std::all_of(value.begin(), value.begin() + static_cast<std::ptrdiff_t>(size_of(dtype)),
                     [](std::byte one) { return one == std::byte{}; });
}

namespace {

std::string named(const OperationInfo& info, const std::string& what) {
  return std::string(info.name) + ": " + what;
}

Result<void> check_extent(const OperationInfo& info, const Parts& parts) {
  if (!parts.tail.empty() && info.tail.empty())
    return Error{Errc::invalid, 0, named(info, "it has no further operands")};
  if (parts.data.size() > info.max_data) {
    return Error{Errc::invalid, 0,
                 named(info, std::to_string(parts.data.size()) + " inline bytes, above " +
                                 std::to_string(info.max_data))};
  }
  for (const auto& part : parts.tail) {
    if (part.access < Access::read || part.access > Access::update)
      return Error{Errc::invalid, 0,
                   named(info, "an operand of its tail is neither read nor written")};
  }
  return {};
}

}  // namespace

Result<void> check_operation(const OperationInfo& info, const std::byte* op, const Parts& parts) {
  if (auto extent = check_extent(info, parts); !extent) return extent;
  if (auto sound = info.check(op); !sound) return sound;
  if (info.check_parts != nullptr) {
    if (auto sound = info.check_parts(op, parts); !sound) return sound;
  }
  if (info.cell != nullptr && (info.operand(op, *info.cell).region & kPinnedRegion) == 0)
    return Error{Errc::invalid, 0, named(info, "its result cell is not in pinned memory")};
  return {};
}

namespace detail {

std::uint32_t next_parameter() noexcept {
  static std::atomic<std::uint32_t> newest{0};
  return ++newest;
}

CommandView::CommandView(const OperationInfo& its_info, std::span<const std::byte> its_op,
                         const Parts& its_parts, const Scope& its_scope) noexcept
    : info(&its_info),
      op(its_op),
      tail(its_parts.tail),
      data(its_parts.data),
      parameters(its_parts.parameters),
      scope(its_scope) {
  for (const auto& operand : info->operands) {
    const auto& range = info->operand(op.data(), operand);
    if (range.present())
      uses_[use_count_++] = {&range, info->access(op.data(), operand), operand.name};
  }
}

Result<ResultCell> Submitter::result_cell(std::size_t) {
  return Error{Errc::unsupported, 0, "no value comes back from another rank's device"};
}

Error with_names(Error error, const Submitter& submitter, const OperationInfo& info,
                 std::span<const std::byte> op) {
  std::string names;
  for (const auto& operand : info.operands) {
    const auto& range = info.operand(op.data(), operand);
    if (!range.present()) continue;
    if (const auto name = submitter.name_of(range); !name.empty())
      names += (names.empty() ? "" : ", ") + std::string(operand.name) + " is " + name;
  }
  if (!names.empty()) error.message += " (" + names + ")";
  return error;
}

Future<void> submit(Submitter& submitter, const OperationInfo& info, std::span<const std::byte> op,
                    const Parts& parts, const Scope& scope) {
  if (const auto sound = check_operation(info, op.data(), parts); !sound)
    return submitter.refuse_collective(with_names(sound.error(), submitter, info, op), scope);
  const CommandView command(info, op, parts, scope);
  const auto apart = check_overlap(info.name, info.in_place, command.uses(), info.tail, parts.tail);
  return apart.ok()
             ? submitter.submit(command)
             : submitter.refuse_collective(with_names(apart.error(), submitter, info, op), scope);
}

Future<void> submit_exact(Submitter& submitter, const OperationInfo& info,
                          std::span<const std::byte> op, std::span<const Length> lengths,
                          const Scope& scope, const Parts& parts) {
  const auto wrong = std::find_if(lengths.begin(), lengths.end(),
                                  [](const Length& one) { return one.is != one.needed; });
  if (wrong == lengths.end()) return submit(submitter, info, op, parts, scope);
  const Error error{Errc::invalid, 0,
                    std::string(info.name) + ": " + std::string(wrong->name) + " has " +
                        std::to_string(wrong->is) + " elements, not " +
                        std::to_string(wrong->needed)};
  return submitter.refuse_collective(with_names(error, submitter, info, op), scope);
}

}  // namespace detail
}  // namespace troupe
