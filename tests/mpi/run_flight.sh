#!/bin/sh
# run_flight.sh TROUPE-MPI-TESTS TROUPE-FLIGHT: a job whose last rank does not come to a collective leaves dumps, from
# which troupe-flight names that rank, and it refuses what is no dump.
tests=$1 flight=$2
dumps=$(mktemp -d) || exit 1
trap 'rm -rf "$dumps"' EXIT
"$(dirname "$0")/run_mpi.sh" 2 4 0 "$tests" --case absent --log-level error --op-timeout 1s --flight-dir "$dumps"
status=$?
[ "$status" -eq 0 ] || exit "$status"
fail() { echo "run_flight: $1" >&2 && exit 1; }

ranks=$(ls "$dumps"/troupe-flight.*.json | wc -l)
"$flight" "$dumps"/*.json >"$dumps/text" || fail "troupe-flight ends with $?"
cat "$dumps/text"
grep -q "collective.all_reduce of 1000 elements is not completed everywhere" "$dumps/text" || fail "no break"
grep -q "waited for: rank $((ranks - 1)), which has not submitted it" "$dumps/text" || fail "another rank is named"
[ "$(grep -c "waited for" "$dumps/text")" -eq 1 ] || fail "more than one rank is named"
"$flight" --json "$dumps"/*.json | grep -q '"stand": "has not submitted it"' || fail "the JSON says something else"

refused() {
  said=$("$flight" "$@" 2>&1)
  status=$?
  [ "$status" -eq 2 ] || fail "status $status for: $*"
  [ "$(echo "$said" | wc -l)" -eq 1 ] || fail "not one line: $said"
}
refused
refused "$dumps/none"
refused "$dumps/text"
refused --rows many "$dumps"/*.0.json
refused "$dumps"/*.0.json "$dumps"/*.0.json
head -c 500 "$(ls "$dumps"/*.0.json)" >"$dumps/half"
refused "$dumps/half"
