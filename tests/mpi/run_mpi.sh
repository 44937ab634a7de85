#!/bin/sh
# run_mpi.sh MIN MAX STATUS PROGRAM [ARGUMENTS]: PROGRAM under mpirun on MAX ranks; with TROUPE_TEST_BACKEND=cuda on as many
# as there are GPUs to be seen, if that is fewer. Fewer than MIN: skipped (status 77). Succeeds if mpirun ends with STATUS and no
# device host of this job is left.
min=$1 max=$2 status=$3
shift 3
engine=${TROUPE_TEST_BACKEND:-cpu}
ranks=$max
if [ "$engine" = cuda ]; then
  gpus=$("$(dirname "$0")/../../scripts/lib/gpu_count.sh")
  [ "$gpus" -lt "$ranks" ] && ranks=$gpus
fi
if [ "$ranks" -lt "$min" ]; then
  echo "skipped: needs $min ranks, there are $ranks GPUs"
  exit 77
fi
TROUPE_SITE_CONFIG=  # what this machine's site file says is no part of the test
export TROUPE_SITE_CONFIG
# The mark in the environment finds the processes of this very job again.
job=$$.$(date +%s%N)
mpirun --oversubscribe --bind-to none -n "$ranks" env JOB_OF_TEST="$job" "$@" --engine "$engine"
got=$?
if [ "$got" -ne "$status" ]; then
  echo "the status is $got, not $status" >&2
  exit 1
fi
patience=200
# grep's status says nothing here: it is 2 if a process, of whatever kind, ends while it looks.
while left=$(grep -lsa "JOB_OF_TEST=$job" /proc/[0-9]*/environ || true) && [ -n "$left" ] && [ "$patience" -gt 0 ]; do
  sleep 0.1
  patience=$((patience - 1))
done
if [ -n "$left" ]; then
  echo "processes are left: $left" >&2
  exit 1
fi
