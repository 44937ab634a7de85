#!/usr/bin/env bash
# library.sh SOURCE-TREE INSTALL-TREE CMAKE CXX BUILD-TYPE MPIEXEC RANKS: for install.sh, with TROUPE_ENGINE set. Builds the
# library of apps/examples/library, which is outside troupe's tree, and its program against the install tree; runs them on
# that many ranks, also with device hosts killed and calls that fail; and has device hosts refuse modules that do not fit.
set -euo pipefail
source_tree=$1 install_tree=$2 cmake=$3 cxx=$4 build_type=$5 mpiexec=$6 ranks=$7
fail() { echo "library test: $*" && exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

export CUDAARCHS=${CUDAARCHS:-75-virtual;90-real}  # by default nvcc makes PTX alone, which an older driver does not take
cp -r "$source_tree/apps/examples/library" "$work/source"
"$cmake" -S "$work/source" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE="$build_type" -DCMAKE_CXX_COMPILER="$cxx" \
  -DCMAKE_CXX_FLAGS="-Wall -Wextra -Wpedantic -Wshadow -Werror" -DCMAKE_PREFIX_PATH="$install_tree"
"$cmake" --build "$work/build"
module=troupe-tridiagonal-$TROUPE_ENGINE.so
[[ -e $work/build/$module ]] || fail "there is no half for the engine $TROUPE_ENGINE"

# run STATUS RANKS ARGUMENTS...: of the program that $program names
program=$work/build/heat
run() {
  local wanted=$1 count=$2 status=0
  shift 2
  echo "heat $*"
  (cd "$work" && TROUPE_FLIGHT_DIR=none timeout 120 "$mpiexec" -n "$count" --oversubscribe --bind-to none \
    "$program" "$@" </dev/null) >"$work/log" 2>&1 || status=$?
  cat "$work/log"
  ((status == wanted)) || fail "the status is $status, not $wanted"
}
# says N TEXT: N lines have it
says() { (($(grep -cF -e "$2" "$work/log") == $1)) || fail "not $1 times: $2"; }

run 0 "$ranks" --steps 40
says 1 "$ranks ranks, 40 steps, 0 faults overcome: right"
# As it is installed: the module in libexec/troupe beside the program's folder.
mkdir -p "$work/installed/bin" "$work/installed/libexec/troupe" "$work/other"
mv "$work/build/heat" "$work/installed/bin"
mv "$work/build/$module" "$work/installed/libexec/troupe"
program=$work/installed/bin/heat
run 0 "$ranks" --steps 41 --fail --kill-at 30
says 1 "$ranks ranks, 41 steps, 2 faults overcome: right"
[[ $TROUPE_ENGINE == cuda ]] || run 0 1 --steps 5 --isolation thread

# refused TEXT: the module in the folder "other" is; the program is told by the call's error, and everybody by one warning.
refused() {
  run 1 1 --steps 2 --library-path "$work/other"
  says 1 "lib: no library tridiagonal: $1"
  says 1 "unsupported: tridiagonal.solve: the device host does not have library tridiagonal: $1"
}
wrong=$work/other/$module
"$cxx" -shared -fPIC -x c++ - -o "$wrong" <<<'extern "C" { extern const unsigned troupe_library_module[2] = {7, 0}; }'
refused "$wrong has ABI version 7, this troupe has version 3: build the library with this troupe"
"$cxx" -std=c++20 -shared -fPIC -I "$install_tree/include" -x c++ - -o "$wrong" <<'END'
#include <cstdlib>

#include <troupe/plugin/module.hpp>
static std::vector<troupe::LibraryFingerprint> others() { return {{"tridiagonal", 1}}; }
static std::vector<const troupe::OperationInfo*> none() { return {}; }
extern "C" const troupe::plugin::Module troupe_library_module{
    .engine = std::getenv("TROUPE_ENGINE"), .operations = &none, .fingerprints = &others};
END
refused "$wrong has other operations of library tridiagonal than the program: build both of the same sources"
"$cxx" -shared -fPIC -x c++ - -o "$wrong" <<<'int nothing;'
refused "$wrong is no library for troupe: it does not export troupe_library_module"
head -c "$(($(stat -c %s "$install_tree/libexec/troupe/$module") / 2))" "$install_tree/libexec/troupe/$module" >"$wrong"
refused "$wrong cannot be loaded: it is cut short, at "
echo "not a module" >"$wrong"
refused "$wrong cannot be loaded: "
# troupe-torture brings one of the same name, in the last folder that is looked through.
rm "$wrong" "$work/installed/libexec/troupe/$module" "$install_tree/libexec/troupe/$module"
refused "there is no $module in $work/other, $work/installed/bin, "
run 2 1 --library-path "$work/nowhere"
says 1 "library-path: there is no folder $work/nowhere"
echo "library test: passed"
