#pragma once

namespace troupe {

/// Calls a function that was found in a library at run time, by a declaration of our own:
/// `Function` is a pointer to a function. The sanitizer that compares the types of functions is
/// left out: types of the library's own have other names than ours.
template <class Function, class... Arguments>
#ifdef __clang__
[[clang::no_sanitize("function")]]
#endif
auto call_foreign(void* function, Arguments... arguments) {
  return reinterpret_cast<Function>(function)(arguments...);
}

}  // namespace troupe
