#!/bin/bash
# run.sh SHIM FOLDER TYPE LEVEL [brief]: runs netlib's program xblatLEVELTYPE of that folder with the shim in BLAS's place;
# brief: with matrices of 0, 1, 3 and 9 rows and columns, and none of 2 and 5.
#
# What the programs say of wrong arguments is left out: XERBLA and the numbers of arguments belong to the Fortran
# interface; the errors of operations have tests of their own. Status 77: the program is not there.
set -euo pipefail
shim=$1 folder=$2 type=$3 level=$4 brief=${5:-}
[[ -e $folder/xblat$level$type ]] || { echo "there is no $folder/xblat$level$type" && exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

run() { LD_PRELOAD=$shim "$folder/xblat$level$type" 2>"$work/errors"; }

status=0
if ((level == 1)); then
  run >summary </dev/null || status=$?
  passed=$(grep -c -- '----- PASS -----' summary) || true
  wanted=$(grep -c '^ *Test of subprogram number' summary) || true
else
  sed 's/^T\( *LOGICAL FLAG, T TO TEST ERROR EXITS\)/F\1/' "$folder/${type}blat$level.in" >input
  if [[ -n $brief ]]; then
    sed -i 's/^6\( *NUMBER OF VALUES OF N\)/4\1/; s/^0 1 2 3 5 9\( *VALUES OF N\)/0 1 3 9\1/' input
    grep -q '^4 *NUMBER OF VALUES OF N' input && grep -q '^0 1 3 9 *VALUES OF N' input ||
      { echo "the input of xblat$level$type has other sizes" && exit 1; }
  fi
  run >output <input || status=$?
  cat "${type}blat$level.out" >summary 2>/dev/null || cp output summary
  passed=$(grep -c 'PASSED THE COMPUTATIONAL TESTS' summary) || true
  wanted=$(grep -c '^[SDCZ][A-Z0-9]* *T PUT' input) || true
fi
cat summary errors
if ((status != 0)) || grep -qE 'FAIL|FATAL|SUSPECT' summary; then
  echo "xblat$level$type failed (status $status)"
  exit 1
fi
if ((wanted == 0 || passed != wanted)); then
  echo "$passed of $wanted routines passed"
  exit 1
fi
grep -q '^troupe: [1-9][0-9]* calls on' errors || { echo "no call went through a device"; exit 1; }
grep -v '^troupe: [1-9][0-9]* calls on' errors && exit 1
exit 0
