#!/bin/sh
# run_own_libraries.sh FOLDER: jobs whose ranks are of different programs, the troupe-own-N in FOLDER. Ranks may have
# different libraries, and what a rank asks of another, or of its device host, that lacks the library is unsupported; but
# where two processes know a library they must know the same one.
folder=$1
[ "${TROUPE_TEST_BACKEND:-cpu}" = cpu ] || { echo "skipped: there may be too few GPUs" && exit 77; }
TROUPE_SITE_CONFIG=  # what this machine's site file says is no part of the test
export TROUPE_SITE_CONFIG
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
fail() { echo "run_own_libraries: $1" >&2 && exit 1; }

# run STATUS N...: a job of a rank of troupe-own-N for each N
run() {
  wanted=$1 programs=
  shift
  echo "programs $*"
  for number in "$@"; do programs="$programs${programs:+ : }-n 1 $folder/troupe-own-$number --engine cpu"; done
  # shellcheck disable=SC2086
  mpirun --oversubscribe --bind-to none $programs >"$log" 2>&1
  got=$?
  cat "$log"
  [ "$got" -eq "$wanted" ] || fail "the status is $got, not $wanted"
}
# says N TEXT: N lines have it
says() { [ "$(grep -c "$2" "$log")" -eq "$1" ] || fail "not $1 times: $2"; }

run 0 0 1 0
says 1 "rank 1: unsupported.*own.operation: the device host does not have library own: there is no troupe-own-cpu.so in "
says 1 "lib: no library own: there is no troupe-own-cpu.so in "
says 1 "rank 1: done$"
says 1 "rank 1: unsupported.*own.operation cannot be asked of rank 0: its program does not include library own$"
run 2 1 2
says 1 "rank 0 and rank 1 know different operations of library own: "
run 2 0 1 2
says 1 "rank 1 and rank 2 know different operations of library own: "
run 2 3
says 1 "troupe-device-host and the rank know different operations of library vector: "
