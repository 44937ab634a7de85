# shellcheck shell=bash
# What scaling.sh and scaling.sbatch share: a program is run at several numbers of ranks, several times each, and
# scaling_report.py beside this file makes a report of it. To be sourced, by who has say, die and
#
#   start RANKS COMMAND...   runs the command on so many ranks and returns its exit status
#
# Options, before "--"; behind it the program and its arguments (without one: troupe-cg --stencil {points}):
#
#   --ranks N,...        numbers of ranks, rising; the first is what efficiency is measured against
#   --kind KIND,...      strong: one problem, divided among the ranks; weak: the same problem for each rank; both by default
#   --size N             size of the problem (default 32)
#   --repeat N           runs of each kind and number of ranks (default 5)
#   --time FIELD[/FIELD] the time of a run in its report, in seconds (in milliseconds, where its name has _ms), perhaps divided
#                        by another number of it (default seconds/iterations); members within members are named a.b, of
#                        all members of a list a.*.b
#   --recovery FIELD     the times of a run's recoveries, in milliseconds (default recoveries.*.total_ms)
#   --larger N,...       also runs troupe-drill on the most ranks, which simulates recoveries of worlds of so many ranks
#   --results FOLDER     where reports go
#
# In the program's arguments these stand for what differs between runs:
#
#   {ranks} {last}       the number of ranks; the number of the last one, for --fault kill@20:{last}
#   {each}               the size for one rank: strong N / ranks, weak N
#   {all}                the size for all ranks: strong N, weak N x ranks
#   {points}             troupe-cg --stencil: points per axis and rank of a cube with N points per axis, which strong
#                        scaling divides among a power of two of ranks
#
# Results: report.md with plots (time.svg, efficiency.svg, recovery.svg; by gnuplot), the same as scaling.json, and of each
# run its report and its output. Exit status: 0; 1 if a run failed (the others are measured all the same); 2 if nothing
# could be started.

