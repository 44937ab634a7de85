#!/bin/bash
# run_lapack.sh SHIM FOLDER PATH TYPE: runs one path of netlib's tests of LAPACK of that folder, of type s, d, c or z,
# with the shim in the place of the routines that it has. Behind it are netlib's own LAPACK and BLAS, of FOLDER and
# FOLDER/../blas: their routines call one another through the shim, too, and SLATRS3's test in LAPACK 3.11 passes with this
# BLAS only (https://github.com/Reference-LAPACK/lapack/pull/764).
#
# Paths: ge, po, sy, tr and qr of xlintst, sep and svd of xeigtst, with the distribution's sizes and thresholds. Status 77:
# netlib's programs or libraries are not there.
set -euo pipefail
shim=$1 folder=$2 path=$3 type=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# Which program, its input, what must pass as often, and the routines that must have gone through a device; those of real
# numbers, as the next line turns them into those of complex ones.
blas=$folder/../blas/libblas.so.3 lapack=$folder/liblapack.so.3
program=xlintst exits=1 passes=2
case $path in
  ge) routines='GETRF GETRS LASWP TRTRI' exits=2 ;;
  po) routines='POTRF POTRS POTRI' exits=2 ;;
  sy) routines='SYTRF SYTRS SYTRI' exits=2 ;;
  tr) routines='TRTRI' passes=1 ;;
  qr) routines='GEQRF ORMQR ORGQR' passes=1 ;;
  sep) routines='SYEVD SYTRD ORGTR ORMTR' program=xeigtst passes=10 ;;
  svd) routines='GESVD GEBRD ORGBR' program=xeigtst passes=10 exits=6 ;;
  *) echo "run_lapack.sh: unknown path $path" && exit 2 ;;
esac
[[ $type == [sd] ]] || routines=$(sed -e 's/\bOR/UN/g' -e 's/SYEV/HEEV/g' -e 's/SYTRD/HETRD/g' <<<"$routines")

[[ ${TROUPE_TEST_BACKEND:-cpu} != cuda ]] || routines=${routines/ SYTRI/}  # which the cuda engine does not have
for file in "$folder/$program$type" "$lapack" "$blas"; do
  [[ -e $file ]] || { echo "there is no $file" && exit 77; }
done

if [[ $program == xlintst ]]; then  # the parameters, and of the list of paths the one
  awk -v path="^${type^}${path^^} " 'listed { if ($0 ~ path) print; next } { print } /error exits/ { listed = 1 }' \
    "$folder/${type}test.in" >input
else
  cp "$folder/$path.in" input
fi

status=0
LD_PRELOAD="$shim $lapack $blas" "$folder/$program$type" <input >output 2>errors || status=$?
cat output errors
# said PATTERN WANTED: how often the program has to say that
said() {
  local count
  count=$(grep -cE "$1" output) || true
  ((count == $2)) || { echo "'$1' in $count lines, not in $2" && exit 1; }
}
((status == 0)) || { echo "$program$type ends with status $status" && exit 1; }
! grep -qiE 'failed|illegal|recorded|\*\*\*' output || { echo "$program$type: failed" && exit 1; }
said '^ *All tests for .* passed the threshold' "$passes"
said 'passed the tests of the error exits' "$exits"
said '^ *End of tests' 1
for routine in $routines; do
  grep -q "^troupe: [1-9][0-9]* calls of ${type^}$routine\$" errors || { echo "no call of $routine went through a device" && exit 1; }
done
! grep -vE '^troupe: [1-9][0-9]* calls (of [A-Z0-9]+|on [a-z]+)$' errors
