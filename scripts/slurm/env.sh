# shellcheck shell=bash
# What the job scripts beside this file share: what Slurm gave the job, how ranks are started in it, and when a job goes
# back into the queue. To be sourced by bash; the scripts do that themselves.
#
# Variables, all optional; sbatch passes them on (TROUPE_JOB_LAUNCHER=mpirun sbatch troupe.sbatch ...):
#
#   TROUPE_JOB_LAUNCHER        srun, mpirun, or auto (default): srun if it has the plugin below, else mpirun
#   TROUPE_JOB_MPI_PLUGIN      how srun and MPI meet (srun --mpi=...); default: pmix, which Open MPI wants
#   TROUPE_JOB_LAUNCH_OPTIONS  more options for srun or mpirun, separated by spaces, for instance --gpu-bind=closest
#   TROUPE_JOB_MAX_RESTARTS    how often one job may go back into the queue; default: 10
#   TROUPE_JOB_SPARE_NODES     so many nodes of the job have no ranks, until a node is lost; default: 0
#   TROUPE_JOB_BURN_IN         troupe.sbatch tests the nodes for so long before the program starts, for instance 60s; default: 0
#   TROUPE_JOB_SCRIPTS         the folder of these scripts, should a job not find it by itself
#
# Settings of the programs themselves (TROUPE_ENGINE, TROUPE_CHECKPOINT_DIR, ...) reach the ranks as they are.
#
# How many ranks: as many tasks as were asked for (--ntasks, --ntasks-per-node); else one for each GPU of each node; else
# one per node. Cores per rank: --cpus-per-task; else the node's share. Under srun it is Slurm that binds ranks to cores
# and GPUs, by the options of the job (--cpus-per-task, --gpus-per-task, --gpu-bind), SLURM_CPU_BIND and its own settings;
# nothing here undoes that. mpirun is told to bind nothing: its ranks keep what Slurm left to the job on that node, and
# each takes the GPU of its local rank.

say() { printf 'troupe: %s\n' "$*"; }
die() {
  printf 'troupe: error: %s\n' "$*" >&2
  exit 2
}

# The leading comment of a script is its help.
usage() { sed -n '2,/^[^#]/{/^#/{/^#SBATCH/d;s/^# \{0,1\}//;p}}' "$1"; }

# Programs are looked for on PATH, and in the install tree that these scripts belong to.
PATH=$PATH:$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)/bin

# whole_number NAME VALUE: ends the job unless VALUE is one.
whole_number() { [[ $2 =~ ^[0-9]{1,9}$ ]] || die "$1 is '$2', which is not a whole number"; }

