#!/usr/bin/env bash
# install.sh SOURCE-TREE BUILD-TREE CMAKE CXX BUILD-TYPE MPIEXEC: installs troupe, moves the install tree elsewhere,
# builds the README's program against it as a user would (find_package), and runs it on two ranks; then a library outside
# the tree (library.sh). Nothing that the ranks or their device hosts load may come from the build tree.
set -euo pipefail
source_tree=$1 build_tree=$2 cmake=$3 cxx=$4 build_type=$5 mpiexec=$6
here=$(cd "$(dirname "$0")" && pwd)
fail() { echo "install test: $*" && exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$cmake" --install "$build_tree" --prefix "$work/first" >/dev/null
mv "$work/first" "$work/moved"
[[ -z $(find "$work/moved" -type d -empty) ]] || fail "empty folders are installed"
while IFS= read -r file; do
  [[ $(head -c 4 "$file" | tail -c 3) == ELF ]] || continue
  ! readelf -d "$file" | grep -E '\((RPATH|RUNPATH)\)' | grep -F "$build_tree" || fail "$file looks into the build tree"
done < <(find "$work/moved" -type f)
! grep -rlF -e "$build_tree" -e "$source_tree" -e "$work/first" "$work/moved" ||
  fail "the files above name the build tree, the source tree or the first prefix"
for document in README.md "$source_tree"/docs/*.md; do
  name=${document#"$source_tree/"}
  cmp "$source_tree/$name" "$work/moved/share/doc/troupe/$name" || fail "$name is not installed"
done
broken=$("$here/links.sh" "$work/moved/share/doc/troupe") || fail "installed documents link to files that are not: $broken"

# The program of the README: the first C++ block in it, exactly.
mkdir "$work/consumer"
awk '/^```cpp$/ { inside = 1; next } /^```$/ && inside { exit } inside' "$source_tree/README.md" >"$work/consumer/main.cpp"
lines=$(wc -l <"$work/consumer/main.cpp")
((lines > 10 && lines <= 35)) || fail "the README's program has $lines lines"
cp "$here/consumer/CMakeLists.txt" "$work/consumer/"
"$cmake" -S "$work/consumer" -B "$work/consumer/build" -G Ninja -DCMAKE_BUILD_TYPE="$build_type" \
  -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror" -DCMAKE_PREFIX_PATH="$work/moved"
"$cmake" --build "$work/consumer/build"

# Before 1.0 the library's name for the dynamic linker names the minor version, too.
version=$(sed -n 's/^project(troupe VERSION \([^ ]*\).*/\1/p' "$source_tree/CMakeLists.txt")
case $version in
  0.*) compatible=${version%.*} ;;
  *) compatible=${version%%.*} ;;
esac
readelf -d "$work/moved/lib/libtroupe.so" | grep -F "soname: [libtroupe.so.$compatible]" >/dev/null ||
  fail "libtroupe's soname is not libtroupe.so.$compatible"

# The same without CMake.
export PKG_CONFIG_PATH=$work/moved/lib/pkgconfig
[[ $(pkg-config --modversion troupe) == "$version" ]] ||
  fail "pkg-config tells another version"
read -ra flags < <(pkg-config --cflags --libs troupe)
"$cxx" -std=c++20 -o "$work/by-pkg-config" "$work/consumer/main.cpp" "${flags[@]}" \
  -Wl,-rpath,"$(pkg-config --variable=libdir troupe)" || fail "the README's program is not built with pkg-config's flags"
(cd / && "$work/by-pkg-config" --help >/dev/null) || fail "the program built with pkg-config's flags does not run"

# A call of a library whose header is missing: the compiler names the header.
cat >"$work/no-header.cpp" <<'CPP'
#include <troupe/device.hpp>
auto blas_of(const troupe::Device& device) { return device.blas(); }
CPP
! errors=$("$cxx" -std=c++20 -fsyntax-only "$work/no-header.cpp" "${flags[@]}" 2>&1) || fail "an incomplete library object is compiled"
grep -q "blas() needs #include <troupe/lib/blas.hpp>" <<<"$errors" || fail "the compiler does not name the missing header: $errors"

ranks=2
export TROUPE_ENGINE=${TROUPE_TEST_BACKEND:-cpu}
if [[ $TROUPE_ENGINE == cuda ]] && (($("$source_tree/scripts/lib/gpu_count.sh") < ranks)); then ranks=1; fi
unset LD_LIBRARY_PATH TROUPE_TEST_BACKEND
mkdir "$work/loaded"
# LD_DEBUG=files writes what each process loads: the ranks, the device hosts, the engines they open.
run=("$mpiexec" -n "$ranks" --oversubscribe --bind-to none env LD_DEBUG=files LD_DEBUG_OUTPUT="$work/loaded/by")
output=$(cd "$work" && timeout 300 "${run[@]}" "$work/consumer/build/sum-of-products" --n 64 </dev/null) ||
  fail "the README's program ended with status $?"
echo "$output"
grep -q "^$ranks ranks: the mean is " <<<"$output" || fail "the README's program did not print its result"

loaded=$(sed -n 's/.*calling init: \(.*\)/\1/p' "$work"/loaded/by.* | sort -u)
for file in lib/libtroupe.so libexec/troupe/troupe-engine-$TROUPE_ENGINE.so; do
  grep -qF "$work/moved/$file" <<<"$loaded" || fail "$file of the moved tree was not loaded"
done
! grep -F "$build_tree/" <<<"$loaded" || fail "the files above were loaded from the build tree"
hosts=$(grep -lF 'troupe-device-host' "$work"/loaded/by.* | wc -l)
((hosts >= ranks)) || fail "only $hosts device hosts ran"

(cd / && "$work/moved/bin/troupe-cg" --help >/dev/null) || fail "the moved troupe-cg does not run"
[[ -z $(find "$work/moved/bin" -name troupe-info) ]] || (cd / && "$work/moved/bin/troupe-info" --help >/dev/null) ||
  fail "the moved troupe-info does not run"
"$here/library.sh" "$source_tree" "$work/moved" "$cmake" "$cxx" "$build_type" "$mpiexec" "$ranks"
echo "install test: passed"
