#pragma once

#include <troupe/lib/fault_kind.hpp>

#include "common/core/field_bytes.hpp"
#include "common/wire/control.hpp"
#include "common/wire/formation.hpp"

/// Tells FieldWriter and FieldReader how to treat the types in messages with a device host.
namespace troupe {

template <>
inline constexpr wire::GroupState kLast<wire::GroupState> = wire::GroupState::returning;
template <>
inline constexpr memory::FaultKind kLast<memory::FaultKind> = memory::FaultKind::misaligned;
template <>
inline constexpr bool kTravelsBeside<wire::Descriptor> = true;

}  // namespace troupe
