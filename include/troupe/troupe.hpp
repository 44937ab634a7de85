#pragma once

/// Everything an application includes.
#include <troupe/checkpoint.hpp>
#include <troupe/config.hpp>
#include <troupe/device.hpp>
#include <troupe/runtime.hpp>
#include <troupe/world.hpp>
