#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

/// libFuzzer's entry: aborts (troupe::check) where a promise is broken.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

/// Valid inputs, from which mutated.cpp makes others where there is no libFuzzer.
std::vector<std::vector<std::byte>> fuzz_seeds();
