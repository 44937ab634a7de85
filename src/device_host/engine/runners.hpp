#pragma once

#include <string>
#include <unordered_map>

#include "device_host/engine/engine.hpp"

namespace troupe::host {

/// The functions `Result<void> E::run(const Op&, const Call&)` of an engine, by operation.
template <class E>
class Runners {
 public:
  template <Operation... Ops>
  static Runners of() {
    Runners all;
    (all.functions_.emplace(opcode_of<Ops>, &run_as<Ops>), ...);
    return all;
  }

  /// Errors: unsupported if the engine has no such function, and the function's.
  Result<void> run(E& engine, const OperationInfo& info, const std::byte* op,
                   const Call& call) const {
    const auto found = functions_.find(info.opcode);
    if (found != functions_.end()) return found->second(engine, op, call);
    return Error{Errc::unsupported, 0, std::string(info.name) + ": this engine does not have it"};
  }

 private:
  using Function = Result<void> (*)(E& engine, const std::byte* op, const Call& call);
  template <Operation Op>
  static Result<void> run_as(E& engine, const std::byte* op, const Call& call) {
    return engine.run(*reinterpret_cast<const Op*>(op), call);
  }

  std::unordered_map<std::uint32_t, Function> functions_;
};

}  // namespace troupe::host
