#pragma once

#include <exception>
#include <new>
#include <string>
#include <string_view>

#include <troupe/error.hpp>

namespace troupe::host {

/// The error of the exception that is being handled: what a library throws is the error of its
/// call. `what`: the call, which the message begins with; may be empty.
inline Error current_error(std::string_view what = {}) {
  const auto begin = what.empty() ? std::string() : std::string(what) + ": ";
  try {
    throw;
  } catch (const Exception& exception) {
    auto error = exception.error();
    error.message = begin + error.message;
    return error;
  } catch (const std::bad_alloc&) {
    return {Errc::out_of_memory, 0, begin + "no memory on the host for the operation's workspace"};
  } catch (const std::exception& exception) {
    return {Errc::library, 0, begin + exception.what()};
  } catch (...) {
    return {Errc::library, 0, begin + "it has thrown what is no std::exception"};
  }
}

}  // namespace troupe::host
