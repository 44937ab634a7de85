#pragma once

#include <memory>
#include <string>

#include "device_host/engine/collective_half.hpp"

namespace troupe::host::cpu {

/// An end of a channel over a mesh of two ranks. `network`: see Services::network().
std::shared_ptr<ChannelEnd> make_channel_end(bool receives, const std::string& network);

}  // namespace troupe::host::cpu
