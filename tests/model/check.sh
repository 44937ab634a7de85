#!/usr/bin/env bash
# Checks the model of the protocol with spin (https://spinroot.com).
#
#   check.sh SOURCE-DIR COMPILER holds|broken [-DNAME=VALUE...]
#
# holds: exit status 0 if no reachable state breaks a rule, and all of them were seen. broken: 0 if spin finds a state
# that does. 77: spin is not installed. A counterexample is printed, its last steps at least.
set -euo pipefail
source_dir=$1 compiler=$2 expected=$3
shift 3

command -v spin >/dev/null || { echo "skipped: spin is not installed (Debian: apt-get install spin)"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
phases=0

printf '#define TROUPE_RECOVERY_PHASE(name, time) phase name\n#include "recovery.def"\n' |
  "$compiler" -E -P -x c -I "$source_dir/include/troupe" - | grep -o 'phase [a-z_]*' |
  while read -r _ name; do echo "#define $name $((++phases))"; done >phases.h
"$compiler" -E -P -x c -I . -I "$source_dir/src/rank/protocol" "$@" "$source_dir/tests/model/world.pml" -o world.pml
spin -a world.pml >spin.log || { cat spin.log; exit 1; }
# SAFETY: assertions and deadlocks, for which cycles need no looking for. A broken rule is found before an optimised
# program would be compiled. The largest model takes 2.4 GiB; COLLAPSE would store its states in 1.6, in 1.7 times the time.
optimise=-O2
[[ $expected == holds ]] || optimise=-O0
"$compiler" -x c -w "$optimise" -DSAFETY -DNOFAIR -DMEMLIM=4000 pan.c -o pan
./pan -m100000 -n >pan.log || true
grep -E 'errors:|states, stored|elapsed|actual memory|Search not completed|assertion violated|invalid end|too small' pan.log || true

if grep -q 'errors: 0' pan.log && ! grep -qE 'not completed|too small|out of memory|max search depth' pan.log; then
  found=holds
elif [[ -f world.pml.trail ]]; then
  found=broken
  [[ $expected == broken ]] || spin -t -p -g world.pml | tail -n 200
else
  cat pan.log
  found="not decided"
fi
echo "the rules: $found; expected: $expected"
[[ $found == "$expected" ]]
