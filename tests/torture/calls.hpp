#pragma once

#include <memory>
#include <set>
#include <utility>

#include "catalogue/catalogue.hpp"
#include "program.hpp"

namespace troupe::torture {

/// The calls of the catalogue, as this program makes them.
class Calls {
 public:
  /// Makes those once that an engine need not have. Throws Exception, and Finding if one of them is
  /// wrong.
  explicit Calls(Device& device);

  /// Begins the call of an operation; nothing: the engine does not have it.
  [[nodiscard]] std::shared_ptr<Trial> begin(const Operation& op, Device& device) const;

 private:
  std::set<std::pair<const CallInfo*, DType>> missing_;
};

}  // namespace troupe::torture
