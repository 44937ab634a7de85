#pragma once

#include <cstdint>
#include <string>

#include <troupe/error.hpp>

/// This host's memory, and how it is taken for files in memory (memfd_create) without harm.
namespace troupe::ipc {

/// Bytes of this host; 0: unknown.
std::uint64_t total_memory();
/// Bytes that can be had without swapping (MemAvailable); 0: unknown.
std::uint64_t available_memory();

/// True if files may be so large: `what` would be. Where they may not, who makes one is ended by a
/// signal. Errors: out_of_memory, which names the limit.
Result<void> check_file_size(const std::string& what, std::uint64_t bytes);

/// Tells take_pages() if it must find enough free memory before it takes any.
enum class Look { never, first };
/// Gives an empty file in memory its size and all of its pages: later a lack of them would be a
/// SIGBUS. With Look::first it leaves a sixteenth of the memory to others, who are ended by the
/// kernel else. Errors: out_of_memory, io; what has been taken goes with the file.
Result<void> take_pages(int fd, const std::string& what, std::uint64_t bytes, Look look);

}  // namespace troupe::ipc
