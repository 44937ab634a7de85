#!/usr/bin/env bash
# Packs a build and its tests for a machine that cannot build them, such as one with GPUs and no network.
#
#   scripts/pack-tests.sh BUILD-FOLDER [ARCHIVE]
#
# ARCHIVE (default: dist/troupe-tests.tar.gz) gets the programs and tests, stripped, netlib's with their input, CTest's
# files, the scripts, and the shared libraries that they need. The machine brings the C and C++ runtime libraries, Open MPI, and for GPUs CUDA and
# NCCL, all at least as new as here. There:
#
#   tar -xzf troupe-tests.tar.gz && troupe-tests/run scripts/gpu-check.sh --only unit,process build/release
#
# `run` makes links where the build was configured, so that CTest finds what it looks for, and runs its arguments in the
# unpacked folder.
set -euo pipefail
source "$(dirname "$0")/lib/build.sh"
source "$(dirname "$0")/lib/libraries.sh"

case ${1:-} in
  -h | --help) usage && exit 0 ;;
esac
[[ $# -ge 1 && $# -le 2 && -f $1/CTestTestfile.cmake ]] || { usage >&2 && exit 2; }
build=$(cd "$1" && pwd)
# shellcheck disable=SC2154  # root: from build.sh
archive=$(realpath -m "${2:-$root/dist/troupe-tests.tar.gz}")
sources=$(sed -n 's/^# Source directory: *//p' "$build/CTestTestfile.cmake")
[[ $build == "$sources"/* ]] || die "the build folder $build does not lie within its sources, $sources"
[[ $(sed -n 's/^# Build directory: *//p' "$build/CTestTestfile.cmake") == "$build" ]] || die "$build was configured elsewhere"

command -v patchelf >/dev/null || die "needs patchelf (apt-get install patchelf)"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/troupe-tests
to=$tree/${build#"$sources"/}
mkdir -p "$to/needed"

say "programs, tests, CTest's files, libraries that go along"
cp -a "$sources"/{scripts,tests,config,docs,README.md,LICENSE} "$tree/"
mkdir -p "$tree/bench" && cp -a "$sources"/bench/*.py "$tree/bench/"
(cd "$build" && find . -name CTestTestfile.cmake -o -name '*_include.cmake' -o -name '*_tests.cmake' -o -path './tests/netlib/*.in') |
  tar -C "$build" -cf - -T - | tar -C "$to" -xf -
(cd "$build" && find bin lib libexec tests -type f -print0) | while IFS= read -r -d '' file; do
  if [[ $file == *.o || $file == *.a ]] || ! is_elf "$build/$file"; then continue; fi
  mkdir -p "$to/$(dirname "$file")"
  collect "$build/$file" "$to/needed"
  strip --strip-all -o "$to/$file" "$build/$file"
  patchelf --add-rpath "$build/needed" "$to/$file"
done
(cd "$build" && find lib -type l -print0) | while IFS= read -r -d '' file; do cp -a "$build/$file" "$to/$file"; done

rm -f "$to"/needed/libtroupe*  # in lib already

cat >"$tree/run" <<RUN
#!/usr/bin/env bash
# run COMMAND...: in this folder, with a link where these tests were configured
set -euo pipefail
here=\$(cd "\$(dirname "\$0")" && pwd)
sources=$sources build=${build#"$sources"/}
if [[ ! -e \$sources ]]; then
  mkdir -p "\$(dirname "\$sources")"
  ln -s "\$here" "\$sources"
elif [[ ! -e \$sources/\$build ]]; then
  mkdir -p "\$(dirname "\$sources/\$build")"
  ln -s "\$here/\$build" "\$sources/\$build"
fi
[[ \$(realpath "\$sources/\$build") == "\$(realpath "\$here/\$build")" ]] ||
  { echo "run: \$sources/\$build is something else" >&2 && exit 2; }
cd "\$here"
exec "\$@"
RUN
chmod +x "$tree/run"

mkdir -p "$(dirname "$archive")"
tar -C "$work" --owner=0 --group=0 --numeric-owner -cf - troupe-tests | gzip >"$archive"
say "$archive: $(du -h "$archive" | cut -f 1) ($(du -sh "$tree" | cut -f 1) unpacked)"
