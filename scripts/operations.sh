#!/usr/bin/env bash
# Prints docs/operations.md: the operations of all libraries, from their definitions.
#
#   scripts/operations.sh TROUPE-INFO >docs/operations.md
set -euo pipefail
[[ $# == 1 && -x $1 ]] || { sed -n '2,4s/^# \{0,1\}//p' "$0" >&2 && exit 2; }
table=$("$1" --operations --engine cpu --standby off)

cat <<'HEAD'
# Operations

What each engine computes the operations in, by [library](libraries.md). This document is written by `scripts/operations.sh`
from the operations' definitions, and tests compare it with them; `troupe-info --operations` prints the same.

"any" is every dtype, "unsupported" what that engine answers on every machine. What else depends on the machine: a library
that is not installed, or formats that a GPU does not have. The dtype is that of the operation's own field; where others
go with it, the header in `include/troupe/lib` says which.
HEAD

library=''
while read -r line; do
  IFS='|' read -r name cpu cuda <<<"$(sed 's/   */|/g' <<<"$line")"
  [[ $name != operation ]] || continue
  if [[ ${name%%.*} != "$library" ]]; then
    library=${name%%.*}
    printf '\n## %s\n\n| operation | cpu | cuda |\n|---|---|---|\n' "$library"
  fi
  printf '| `%s` | %s | %s |\n' "${name#*.}" "$cpu" "$cuda"
done <<<"$table"
