#include "device_host/engine/product_checks.hpp"

#include <cstdlib>

#include "common/core/log.hpp"

namespace troupe::host {

namespace {

void tell_of_repeated(const std::string& finding) {
  log::warn("engine", "a product was wrong, and right when it was done again: {}", finding);
}

}  // namespace

ProductChecks::ProductChecks(bool on)
    : on_(on),
      all_(on && std::getenv("TESTING_TROUPE_ALL_PRODUCTS") != nullptr),
      tell_(&tell_of_repeated) {}

}  // namespace troupe::host
