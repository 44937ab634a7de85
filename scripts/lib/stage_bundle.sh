# shellcheck shell=bash
# The tree that a bundle packs. To be sourced after build.sh and libraries.sh.

# Every program and library must look for its libraries relative to itself.
check_run_path() {
  local file=$1 expected=$2
  readelf -d "$file" | grep -E '\((RPATH|RUNPATH)\)' | grep -qF "$expected" ||
    die "$(basename "$file") does not look for libraries in $expected"
}

# stage_bundle BUILD-FOLDER TREE: installs the programs in the tree, with documents and the libraries that they need.
stage_bundle() {
  local build=$1 tree=$2 file
  command -v patchelf >/dev/null || die "needs patchelf (apt-get install patchelf)"
  say "installing into a staging folder"
  cmake --install "$build" --prefix "$tree" --strip >/dev/null
  cp -a "$root/LICENSE" "$root/README.md" "$root/docs" "$tree/"

  say "libraries that go along"
  for file in "$tree"/bin/* "$tree"/lib/libtroupe.so "$tree"/libexec/troupe/*; do
    ! is_elf "$file" || collect "$file" "$tree/lib"
  done
  for file in "$tree"/bin/*; do check_run_path "$file" "\$ORIGIN/../lib"; done
  for file in "$tree"/libexec/troupe/*; do check_run_path "$file" "\$ORIGIN/../../lib"; done
}
