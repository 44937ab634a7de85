#pragma once

#include <sys/types.h>

#include <string>

#include <troupe/error.hpp>

#include "common/ipc/unique_fd.hpp"

namespace troupe::ipc {

/// Opening files whose names others can guess: a cache entry that is loaded as code, a library, a
/// report that is written to a known place.
///
/// One rule. A file is trusted if it is a regular file, belongs to the effective user or to root,
/// and only its owner may write to it. A symbolic link at the end of the path is not followed. The
/// rule is checked on the open descriptor, so use the descriptor from then on (load code by
/// /proc/self/fd/N), never the path again. Nothing here blocks, also not on a FIFO or a device.
struct TrustOptions {
  /// The user has named this very file: symbolic links are followed, and the rule holds for the
  /// file that they lead to.
  bool follows_links = false;
  /// The group of the file may write it too: some systems give each user a group and umask 002.
  bool group_may_write = false;
  /// The file may belong to any user: the program's user named the file or its folder, and may well
  /// run software that others installed.
  bool any_owner = false;
};

/// Opens a trusted file for reading. Errors: io, with errno in `native` (ENOENT: there is none);
/// invalid, for a file that is not trusted: the message names the file and the reason.
Result<UniqueFd> open_trusted(const std::string& path, const TrustOptions& options = {});

/// The rule for a descriptor that is open already; `path` is for the message. Errors: as above.
Result<void> check_trusted(int fd, const std::string& path, const TrustOptions& options = {});

/// Opens a file for writing, made with `mode` if there is none, else emptied. A file that exists
/// must be a regular one of the effective user's, under one name only, and no symbolic link;
/// otherwise it stays as it is. Errors: as above.
Result<UniqueFd> create_trusted(const std::string& path, mode_t mode = 0644);

}  // namespace troupe::ipc
