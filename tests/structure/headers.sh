#!/usr/bin/env bash
# headers.sh SOURCE-TREE COMPILER: all public headers in one program, beside names that programs often have, with the
# build's compiler and with every other g++ from 12 on and clang++ from 16 on that is installed (earlier ones have no
# std::source_location).
set -euo pipefail
tree=$1 compilers=("$2")
for name in g++ g++-{12..16} clang++ clang++-{16..22}; do
  command -v "$name" >/dev/null || continue
  version=$("$name" -dumpversion)
  least=12
  [[ $name == clang* ]] && least=16
  ((${version%%.*} >= least)) && compilers+=("$name")
done

declare -A seen=()
for compiler in "${compilers[@]}"; do
  known=$("$compiler" --version | head -1)
  [[ -z ${seen[$known]:-} ]] || continue
  seen[$known]=1
  "$compiler" -std=c++20 -I "$tree/include" -fsyntax-only -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror \
    "$tree/tests/structure/public_names.cpp"
  echo "compiled with $known"
done
