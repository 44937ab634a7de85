#!/bin/sh
# run_mpi.sh MIN MAX STATUS PROGRAM [ARGUMENTS]: PROGRAM under mpirun on MAX ranks; with TROUPE_TEST_BACKEND=cuda on as many
# as there are GPUs to be seen, if that is fewer. Fewer than MIN: skipped (status 77). Succeeds if mpirun ends with STATUS and no
# process of this job is left. A job that is still there after 150 seconds is described, thread by thread, on standard error.
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
processes_of_job() { grep -lsa "JOB_OF_TEST=$job" /proc/[0-9]*/environ | cut -d/ -f3; }
describe() {
  for pid in "$@"; do
    echo "process $pid of $(sed -n 's/^PPid:\t//p' "/proc/$pid/status"): $(tr '\0' ' ' <"/proc/$pid/cmdline")"
    for thread in "/proc/$pid/task"/*; do
      echo "  thread ${thread##*/} $(cat "$thread/comm"), $(sed -n 's/^State:\t//p' "$thread/status"), in $(cat "$thread/wchan")"
    done
    ! command -v gdb >/dev/null || timeout 30 gdb -batch -p "$pid" -ex "thread apply all backtrace 20" 2>/dev/null | grep '^[T#]'
  done
}
{
  trap '[ -z "$sleeping" ] || kill "$sleeping"; exit' TERM
  sleeping=
  sleep 150 >/dev/null 2>&1 &
  sleeping=$!
  wait "$sleeping"
  { echo "the job has not ended after 150 s:" && describe "$(pgrep -xo -f "mpirun.*$job.*")" $(processes_of_job); } 2>/dev/null >&3
} 3>&2 2>/dev/null &
alarm=$!
# TEST_OVER_LINKS: a keeper starts each rank, and the ranks speak TCP. Its numbers: no spare processes, patience of 10 s and
# 2 s, three restarts in 60 s, nothing that waits for the rank's end.
program=$1
shift
if [ -n "$TEST_OVER_LINKS" ]; then
  set -- 0 10000000000 2000000000 3 60000000000 0 0 "$program" "$program" "$@"
  program=$(dirname "$program")/../libexec/troupe/troupe-keeper
fi
mpirun --oversubscribe --bind-to none -n "$ranks" env JOB_OF_TEST="$job" "$program" "$@" --engine "$engine"
got=$?
kill "$alarm" 2>/dev/null
if [ "$got" -ne "$status" ]; then
  echo "the status is $got, not $status" >&2
  exit 1
fi
end=$(($(date +%s) + 20))
while left=$(processes_of_job) && [ -n "$left" ] && [ "$(date +%s)" -lt "$end" ]; do
  sleep 0.1
done
if [ -n "$left" ]; then
  echo "processes are left:" >&2
  describe $left >&2
  exit 1
fi
