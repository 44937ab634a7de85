#!/bin/sh
# run_stall.sh TROUPE-MPI-TESTS TROUPE-FLIGHT: a rank that comes late to a barrier is told apart from those that wait in it,
# in a line of the log and by troupe-flight; and a rank whose program keeps a recovery waiting is named.
tests=$1 flight=$2
dumps=$(mktemp -d) || exit 1
trap 'rm -rf "$dumps"' EXIT
"$(dirname "$0")/run_mpi.sh" 3 3 0 "$tests" --case late_to_barrier --log-level warn --stall-report 500ms \
  --flight-dir "$dumps" >"$dumps/log" 2>&1
status=$?
cat "$dumps/log"
[ "$status" -eq 0 ] || exit "$status"
fail() { echo "run_stall: $1" >&2 && exit 1; }
grep -q "no progress for .* ranks 0, 1: waiting in barrier (host collective 2)" "$dumps/log" || fail "who waits is not said"
grep -q "rank 2: at work outside of runs and host collectives, after 1 of these" "$dumps/log" || fail "who is waited for is not said"
"$flight" "$dumps"/kept/*.json >"$dumps/text" || fail "troupe-flight ends with $?"
cat "$dumps/text"
grep -q "rank *0 on .*no progress; waiting in barrier (host collective 2)" "$dumps/text" || fail "troupe-flight does not say who waits"
grep -q "rank *2 on .*no progress; at work outside" "$dumps/text" || fail "troupe-flight does not say who is waited for"
"$(dirname "$0")/run_mpi.sh" 2 2 0 env LOG_OF_TEST="$dumps/log2" "$tests" --case late_to_recovery --log-level warn \
  --stall-report 500ms --flight-dir none >"$dumps/log2" 2>&1
status=$?
cat "$dumps/log2"
[ "$status" -eq 0 ] || exit "$status"
grep -q "\[0\] world: a recovery has waited for .* s for this rank's program, which is at work in step 7 of a run, in MPI_Recv:" "$dumps/log2" ||
  fail "whose program a recovery waits for is not said"
