#include <troupe/lib/function.hpp>
#include <troupe/lib/operation_table.hpp>

#include "common/ipc/code_file.hpp"
#include "common/wire/checker.hpp"

namespace troupe {
namespace functions {

using wire::checker;

namespace {

/// What a call has in common with one on another rank's device.
template <class Op>
auto checks_of(const Op& op) {
  auto checks = checker(op);
  checks
      .require(op.name_bytes > 0 && op.name_bytes <= kernel::kMaxNameBytes, "its name is too long")
      .require(op.path_bytes > 1 && op.path_bytes <= Op::kData, "the library's path is too long")
      .require(op.arguments <= kernel::kMaxArguments, "it has more than 128 arguments");
  return checks;
}

Result<void> check_inline(std::string_view name, const kernel::InlineExtent& extent,
                          const Parts& parts) {
  const auto parsed = kernel::Inline::parse(name, extent, parts);
  if (!parsed.ok()) return parsed.error();
  for (const auto& part : parts.tail) {
    if ((part.tag & kernel::Launch::kSymbol) != 0)
      return Error{Errc::invalid, 0, std::string(name) + ": a buffer for no argument"};
  }
  return {};
}

}  // namespace

Result<void> Call::check() const {
  return checks_of(*this)
      .require(only_queues <= 1, "unknown only_queues")
      .require(
          !touches.present() || (outside::is_outside(touches) && touches.bytes == outside::kEnd),
          "what it touches outside is taken for memory")
      .holds("status", status, 1, sizeof(std::int32_t))
      .result();
}
Result<void> Call::check_parts(const Parts& parts) const {
  return check_inline(kName, extent(), parts);
}
Result<void> CallThere::check() const {
  return checks_of(*this).require(repeatable <= 1, "unknown repeatable").result();
}
Result<void> CallThere::check_parts(const Parts& parts) const {
  return check_inline(kName, extent(), parts);
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
  if constexpr (Op::kTraits.repeatable) op.touches = {};
  return detail::then_at_once(detail::submit_for_value<std::int32_t>(submitter, op, parts),
                              [](std::int32_t) {});
}

/// The call as it is made; `path` ends with a zero.
template <class Op>
Op call_of(const std::string& name, const std::string& path,
           const detail::LaunchArguments& arguments) {
  Op op;
  op.name_bytes = static_cast<std::uint32_t>(name.size());
  op.arguments = static_cast<std::uint32_t>(arguments.sizes().size());
  op.path_bytes = static_cast<std::uint32_t>(path.size());
  return op;
}

}  // namespace

std::shared_ptr<const LibraryFile> library_file(const std::string& path) {
  auto file = std::make_shared<LibraryFile>();
  file->path = ipc::code_path(path);
  const auto kept = ipc::keep_code(file->path);
  if (kept.ok()) {
    file->id[0] = kept->content.low, file->id[1] = kept->content.high;
  } else {
    file->found = kept.error();
  }
  return file;
}

namespace {

/// A call with the library's file in it; nothing where that cannot be used.
Result<Call> with_library(Call call, const LibraryFile& file) {
  if (!file.found.ok()) {
    auto error = file.found.error();
    error.message = std::string(Call::kName) + ": " + error.message;
    return error;
  }
  call.library_id[0] = file.id[0], call.library_id[1] = file.id[1];
  return call;
}

}  // namespace

Future<void> submit_here(detail::Submitter& submitter, const CallThere& op, const Parts& parts) {
  const auto given = kernel::Inline::parse(CallThere::kName, op.extent(), parts);
  if (!given) return submitter.refuse(given.error());
  Call call;
  call.name_bytes = op.name_bytes, call.arguments = op.arguments, call.path_bytes = op.path_bytes;
  const auto known = with_library(call, *library_file(std::string(given->symbol(0))));
  if (!known) return submitter.refuse(known.error());
  return op.repeatable != 0 ? submit_as<RepeatableCall>(submitter, *known, parts)
                            : submit_as<Call>(submitter, *known, parts);
}

}  // namespace functions

namespace {

/// The path of its library, ended by a zero.
std::string path_of(const Function& which) {
  return (which.library() != nullptr ? which.library()->path : std::string()) + '\0';
}

}  // namespace

Future<void> Functions::submit(const Function& which,
                               const detail::LaunchArguments& arguments) const {
  const auto path = path_of(which);
  auto op = functions::call_of<functions::Call>(which.name(), path, arguments);
  if (which.library() != nullptr) {
    const auto known = functions::with_library(op, *which.library());
    if (!known) return submitter_->refuse(known.error());
    op = *known;
  }
  op.only_queues = which.options().only_queues ? 1 : 0;
  const auto data = kernel::Inline::pack(which.name(), arguments.sizes(), arguments.bytes(), path);
  std::vector<InlineParameter> parameters(arguments.parameters().begin(),
                                          arguments.parameters().end());
  const auto values_at = kernel::Inline::padded(which.name().size()) +
                         kernel::Inline::padded(arguments.sizes().size_bytes());
  for (auto& one : parameters) one.offset += static_cast<std::uint32_t>(values_at);
  Parts parts(arguments.buffers(), data);
  parts.parameters = parameters;
  return which.options().repeatable
             ? functions::submit_as<functions::RepeatableCall>(*submitter_, op, parts)
             : functions::submit_as<functions::Call>(*submitter_, op, parts);
}

Future<void> Functions::submit_there(detail::Submitter& there, const Function& which,
                                     const detail::LaunchArguments& arguments) {
  const auto path = path_of(which);
  auto op = functions::call_of<functions::CallThere>(which.name(), path, arguments);
  op.repeatable = which.options().repeatable ? 1 : 0;
  const auto data = kernel::Inline::pack(which.name(), arguments.sizes(), arguments.bytes(), path);
  return detail::submit(there, op, Parts(arguments.buffers(), data));
}

std::span<const OperationInfo* const> functions::operations() noexcept {
  return tables_of(Operations{});
}

}  // namespace troupe
