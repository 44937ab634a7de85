#!/bin/sh
# run_versions.sh TROUPE-MPI-TESTS MODULE LIBEXEC: ranks that load different versions of a library say so in one line, which
# names the library, the versions and the ranks; ranks that load the same version say nothing. The library is MODULE, in an
# installation of its own.
tests=$1 module=$2 libexec=$3
[ "${TROUPE_TEST_BACKEND:-cpu}" = cpu ] || { echo "skipped: the module is for the cpu engine" && exit 77; }
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
fail() { echo "run_versions: $1" >&2 && exit 1; }
cp "$libexec"/troupe-device-host "$libexec"/troupe-engine-cpu.so "$libexec"/troupe-collective-cpu.so \
  "$libexec"/troupe-memory-cpu.so "$module" "$folder" || exit 1

# run OF-RANK-2: with that version on rank 2, and 1.0 on the others
run() {
  # shellcheck disable=SC2016
  "$(dirname "$0")/run_mpi.sh" 4 4 0 sh -c '
    version=1.0
    [ "$OMPI_COMM_WORLD_RANK" != 2 ] || version=$1
    shift
    TEST_MATH_VERSION=$version exec "$@"' sh "$1" \
    "$tests" --case libraries --log-level warn --device-host "$folder/troupe-device-host" >"$folder/log" 2>&1
  status=$?
  cat "$folder/log"
  [ "$status" -eq 0 ] || fail "the status is $status"
}

run 2.0
[ "$(grep -c "TestMath is not the same version" "$folder/log")" -eq 1 ] || fail "a difference is to be told once"
grep -q "\[0\] world: TestMath .*: 1.0 ($folder/troupe-vector-cpu.so) on ranks 0, 1, 3; 2.0 (.*) on rank 2\." "$folder/log" ||
  fail "versions and ranks are not told"
run 1.0
! grep -q "is not the same version" "$folder/log" || fail "there is no difference"
