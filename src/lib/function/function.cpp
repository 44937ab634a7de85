#include <troupe/lib/function.hpp>

#include "common/wire/checker.hpp"

namespace troupe {
namespace function {

using wire::checker;

Result<void> Call::check() const {
  return checker(*this)
      .require(name_bytes > 0 && name_bytes <= kernel::kMaxNameBytes, "its name is too long")
      .require(path_bytes > 1 && path_bytes <= kData, "the library's path is too long")
      .require(arguments <= kernel::kMaxArguments, "it has more than 128 arguments")
      .holds("status", status, 1, sizeof(std::int32_t))
      .result();
}

Result<void> Call::check_parts(const Parts& parts) const {
  const auto parsed = kernel::Inline::parse(kName, extent(), parts);
  if (!parsed.ok()) return parsed.error();
  for (const auto& part : parts.tail) {
    if ((part.tag & kernel::Launch::kSymbol) != 0)
      return Error{Errc::invalid, 0, std::string(kName) + ": a buffer for no argument"};
  }
  return {};
}

Result<void> Call::verdict(const std::byte* cell) const {
  std::int32_t returned = 0;
  std::memcpy(&returned, cell, sizeof returned);
  if (returned == 0) return {};
  return Error{Errc::library, returned,
               std::string(kName) + ": the function has returned " + std::to_string(returned)};
}

namespace {

template <class Op>
Future<void> submit_as(detail::Submitter& submitter, const Call& call, const Parts& parts) {
  Op op;
  static_cast<Call&>(op) = call;
  return detail::submit_for_value<std::int32_t>(submitter, op, parts).then([](std::int32_t) {});
}

}  // namespace
}  // namespace function

Future<void> Functions::submit(const Function& which, const detail::LaunchArguments& arguments) {
  const auto path = which.path_ + '\0';
  function::Call op;
  op.name_bytes = static_cast<std::uint32_t>(which.name_.size());
  op.arguments = static_cast<std::uint32_t>(arguments.sizes().size());
  op.path_bytes = static_cast<std::uint32_t>(path.size());
  const auto data = kernel::Inline::pack(which.name_, arguments.sizes(), arguments.bytes(), path);
  const Parts parts(arguments.buffers(), data);
  return which.options_.repeatable
             ? function::submit_as<function::RepeatableCall>(*submitter_, op, parts)
             : function::submit_as<function::Call>(*submitter_, op, parts);
}

}  // namespace troupe