# gpus_in COUNTS: the sum of what Slurm writes as "4", "h200:4" or "a100:2,h200:2(S:0-1)".
gpus_in() {
  local entry sum=0
  for entry in ${1//,/ }; do
    entry=${entry%%(*}
    entry=${entry##*:}
    [[ $entry =~ ^[0-9]+$ ]] && sum=$((sum + entry))
  done
  echo "$sum"
}

# fewest_of LIST: the smallest number in what Slurm writes as "8(x2),4".
fewest_of() {
  local entry fewest=
  for entry in ${1//,/ }; do
    entry=${entry%%(*}
    [[ -n $fewest ]] && ((fewest <= entry)) || fewest=$entry
  done
  echo "${fewest:-1}"
}

# Sets nodes, tasks, tasks_per_node, cores_per_task (0: more tasks than cores) and gpus_per_node.
find_allocation() {
  [[ -n ${SLURM_JOB_ID:-} ]] || die "this is no Slurm job: submit the script with sbatch, or run it within salloc"
  nodes=${SLURM_JOB_NUM_NODES:-${SLURM_NNODES:-1}}
  gpus_per_node=$(gpus_in "${SLURM_GPUS_ON_NODE:-${SLURM_GPUS_PER_NODE:-0}}")
  local spare=${TROUPE_JOB_SPARE_NODES:-0} busy
  whole_number TROUPE_JOB_SPARE_NODES "$spare"
  busy=$((nodes - spare))
  ((busy > 0)) || die "TROUPE_JOB_SPARE_NODES is $spare, and the job has $nodes node(s)"
  # Slurm derives the number of tasks from that of a node, for all nodes.
  if [[ -n ${SLURM_NTASKS:-} && $spare == 0 ]]; then
    tasks=$SLURM_NTASKS
  elif [[ -n ${SLURM_NTASKS_PER_NODE:-} ]]; then
    tasks=$((busy * SLURM_NTASKS_PER_NODE))
  elif [[ -n ${SLURM_NTASKS:-} ]]; then
    tasks=$SLURM_NTASKS
  else
    tasks=$((busy * (gpus_per_node > 0 ? gpus_per_node : 1)))
  fi
  tasks_per_node=$(((tasks + busy - 1) / busy))
  cores_per_task=${SLURM_CPUS_PER_TASK:-$(($(fewest_of "${SLURM_JOB_CPUS_PER_NODE:-1}") / tasks_per_node))}
  if ((gpus_per_node > 0 && tasks_per_node > gpus_per_node)) && [[ ${TROUPE_ENGINE:-} != cpu ]]; then
    say "warning: $tasks_per_node tasks per node for $gpus_per_node GPUs; a rank needs a GPU of its own"
  fi
}

# Sets launcher, and plugin for srun.
find_launcher() {
  local known
  launcher=${TROUPE_JOB_LAUNCHER:-auto}
  plugin=${TROUPE_JOB_MPI_PLUGIN:-pmix}
  # srun writes the list to either output, after a headline or two.
  known=$(srun --mpi=list 2>&1 | tr -cs 'a-zA-Z0-9_\n' ' ') || known=
  if [[ $launcher == auto ]]; then
    launcher=mpirun
    grep -qw -- "$plugin" <<<"$known" && launcher=srun
  fi
  case $launcher in
    srun)
      grep -qw -- "$plugin" <<<"$known" ||
        die "srun has no MPI plugin '$plugin'; set TROUPE_JOB_MPI_PLUGIN to one of 'srun --mpi=list', or" \
          "TROUPE_JOB_LAUNCHER=mpirun"
      ;;
    mpirun)
      command -v mpirun >/dev/null ||
        die "there is no mpirun on PATH, and srun has no MPI plugin '$plugin' or is not to be used: load Open MPI"
      ;;
    *) die "TROUPE_JOB_LAUNCHER is '$launcher', which is neither auto, srun nor mpirun" ;;
  esac
}

# Says what was found, in a few lines.
describe_job() {
  local restarts=${SLURM_RESTART_COUNT:-0}
  say "job $SLURM_JOB_ID on $nodes node(s) (${SLURM_JOB_NODELIST:-?}), restart $restarts of at most $max_restarts"
  say "$tasks tasks, $tasks_per_node per node, cores per task: $cores_per_task, GPUs per node: $gpus_per_node"
  case $launcher in
    srun) say "launcher: srun, MPI plugin: $plugin" ;;
    mpirun) say "launcher: $(mpirun --version 2>/dev/null | head -n 1), $(command -v mpirun)" ;;
  esac
}

# report_value FILE KEY: of a program's JSON report, the first member of that name.
report_value() { sed -n "s/^ *\"$2\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}\$/\1/p" "$1" | head -n 1; }

# Everything above, once per job.
prepare_job() {
  max_restarts=${TROUPE_JOB_MAX_RESTARTS:-10}
  whole_number TROUPE_JOB_MAX_RESTARTS "$max_restarts"
  find_allocation
  find_launcher
  describe_job
}

# find_program NAME: ends the job unless it can be started.
find_program() { command -v -- "$1" >/dev/null || die "there is no program '$1' (neither a path nor on PATH)"; }

# launch_command RANKS: sets launch to the command that starts so many ranks, on as few nodes as hold them.
launch_command() {
  local ranks=$1 per_node used options
  per_node=$((ranks < tasks_per_node ? ranks : tasks_per_node))
  used=$(((ranks + per_node - 1) / per_node))
  read -r -a options <<<"${TROUPE_JOB_LAUNCH_OPTIONS:-}"
  case $launcher in
    srun)
      # A rank that leaves with status 75 must not have the others killed: srun would return their 137 instead.
      launch=(srun --mpi="$plugin" --kill-on-bad-exit=0 --nodes="$used" --ntasks="$ranks" --ntasks-per-node="$per_node")
      # Since Slurm 22.05 srun does not take over --cpus-per-task of the job.
      if ((cores_per_task > 0)); then
        launch+=(--cpus-per-task="$cores_per_task")
      else
        launch+=(--overcommit)
      fi
      ;;
    mpirun)
      launch=(mpirun -n "$ranks" --oversubscribe)
      case " ${options[*]} " in
        *" --map-by "* | *" --bind-to "* | *" --rankfile "*) ;;
        *) launch+=(--map-by "ppr:$per_node:node" --bind-to none) ;;
      esac
      # A node that is cut off is noticed within half a minute rather than ten.
      export OMPI_MCA_oob_tcp_keepalive_time=${OMPI_MCA_oob_tcp_keepalive_time:-10}
      export OMPI_MCA_oob_tcp_keepalive_intvl=${OMPI_MCA_oob_tcp_keepalive_intvl:-3}
      export OMPI_MCA_oob_tcp_keepalive_probes=${OMPI_MCA_oob_tcp_keepalive_probes:-5}
      ;;
  esac
  launch+=("${options[@]}")
}

