#!/usr/bin/env bash
# bundle_bare.sh SOURCE-TREE BUILD-TREE: a bundle of the build runs on a bare system. Exit status 77 (skipped) where there is
# no such system to be had, see scripts/bundle-check.sh.
set -euo pipefail
source "$1/scripts/lib/build.sh"
source "$1/scripts/lib/libraries.sh"
source "$1/scripts/lib/stage_bundle.sh"
((EUID == 0)) || { echo "skipped: only root can make a bare system" && exit 77; }
command -v patchelf >/dev/null || { echo "skipped: patchelf is not installed" && exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stage_bundle "$2" "$work/troupe"
tar -C "$work" -cf "$work/troupe.tar" troupe
"$1/scripts/bundle-check.sh" "$work/troupe.tar"
