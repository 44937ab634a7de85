#!/usr/bin/env bash
# nodes.sh BIN-FOLDER SCRIPTS-FOLDER: jobs over two nodes of a Slurm that share no memory, by srun and by mpirun.
set -euo pipefail
source "$(dirname "$0")/lib/common.sh"
source "$here/lib/hosts.sh"
source "$here/lib/slurm.sh"
enter_capsule "$@"
raise_hosts 2
start_slurm_on_hosts 2 2 2

readonly two_per_node=(-N 2 --gpus-per-node=2 --cpus-per-gpu=1)

for launcher in srun mpirun; do
  export TROUPE_JOB_LAUNCHER=$launcher
  succeeds "info-$launcher" "${two_per_node[@]}" -- troupe.sbatch troupe-info --standby off
  shows "info-$launcher.txt" "4 tasks, 2 per node, cores per task: 1, GPUs per node: 2"
  for host in h1 h2; do shows "info-$launcher.txt" "host $host \(local rank [01]\)" 2; done

  report=cg-$launcher.json
  succeeds "cg-$launcher" "${two_per_node[@]}" -- \
    troupe.sbatch troupe-cg --stencil 12 --check-every 5 --commit-every 5 --fault kill@10:3 --json "$report"
  shows "$report" '"kind": "kill"'  # a host that stands still may cost more recoveries
  within 1e-5 "$(value "$report" relative_error)" || fail "the answer is off by $(value "$report" relative_error)"
  note "$launcher: 2 x 2 ranks, a device host killed, the right answer"
done
note passed
