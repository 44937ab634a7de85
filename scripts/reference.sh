#!/usr/bin/env bash
# Writes the reference of the public headers with doxygen:
#
#   scripts/reference.sh FOLDER      then open FOLDER/html/index.html
#
# Fails on every warning but that of an undocumented member: classes and structs all say what they are for.
set -euo pipefail
[[ $# == 1 ]] || { echo "usage: scripts/reference.sh FOLDER" >&2 && exit 2; }
command -v doxygen >/dev/null || { echo "doxygen is not installed: apt-get install doxygen" >&2 && exit 77; }
mkdir -p "$1"
TROUPE_REFERENCE=$(cd "$1" && pwd)
export TROUPE_REFERENCE
cd "$(dirname "$0")/.."
doxygen docs/Doxyfile
[[ -f $TROUPE_REFERENCE/html/index.html ]] || { echo "doxygen wrote no reference" >&2 && exit 1; }
! grep -v 'Member .* is not documented' "$TROUPE_REFERENCE/warnings"
