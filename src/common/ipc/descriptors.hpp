#pragma once

#include <string>

#include <troupe/error.hpp>

/// How many descriptors this process may have, and whether enough of them are left.
namespace troupe::ipc {

/// Opens those of descriptors 0 to 2 that are closed, before a file, a socket or shared memory gets
/// such a number, into which what is printed would go. They answer as closed ones: what is printed
/// is an error (EBADF), what is read too. For the start of a process.
void fill_standard_descriptors() noexcept;

/// Raises the soft limit of open descriptors to the hard one, for this process and those it starts
/// from now on. Not beyond 2^20: older programs close all that they could have one by one.
void raise_descriptor_limit() noexcept;

/// An error unless `reserve` descriptors more can be opened. It names the limit and the remedy.
Result<void> keep_descriptors(unsigned reserve);

/// The error of a descriptor that did not arrive because this process may have no more.
Error no_descriptor_left(const std::string& what);

}  // namespace troupe::ipc
