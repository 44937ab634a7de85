#pragma once

#include <dlfcn.h>

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <troupe/error.hpp>
#include <troupe/function.hpp>
#include <troupe/lib/kernel.hpp>

#include "common/ipc/code_file.hpp"

namespace troupe::functions {

/// The functions of the program's that have been called in this process.
class Loaded {
 public:
  struct Function {
    int (*address)(const FunctionCall*) = nullptr;
    int operator()(const FunctionCall* call) const { return address(call); }
  };

  [[nodiscard]] bool has(std::string_view path, std::string_view name) const {
    return functions_.contains(Key{path, name});
  }
  /// Loads the library if need be, if the file is still that of this id; it stays. Errors:
  /// unsupported (there is no such library or function), invalid (it is another file by now), io.
  Result<Function> find(std::string_view path, const std::uint64_t (&id)[2],
                        std::string_view name) {
    const Key key{path, name};
    const auto known = functions_.find(key);
    if (known != functions_.end()) return known->second;
    const auto library =
        ipc::load_code({key.first, ContentId{id[0], id[1]}}, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      auto error = library.error();
      error.message = "function.call: " + error.message;
      // The program's library lacks something on this machine; no library of the engine failed.
      if (error.code == Errc::library) error.code = Errc::unsupported;
      return error;
    }
    const auto symbol = "troupe_function_" + key.second;
    void* const address = ::dlsym(*library, symbol.c_str());
    if (address == nullptr)
      return Error{Errc::unsupported, 0, std::string("function.call: ") + ::dlerror()};
    const Function function{reinterpret_cast<int (*)(const FunctionCall*)>(address)};
    functions_.emplace(key, function);
    return function;
  }

 private:
  using Key = std::pair<std::string, std::string>;
  std::map<Key, Function> functions_;
};

/// Whether the function takes arguments of these sizes. Errors: invalid.
inline Result<void> check_arguments(Loaded::Function function, const kernel::Inline& given) {
  const FunctionCall question{nullptr, nullptr, given.sizes().data(),
                              static_cast<unsigned>(given.sizes().size())};
  if (function(&question) != kOtherArguments) return {};
  return Error{Errc::invalid, 0,
               "function.call: " + std::string(given.name()) + " takes other arguments than these"};
}

}  // namespace troupe::functions
