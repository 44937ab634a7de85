#pragma once

#include <cstddef>
#include <span>

#include <troupe/error.hpp>
#include <troupe/lib/submit.hpp>

#include "rank/token/token_message.hpp"

/// A command that is asked of another rank: TokenMessage::Kind::execute. Beside the record goes the
/// operation's name, because an opcode says nothing to a program that does not know it.
namespace troupe::rank_process {

/// Errors: invalid if the command is too long.
Result<TokenPacket> execute_request(const detail::CommandView& command);
/// The command's record in a request to `rank`, which is this one. Errors: invalid; unsupported if
/// this program does not know the operation.
Result<std::span<const std::byte>> record_of(const TokenPacket& request, int rank);

}  // namespace troupe::rank_process
