#!/bin/sh
# run_reproducible.sh TROUPE-MPI-TESTS: two runs with --reproducible give the same bits.
tests=$1
out=$(mktemp -d) || exit 1
trap 'rm -rf "$out"' EXIT
for run in 1 2; do
  "$(dirname "$0")/run_mpi.sh" 1 4 0 "$tests" --case reproducible --log-level error --reproducible on --restart-budget 1000 \
    >"$out/$run" 2>&1
  status=$?
  cat "$out/$run"
  [ "$status" -eq 0 ] || exit "$status"
  grep "^bits:" "$out/$run" >"$out/bits.$run" || exit 1
done
cmp "$out/bits.1" "$out/bits.2" || { echo "run_reproducible: two runs have different bits" >&2; exit 1; }
