#include <troupe/lib/file.hpp>
#include <troupe/lib/operation_table.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <system_error>

#include "common/core/mix.hpp"
#include "common/wire/checker.hpp"

namespace troupe::file {

using wire::checker;

namespace {

constexpr int kMostLinks = 40;  // the kernel's limit of symbolic links in one path

std::uint64_t hash_of(const struct stat& inode, std::string_view name = {}) {
  Mix mix;
  mix.add(inode.st_dev);
  mix.add(inode.st_ino);
  mix.add(std::as_bytes(std::span(name)));
  return mix.value();
}

bool is_outside_if_any(const Operand& operand) {
  return !operand.present() || outside::is_outside(operand);
}

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 62;  // of a file

template <class Op>
Result<void> check_transfer(const Op& op, std::string_view name, const Operand& range) {
  return checker(op)
      .require(range.present(), std::string(name) + " is missing")
      .require((range.region & kPinnedRegion) == 0, std::string(name) + " is no device memory")
      .require(op.on_failure <= OnFailure::report, "unknown on_failure")
      .require(op.path_bytes > 0 && op.path_bytes <= Op::kData, "the path is too long, or empty")
      .require(op.offset <= kMostBytes && range.bytes <= kMostBytes, "it is beyond any file")
      .require(is_outside_if_any(op.inode) && is_outside_if_any(op.place),
               "its file is taken for memory")
      .holds("done", op.done, 1, sizeof(Done))
      .result();
}

template <class Op>
Result<void> check_path(const Op& op, const Parts& parts) {
  const bool there = parts.data.size() >= op.path_bytes;
  const auto path = parts.data.first(there ? op.path_bytes : 0);
  return checker(op)
      .require(there, "its path is missing")
      .require(there && path[0] == std::byte{'/'} &&
                   std::find(path.begin(), path.end(), std::byte{0}) == path.end(),
               "its path is not absolute")
      .result();
}

template <class Op>
Result<void> judge(const Op& op, const std::byte* cell) {
  Done done;
  std::memcpy(&done, cell, sizeof done);
  if (done.error == 0 || op.on_failure == OnFailure::report) return {};
  return Error{Errc::io, done.error, std::string(Op::kName) + ": " + std::string(done.words())};
}

}  // namespace

Result<void> Write::check() const {
  return check_transfer(*this, "source", source);
}
Result<void> Write::check_parts(const Parts& parts) const {
  return check_path(*this, parts);
}
Result<void> Write::verdict(const std::byte* cell) const {
  return judge(*this, cell);
}

Result<void> Read::check() const {
  return check_transfer(*this, "destination", destination);
}
Result<void> Read::check_parts(const Parts& parts) const {
  return check_path(*this, parts);
}
Result<void> Read::verdict(const std::byte* cell) const {
  return judge(*this, cell);
}

Touched touched_by(const std::filesystem::path& path) {
  std::error_code failed;
  auto at = path;
  struct stat inode {};
  int links = 0;
  for (; ::lstat(at.c_str(), &inode) == 0 && S_ISLNK(inode.st_mode) && links < kMostLinks;
       ++links) {
    const auto target = std::filesystem::read_symlink(at, failed);
    if (failed) break;
    at = at.parent_path() / target;
  }
  struct stat folder {};
  const auto parent = at.parent_path();
  if (links == kMostLinks || failed || ::stat(parent.empty() ? "." : parent.c_str(), &folder) != 0)
    return {.inode = {}, .place = outside::everything()};
  Touched touched{.inode = {}, .place = outside::thing(hash_of(folder, at.filename().native()))};
  if (::stat(at.c_str(), &inode) == 0) touched.inode = outside::thing(hash_of(inode));
  return touched;
}

std::span<const OperationInfo* const> operations() noexcept {
  return tables_of(Operations{});
}

}  // namespace troupe::file
