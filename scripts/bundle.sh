#!/usr/bin/env bash
# Packs the installed programs with the shared libraries they need into dist/troupe-VERSION-ARCH.tar.gz, for Linux
# machines with Open MPI (and, for GPUs, CUDA and NCCL) that are at least as new as this one.
#
#   scripts/bundle.sh [--bare] [CMAKE-OPTION...]
#
# Builds build/release where need be (installing what that needs, as scripts/test.sh does). The tarball has one folder
# at its top, which may be unpacked anywhere. Not in it, because it must be the target machine's own: the C and C++
# runtime libraries, MPI, CUDA and NCCL. With --bare the bundle then runs on a bare system, by scripts/bundle-check.sh.
set -euo pipefail
source "$(dirname "$0")/lib/build.sh"
source "$root/scripts/lib/packages.sh"
source "$root/scripts/lib/libraries.sh"
source "$root/scripts/lib/stage_bundle.sh"

bare=0
if [[ ${1:-} == --bare ]]; then
  bare=1
  shift
fi
accept_cmake_options "$@"

find_cuda
install_packages "${packages_for_building[@]}" "${packages_for_libraries[@]}" patchelf
# A build folder that is there is taken as it is, but for how kernels are compiled, which the tests hurry where there is no
# GPU; a new one builds neither tests nor benchmarks.
kernels=(-DCMAKE_CUDA_ARCHITECTURES=all-major -DCMAKE_CUDA_FLAGS=)
if [[ -f $root/build/release/CMakeCache.txt ]]; then
  configure release build/release "${kernels[@]}" "$@"
else
  configure release build/release -DTROUPE_TESTS=OFF -DTROUPE_BENCHMARKS=OFF "${kernels[@]}" "$@"
fi
build build/release

version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$root/build/release/CMakeCache.txt")
name=troupe-$version-$(uname -m)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/$name

stage_bundle "$root/build/release" "$tree"

mkdir -p "$root/dist"
tarball=$root/dist/$name.tar.gz
tar -C "$work" --owner=0 --group=0 --numeric-owner -czf "$tarball" "$name"

say "trying it out in another folder"
mkdir "$work/elsewhere"
tar -C "$work/elsewhere" -xzf "$tarball"
mpi_environment
(cd / && env -u LD_LIBRARY_PATH "$work/elsewhere/$name/bin/troupe-info" --help >/dev/null) ||
  die "the unpacked troupe-info does not run"
for file in "$work/elsewhere/$name"/lib/*.so* "$work/elsewhere/$name"/libexec/troupe/*; do
  while read -r library _; do
    is_foreign "$library" || die "the unpacked $(basename "$file") lacks $library"
  done < <(env -u LD_LIBRARY_PATH ldd "$file" 2>/dev/null | grep 'not found' || true)
done

say "dist/$name.tar.gz: $(du -h "$tarball" | cut -f 1) ($(du -sh "$tree" | cut -f 1) unpacked)"
if ((bare)); then
  say "on a bare system"
  "$root/scripts/bundle-check.sh" "$tarball"
fi
