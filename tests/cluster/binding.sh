#!/usr/bin/env bash
# binding.sh BIN-FOLDER SCRIPTS-FOLDER: what Slurm binds stays bound, under srun and mpirun; the number of ranks follows
# from the GPUs or the tasks of the job.
set -euo pipefail
source "$(dirname "$0")/lib/common.sh"
source "$here/lib/slurm.sh"
enter_capsule "$@"
# job NAME SBATCH-OPTION...: troupe-info as a job; its output is in NAME.txt.
job() {
  local name=$1 id
  shift
  id=$(sbatch --parsable -o "$name.txt" "$@" "$scripts/slurm/troupe.sbatch" troupe-info --standby off)
  wait_for_job "$id" 60 "$name.txt"
  [[ $(job_exit "$id") == 0 ]] || { cat "$name.txt" && fail "$name: exit status $(job_exit "$id")"; }
}
# shows NAME PATTERN [COUNT]: so many lines (default: 1) of the job's output match
shows() {
  local found
  found=$(grep -cE "$2" "$1.txt") || true
  [[ $found == "${3:-1}" ]] || { cat "$1.txt" && fail "$1: $found lines match '$2', not ${3:-1}"; }
}

# The first two cores that this container may use.
cores=()
for ((core = 0; core < 1024 && ${#cores[@]} < 2; ++core)); do
  ! taskset -c "$core" true 2>/dev/null || cores+=("$core")
done
((${#cores[@]} == 2)) || skip "this wants two cores"
start_slurm $((cores[1] + 1)) 4

note "one rank per GPU, by srun"
job gpus --gpus-per-node=2 --cpus-per-gpu=1
shows gpus "2 tasks, 2 per node, cores per task: 1, GPUs per node: 2"
shows gpus "launcher: srun, MPI plugin: pmix"
shows gpus "rank +[01] +host node1" 2

note "as many ranks as tasks, by mpirun"
TROUPE_JOB_LAUNCHER=mpirun job tasks -n 2
shows tasks "launcher: mpirun"
shows tasks "rank +[01] +host node1" 2

printf -v masks '0x%x,0x%x' $((1 << cores[0])) $((1 << cores[1]))
note "a mask for each rank, by srun: $masks"
SLURM_CPU_BIND=mask_cpu:$masks job masks -n 2 --exclusive
shows masks "rank   0 .* cores ${cores[0]},"
shows masks "rank   1 .* cores ${cores[1]},"

note "what the job may use on its node, by mpirun, within salloc"
TROUPE_JOB_LAUNCHER=mpirun salloc -Q -n 2 --exclusive taskset -c "${cores[1]}" \
  "$scripts/slurm/troupe.sbatch" troupe-info --standby off >node.txt 2>&1 || { cat node.txt && fail "status $?"; }
shows node "rank .* cores ${cores[1]}," 2
note passed
