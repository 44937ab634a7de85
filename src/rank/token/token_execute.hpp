#pragma once

#include <cstddef>
#include <span>

#include <troupe/error.hpp>
#include <troupe/lib/submit.hpp>

#include "rank/token/token_message.hpp"

/// A command that is asked of another rank: routed::Execute.
namespace troupe::rank_process {

/// Errors: invalid if the command is too long.
Result<routed::Execute> execute_request(const detail::CommandView& command);
/// The command's record in a request to `rank`, which is this one. Errors: invalid; unsupported if
/// this program does not know the operation.
Result<std::span<const std::byte>> record_of(const routed::Execute& request, int rank);

}  // namespace troupe::rank_process