sweep_folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# list_of_numbers NAME TEXT: the numbers of "1,2,4", one a line, rising; ends the script unless they are that.
list_of_numbers() {
  local number last=0
  for number in ${2//,/ }; do
    [[ $number =~ ^[1-9][0-9]{0,7}$ ]] || die "$1: '$number' is no number of ranks"
    ((number > last)) || die "$1: $2 does not rise"
    last=$number
    echo "$number"
  done
  ((last > 0)) || die "$1 has no number"
}

# parse_sweep ARGUMENT...: sets what sweep needs. Before: numbers_of_ranks and results may have defaults.
parse_sweep() {
  kinds=strong,weak size=32 repeat=5 time=seconds/iterations recovery='recoveries.*.total_ms' larger=
  local option
  while (($# > 0)) && [[ $1 != -- ]]; do
    option=$1
    case $option in
      --ranks | --kind | --size | --repeat | --time | --recovery | --larger | --results) ;;
      *) die "unknown option '$option'; the program and its arguments come behind --" ;;
    esac
    if (($# < 2)) || [[ $2 == -- ]]; then die "$option needs a value"; fi
    case $option in
      --ranks) numbers_of_ranks=$2 ;;
      --kind) kinds=$2 ;;
      --size) size=$2 ;;
      --repeat) repeat=$2 ;;
      --time) time=$2 ;;
      --recovery) recovery=$2 ;;
      --larger) larger=$2 ;;
      --results) results=$2 ;;
    esac
    shift 2
  done
  (($# == 0)) || shift
  program=("$@")
  ((${#program[@]} > 0)) || program=(troupe-cg --stencil '{points}')
  [[ $size =~ ^[1-9][0-9]{0,8}$ ]] || die "--size: '$size' is no size"
  [[ $repeat =~ ^[1-9][0-9]{0,3}$ ]] || die "--repeat: '$repeat' is no number of runs"
  [[ $kinds =~ ^(strong|weak)(,(strong|weak))?$ ]] || die "--kind: '$kinds' is neither strong, weak nor both"
  local list
  list=$(list_of_numbers --ranks "$numbers_of_ranks") || exit 2
  mapfile -t ranks_list <<<"$list"
  [[ -z $larger ]] || list_of_numbers --larger "$larger" >/dev/null || exit 2
  command -v python3 >/dev/null || die "the report is made by python3, which is not installed"
  command -v -- "${program[0]}" >/dev/null || die "there is no program '${program[0]}' (neither a path nor on PATH)"
}

# points_for RANKS: per rank and axis, when so many ranks share one cube. Like the ranks' own arrangement in space, each
# doubling halves z, then y, then x.
points_for() {
  local ranks=$1 axis=2 per_axis=("$size" "$size" "$size")
  while ((ranks > 1)); do
    ((ranks % 2 == 0 && per_axis[axis] % 2 == 0)) ||
      die "{points}: $size points per axis do not divide among $1 ranks by halves"
    ((per_axis[axis] /= 2, axis = (axis + 2) % 3, ranks /= 2))
  done
  (IFS=, && echo "${per_axis[*]}")
}

# expand KIND RANKS: sets command to the program with its placeholders filled in.
expand() {
  local kind=$1 ranks=$2 each=$size all=$size points=$size word
  [[ $kind == strong ]] || all=$((size * ranks))
  if [[ $kind == strong && "${program[*]}" == *'{each}'* ]]; then
    ((size % ranks == 0)) || die "{each}: a size of $size does not divide among $ranks ranks"
    each=$((size / ranks))
  fi
  if [[ $kind == strong && "${program[*]}" == *'{points}'* ]]; then points=$(points_for "$ranks") || exit 2; fi
  command=()
  for word in "${program[@]}"; do
    word=${word//'{ranks}'/$ranks} word=${word//'{last}'/$((ranks - 1))} word=${word//'{each}'/$each}
    word=${word//'{all}'/$all} word=${word//'{points}'/$points}
    command+=("$word")
  done
}

# sweep: all runs, then the report.
sweep() {
  local kind ranks run name status failures=0 drill
  for kind in ${kinds//,/ }; do  # what cannot be divided is told before anything runs
    for ranks in "${ranks_list[@]}"; do expand "$kind" "$ranks"; done
  done
  mkdir -p "$results" || die "there can be no folder $results"
  printf '%s\n' "${program[*]}" >"$results/command.txt"
  : >"$results/runs.tsv"
  for kind in ${kinds//,/ }; do
    for ranks in "${ranks_list[@]}"; do
      expand "$kind" "$ranks"
      for ((run = 1; run <= repeat; ++run)); do
        name=$kind-$ranks-$run status=0
        rm -f "$results/$name.json"
        start "$ranks" "${command[@]}" --json "$results/$name.json" >"$results/$name.txt" 2>&1 </dev/null || status=$?
        printf '%s\t%s\t%s\t%s\n' "$kind" "$ranks" "$status" "$name.json" >>"$results/runs.tsv"
        ((status == 0)) || { failures=$((failures + 1)) && say "$kind, $ranks ranks: status $status, see $results/$name.txt"; }
      done
    done
  done
  rm -f "$results/drill.json"
  if [[ -n $larger ]]; then
    drill=$(dirname "$(command -v -- "${program[0]}")")/troupe-drill
    [[ -x $drill ]] || drill=troupe-drill
    start "${ranks_list[-1]}" "$drill" --kinds kill --repetitions 3 --world-size "$larger" --json "$results/drill.json" \
      >"$results/drill.txt" 2>&1 </dev/null ||
      { failures=$((failures + 1)) && say "troupe-drill: status $?, see $results/drill.txt"; }
  fi
  python3 "$sweep_folder/scaling_report.py" "$results" "$time" "$recovery" || return 1
  ((failures == 0))
}
