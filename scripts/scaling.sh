#!/usr/bin/env bash
# Measures how a program scales, under mpirun: strong and weak, on several numbers of ranks, each repeated; writes a report
# with efficiencies, confidence intervals and plots.
#
#   scripts/scaling.sh [OPTION...] [-- PROGRAM [ARGUMENT...]]
#   scripts/scaling.sh --ranks 1,2,4 --size 64 --repeat 10 -- troupe-cg --stencil {points} --precond jacobi
#   scripts/scaling.sh --kind weak --larger 64,1024,16384 -- troupe-cg --stencil {points} --fault kill@20:{last}
#
# Any program will do that takes --json FILE for its report. Options, placeholders and results: slurm/sweep.sh beside this
# file says them; by default --ranks is 1, 2, 4, ... up to the cores of this machine, and --results scaling-results. The
# variable TROUPE_JOB_LAUNCH_OPTIONS has more options for mpirun, separated by spaces.
set -euo pipefail

say() { printf 'troupe: %s\n' "$*"; }
die() {
  printf 'troupe: error: %s\n' "$*" >&2
  exit 2
}
source "$(dirname "${BASH_SOURCE[0]}")/slurm/sweep.sh"

start() {
  local ranks=$1 options
  shift
  read -r -a options <<<"${TROUPE_JOB_LAUNCH_OPTIONS:-}"
  mpirun -n "$ranks" --oversubscribe --bind-to none "${options[@]}" "$@"
}

case ${1:-} in
  -h | --help)
    sed -n '2,/^[^#]/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
    sed -n '/^# Options, before/,/^[^#]/{/^#/s/^# \{0,1\}//p}' "$sweep_folder/sweep.sh"
    exit 0
    ;;
esac
numbers_of_ranks=1 results=scaling-results
for ((ranks = 2; ranks <= $(nproc); ranks *= 2)); do numbers_of_ranks+=,$ranks; done
parse_sweep "$@"
command -v mpirun >/dev/null || die "there is no mpirun on PATH"
sweep
