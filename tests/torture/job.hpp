#pragma once

#include <troupe/troupe.hpp>

#include "program.hpp"

namespace troupe::torture {

/// The program's name and options.
troupe::Program this_program();
/// What the options make of a seed.
Recipe recipe_of(const Config& config, int ranks, const std::string& engine);
Result<void> check_options(const Config& config);
/// What a job under mpirun does: the programs of some seeds, one after the other.
int run_job(Runtime& runtime);

}  // namespace troupe::torture
