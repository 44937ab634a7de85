#!/usr/bin/env bash
# binding.sh BIN-FOLDER SCRIPTS-FOLDER: what Slurm binds stays bound, under srun and mpirun; the number of ranks follows
# from the GPUs or the tasks of the job.
set -euo pipefail
source "$(dirname "$0")/lib/common.sh"
source "$here/lib/slurm.sh"
enter_capsule "$@"

readonly info=(troupe.sbatch troupe-info --standby off)
# The first two cores that this container may use.
cores=()
for ((core = 0; core < 1024 && ${#cores[@]} < 2; ++core)); do
  ! taskset -c "$core" true 2>/dev/null || cores+=("$core")
done
((${#cores[@]} == 2)) || skip "this wants two cores"
start_slurm $((cores[1] + 1)) 4

note "one rank per GPU, by srun"
succeeds gpus --gpus-per-node=2 --cpus-per-gpu=1 -- "${info[@]}"
shows gpus.txt "2 tasks, 2 per node, cores per task: 1, GPUs per node: 2"
shows gpus.txt "launcher: srun, MPI plugin: pmix"
shows gpus.txt "rank +[01] +host node1" 2

note "that job looked over"
succeeds check --gpus-per-node=2 --cpus-per-gpu=1 -- troupe.sbatch troupe-info --check --checkpoint-dir "$work"
shows check.txt "^ok +Slurm +Slurm has 2 tasks, MPI has 2 ranks"
shows check.txt "^ok +saved states +$work: all ranks see the same folder"
shows check.txt "^ok +all_reduce "

note "as many ranks as tasks, by mpirun"
TROUPE_JOB_LAUNCHER=mpirun succeeds tasks -n 2 -- "${info[@]}"
shows tasks.txt "launcher: mpirun"
shows tasks.txt "rank +[01] +host node1" 2

printf -v masks '0x%x,0x%x' $((1 << cores[0])) $((1 << cores[1]))
note "a mask for each rank, by srun: $masks"
SLURM_CPU_BIND=mask_cpu:$masks succeeds masks -n 2 --exclusive -- "${info[@]}"
shows masks.txt "rank   0 .* cores ${cores[0]},"
shows masks.txt "rank   1 .* cores ${cores[1]},"

note "what the job may use on its node, by mpirun, within salloc"
TROUPE_JOB_LAUNCHER=mpirun salloc -Q -n 2 --exclusive taskset -c "${cores[1]}" \
  "$scripts/slurm/${info[0]}" "${info[@]:1}" >node.txt 2>&1 || { cat node.txt && fail "status $?"; }
shows node.txt "rank .* cores ${cores[1]}," 2
note passed
