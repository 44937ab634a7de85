#pragma once

/// Actors of the program: see troupe/actor/actor_system.hpp for an example, docs/actors.md for the
/// rest. SteppedScheduler is for tests: one message at a time, on a clock that stands still.
#include <troupe/actor/actor.hpp>
#include <troupe/actor/actor_system.hpp>
#include <troupe/actor/patient_tell.hpp>
#include <troupe/actor/production_scheduler.hpp>
#include <troupe/actor/remote_actor.hpp>
#include <troupe/actor/serializer.hpp>
#include <troupe/actor/stepped_scheduler.hpp>
