#pragma once

#include <string>
#include <vector>

namespace troupe {

/// A library of another project, as a device host has loaded it.
struct LoadedLibrary {
  std::string name;     ///< "cuBLAS"
  std::string version;  ///< as the library itself says; "not installed" where it is optional
  std::string file;     ///< the file it was loaded from; empty if there is none

  friend bool operator==(const LoadedLibrary&, const LoadedLibrary&) = default;
};

/// A library of operations that a device host has opened.
struct OpenedLibrary {
  std::string name;                      ///< "blas"; "engine" for the engine itself
  std::vector<LoadedLibrary> stands_on;  ///< empty: on code of troupe's own

  friend bool operator==(const OpenedLibrary&, const OpenedLibrary&) = default;
};

}  // namespace troupe
