#!/usr/bin/env bash
# nodes.sh BIN-FOLDER SCRIPTS-FOLDER: jobs over nodes of a Slurm that share no memory, by srun and by mpirun: on all nodes of
# the job, and without a node that a burn-in has found bad.
set -euo pipefail
source "$(dirname "$0")/lib/common.sh"
source "$here/lib/hosts.sh"
source "$here/lib/slurm.sh"
enter_capsule "$@"
raise_hosts 3
start_slurm_on_hosts 2 2 3

# In a burn-in the rank on h1, the first one as long as the job has that node, computes a product with a wrong bit.
mkdir sick mute
cat >sick/troupe-info <<END
#!/usr/bin/env bash
[[ \$SLURM_JOB_NODELIST != h*1* ]] || set -- "\$@" --fault flip-result@1:0
exec "$bin/troupe-info" "\$@"
END
# This one does not come to a verdict.
cat >mute/troupe-info <<'END'
#!/usr/bin/env bash
echo "burn-in: not run"
exit 1
END
# A program whose ranks say where they are.
cat >tells-host <<'END'
#!/usr/bin/env bash
echo "a rank on $(hostname)"
exec troupe-cg --stencil 8 --standby off "$@"
END
chmod +x sick/troupe-info mute/troupe-info tells-host
# submit_with_burn_in FOLDER NAME [SBATCH-OPTION...] -- PROGRAM...: a job with one task per node; troupe-info is in the folder
submit_with_burn_in() {
  local name=$2 options=()
  local -x PATH=$work/$1:$PATH
  shift 2
  while [[ $1 != -- ]]; do options+=("$1") && shift; done
  TROUPE_JOB_BURN_IN=100ms submit "$name" --ntasks-per-node=1 "${options[@]}" -- troupe.sbatch "${@:2}"
}
readonly wrong_product="products: rank 0 \(h1, [^)]*\): 1 of [0-9]+ products of f32 "

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

  job=$(TROUPE_JOB_SPARE_NODES=1 submit_with_burn_in sick "spare-$launcher" -N 3 -- \
    "$PWD/tells-host" --json "spare-$launcher.json")
  ended "spare-$launcher" "$job"
  shows "spare-$launcher.txt" "^troupe: bad node h1: $wrong_product"
  shows "spare-$launcher.txt" "^troupe-run: left out: h1"
  for host in h2 h3; do shows "spare-$launcher.txt" "^a rank on $host"; done
  within 1e-5 "$(value "spare-$launcher.json" relative_error)" || fail "the answer is off"
  note "$launcher: a bad node is left out"
done

export TROUPE_JOB_LAUNCHER=srun
job=$(submit_with_burn_in sick few -N 2 -- hostname)
ended few "$job" 0 1
shows few.txt "^troupe: bad node h1: $wrong_product"
shows few.txt "^troupe-run: the nodes that are left \(h2\) are too few for the job: it ends with status 75"
shows few.txt "^troupe: the job will not use h1 again"
shows few.txt "^burn-in: no bad host"
for host in h2 h3; do shows few.txt "^$host"; done
note "without a node to spare: back into the queue, and on others"

ended mute "$(submit_with_burn_in mute mute -N 2 -- hostname)"
shows mute.txt "^troupe: warning: no burn-in \(not run, status 1\): the job goes on with all of its nodes"
for host in h1 h2; do shows mute.txt "^$host"; done
note "a burn-in without a verdict: a warning"
note passed