# launch_by_troupe_run: what the launch command starts is started again where a node is lost, by troupe-run, which is
# installed with the programs and lies beside this folder in the source tree. Sets job_folder, which goes with the script, and
# lost_nodes, a file in it: troupe-run leaves out the nodes that it names, and appends the lost ones.
launch_by_troupe_run() {
  local run
  run=$(command -v troupe-run) || run=$(dirname "${BASH_SOURCE[0]}")/../troupe-run
  [[ -x $run ]] || die "there is no troupe-run beside the programs"
  job_folder=$(mktemp -d)
  trap 'rm -rf "$job_folder"' EXIT
  lost_nodes=$job_folder/lost
  export TROUPE_JOB_LOST_NODES=$lost_nodes TROUPE_JOB_LAUNCHER=$launcher
  export TROUPE_ON_RANK_LOSS=${TROUPE_ON_RANK_LOSS:-stop}
  launch=("$run" "${launch[@]:1}" --)
}

# USR1 to the batch script: the job is to end soon. srun and mpirun both pass the signal on to all ranks, which commit
# their state to disk and leave with status 75.
forward_signal() {
  interrupted=yes
  if [[ -n $step ]]; then
    say "signal USR1: passing it on to the ranks, which are to write their state and to leave with status 75"
    kill -USR1 "$step" 2>/dev/null || true
  fi
}

# wait_for_step: until the process `step` has ended, and sets status to its exit status. A trap that sets interrupted to yes
# ends `wait` early; the status of a child that has ended meanwhile is kept for the next one.
wait_for_step() {
  while
    interrupted=no status=0
    wait "$step" || status=$?
    [[ $interrupted == yes ]]
  do :; done
}

# run_step PROGRAM [OPTION...]: runs it by the launch command and returns its exit status, passing USR1 on meanwhile.
run_step() {
  local status interrupted=no step=
  trap forward_signal USR1
  "${launch[@]}" "$@" &
  step=$!
  [[ $interrupted == no ]] || forward_signal
  wait_for_step
  trap - USR1
  return "$status"
}

# avoid_nodes LIST: the next start of this job, which waits in the queue, gets other nodes.
avoid_nodes() {
  local try before
  before=$(scontrol -o show job "$SLURM_JOB_ID" | sed -n 's/.* ExcNodeList=\([^ ]*\).*/\1/p')
  [[ $before != "(null)" ]] || before=
  for try in 1 2 3 4 5 6 7 8 9 10; do
    if scontrol update JobId="$SLURM_JOB_ID" ExcNodeList="$before${before:+,}$1" 2>/dev/null; then
      say "the job will not use $1 again"
      return
    fi
    sleep "0.$try"
  done
  say "error: Slurm does not let this job avoid $1"
}

# requeue_or_exit STATUS: ends the batch script. Status 75 puts the job back into the queue, so often as may be.
requeue_or_exit() {
  local status=$1 restarts=${SLURM_RESTART_COUNT:-0}
  ((status == 75)) || exit "$status"
  if ((restarts >= max_restarts)); then
    say "status 75, but $restarts restarts are as many as TROUPE_JOB_MAX_RESTARTS allows: the job ends here"
    exit 75
  fi
  say "status 75: back into the queue (restart $((restarts + 1)) of at most $max_restarts)"
  # Slurm ends this script, which has a last thing to say once the job waits again.
  trap '' TERM
  if ! scontrol requeue "$SLURM_JOB_ID"; then
    say "error: Slurm does not requeue this job (sbatch --requeue, JobRequeue in slurm.conf): submit it again by hand"
  elif [[ -s ${lost_nodes:-} ]]; then
    avoid_nodes "$(sort -u "$lost_nodes" | paste -sd,)"
  fi
  exit 75
}
