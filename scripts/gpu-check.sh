#!/usr/bin/env bash
# Runs tests, fault drills and benchmarks of a build on this machine's GPUs, and ends with a table of what passed.
#
#   scripts/gpu-check.sh [--quick] [--only GROUP,...] [--tests REGEX] [--seconds N] BUILD-FOLDER
#
# Groups, in this order:
#   unit         the unit tests of the cuda engine
#   conformance  every operation against the reference
#   judge        random calls of the libraries, judged by NumPy and SciPy, by CuPy, and dnn by PyTorch, where they are installed
#   process      device hosts that die, without MPI
#   cg           troupe-cg without a fault, with every kind of fault, with two faults
#   bench        the benchmarks
#   spmv         troupe-cg --stencil 256 in double precision on one GPU
#   hosts        two hosts of one GPU each: collectives, tokens, recovery, with figures (needs 2 GPUs)
#   mpi, app     the tests under mpirun
#   soak         troupe-cg again and again with random faults (soak.sh beside this file)
#   netlib       netlib's tests of BLAS, and of LAPACK in a build with -DTROUPE_LAPACK_TESTS=ON
#
# --only runs some of the groups, --tests only those tests of unit, conformance, process, mpi, app and netlib whose names match,
# --quick repeats less often and takes smaller problems. Every step has a limit of its own; --seconds N ends all of them
# after so long, and what is not done by then has failed. A step that fails stops no other. On two H200s the groups from
# unit to spmv take 7 minutes.
#
# The build folder must be in the place where it was configured, its sources too; for another machine, scripts/pack-tests.sh
# packs them. All output goes to OUT_DIR (default: gpu-check.out), with summary.txt and summary.json. Exit status: 0 if all
# steps passed, 1 if not, 2 for bad usage; a figure that misses its target is no failure.
set -euo pipefail
source "$(dirname "$0")/lib/build.sh"
export LC_ALL=C

all_groups=(unit conformance judge process cg bench spmv hosts mpi app soak netlib)
quick=0 only="${all_groups[*]}" build='' matching=. seconds=''
while (($#)); do
  case $1 in
    -h | --help) usage && exit 0 ;;
    --quick) quick=1 ;;
    --only | --tests | --seconds)
      [[ $# -ge 2 ]] || { usage >&2 && exit 2; }
      case $1 in
        --only) only=${2//,/ } ;;
        --tests) matching=$2 ;;
        --seconds) seconds=$2 ;;
      esac
      shift
      ;;
    -*) usage >&2 && exit 2 ;;
    *)
      [[ -z $build ]] || { usage >&2 && exit 2; }
      build=$1
      ;;
  esac
  shift
done
for group in $only; do
  [[ " ${all_groups[*]} " == *" $group "* ]] || { echo "gpu-check.sh: unknown group $group" >&2 && exit 2; }
done
[[ ${seconds:-1} =~ ^[1-9][0-9]*$ && -n $build && -d $build/bin ]] || { usage >&2 && exit 2; }
build=$(cd "$build" && pwd)
bin=$build/bin
out=${OUT_DIR:-gpu-check.out}
mkdir -p "$out"
out=$(cd "$out" && pwd)
gpus=$(gpu_count)
((gpus > 0)) || die "there is no GPU here"

mpi_environment
# NVLink multicast keeps state in the switches: what a killed process leaves there can hit others.
export NCCL_NVLS_ENABLE=${NCCL_NVLS_ENABLE:-0}
export TROUPE_TEST_BACKEND=cuda
victim=$((gpus > 1 ? 1 : 0))
end=$((SECONDS + ${seconds:-1000000}))
failures=0 missed=0
steps=() figures=()  # "name|result|seconds", "name|value|target|met"

wanted() { [[ " $only " == *" $1 "* ]]; }
on_gpus() { echo mpirun -n "$1" --oversubscribe --bind-to none; }

# step NAME LIMIT-IN-SECONDS COMMAND...: runs it, its output in NAME.log. Status 77 of it: skipped.
step() {
  local name=$1 limit=$2 status=0 started=$SECONDS left=$((end - SECONDS)) result
  shift 2
  if ((left < 2)); then
    ((failures += 1))
    steps+=("$name|FAIL: no time left|")
    return 1
  fi
  ((limit < left)) || limit=$left
  say "$name"
  { printf '$'; printf ' %q' "$@"; echo; } >"$out/$name.log"
  timeout --kill-after=5 "$limit" "$@" >>"$out/$name.log" 2>&1 </dev/null || status=$?
  case $status in
    0) result=pass ;;
    77) result="skipped: $(tail -n 1 "$out/$name.log")" ;;
    124 | 137) result="FAIL: stopped after $limit s" ;;
    *) result="FAIL: status $status" ;;
  esac
  steps+=("$name|$result|$((SECONDS - started))")
  [[ $result == FAIL* ]] || return "$status"
  ((failures += 1))
  tail -n 12 "$out/$name.log" | sed 's/^/   /'
  return 1
}

# reject WHY: the last step ended well but did not do what it should.
reject() {
  local name seconds
  IFS='|' read -r name _ seconds <<<"${steps[-1]}"
  ((failures += 1))
  steps[-1]="$name|FAIL: $1|$seconds"
}

# figure NAME VALUE UNIT [OP TARGET]: of the last step. OP is le (at most) or ge (at least). Nothing here is ever zero:
# without a positive value it was not measured, and the step has failed.
figure() {
  local name=$1 value=$2 unit=$3 op=${4:-} target=${5:-} met="" sign=""
  if ! awk -v v="$value" 'BEGIN { exit !(v + 0 > 0) }'; then
    reject "$name was not measured"
    return 0
  fi
  if [[ -n $op ]]; then
    [[ $op == le ]] && sign='<=' || sign='>='
    if awk -v v="$value" -v t="$target" -v op="$op" 'BEGIN { exit !(op == "le" ? v <= t : v >= t) }'; then
      met=yes
    else
      met=NO
      ((missed += 1))
    fi
  fi
  figures+=("$name|$(awk -v v="$value" 'BEGIN { printf "%.4g", v }') $unit|${sign:+$sign $target}|$met")
}

# value FILE KEY: of a JSON file with a key a line, the first of that name
value() { sed -n "s/^ *\"$2\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}\$/\1/p" "$1" | head -n 1; }

# field LINE KEY: of a JSON object on one line, text or number
field() { sed -n -e "s/.*\"$2\":\"\([^\"]*\)\".*/\1/p" -e t -e "s/.*\"$2\":\([^\",}]*\).*/\1/p" <<<"$1"; }

# median CSV BENCHMARK COLUMN: of what Google Benchmark wrote
median() {
  awk -F, -v name="$2" -v column="$3" '
    { gsub(/"/, "") }
    $1 == "name" { for (i = 1; i <= NF; ++i) if ($i == column) at = i }
    at && index($1, name "/") == 1 && $1 ~ /_median$/ { print $at; exit }' "$1"
}

# ---- tests

# tests GROUP LIMIT [REGEX]: those with that label, and with a name that matches, by CTest
tests() {
  local group=$1 limit=$2 log=$out/$1.log skipped names
  wanted "$group" || return 0
  local select=(ctest --test-dir "$build" -L "^$group\$" -R "${3:-$matching}")
  [[ $("${select[@]}" -N 2>/dev/null) =~ 'Total Tests: '[1-9] ]] || {
    steps+=("$group|no such tests in this build|")
    return 0
  }
  step "$group" "$limit" "${select[@]}" --output-on-failure --timeout 300 || true
  names=$(sed -n 's/^\t *[0-9]* - \(.*\) (\(Failed\|Timeout\|Not Run\|SEGFAULT\|Subprocess.*\)).*/\1/p' "$log")
  while read -r name; do [[ -z $name ]] || steps+=("  $name|FAIL|"); done <<<"$names"
  skipped=$(grep -c '\*\*\*Skipped' "$log" || true)
  ((skipped == 0)) || steps+=("  of these|$skipped skipped|")
  # Tests that find no GPU skip themselves, which must not look like success.
  grep -q ' Passed ' "$log" || [[ ${steps[-1]} == *FAIL* ]] || reject "not one of its tests ran"
}

# ---- judges

judges() {
  local by
  for by in numpy cupy torch; do
    # shellcheck disable=SC2154  # root: from build.sh
    step "judge-$by" 240 "$(judge_python "$by")" -B "$root/tests/judges/judge.py" --judge "$by" \
      --rounds $((quick ? 1 : 3)) "$bin/judge" "$bin/observed_calls" "$bin/troupe-info" || true
  done
}

# judge_python MODULE: the first Python that has it, and what else the judge needs
judge_python() {
  local candidate beside=scipy
  [[ $1 != torch ]] || beside=numpy
  for candidate in python3 /usr/bin/python3; do
    ! "$candidate" -c "import $beside, $1" >/dev/null 2>&1 || { echo "$candidate" && return; }
  done
  echo python3
}

# ---- fault drills

# cg NAME RANKS LIMIT OPTION...: troupe-cg, its report in NAME.json
cg() {
  local name=$1 ranks=$2 limit=$3
  shift 3
  rm -f "$out/$name.json"
  # shellcheck disable=SC2046
  step "$name" "$limit" $(on_gpus "$ranks") "$bin/troupe-cg" --engine cuda --json "$out/$name.json" "$@"
}

# drill NAME RECOVERIES FAULT...: must end as the run without a fault does.
drill() {
  local name=$1 recoveries=$2 report=$out/$1.json seen fault faults=()
  shift 2
  for fault in "$@"; do faults+=(--fault "$fault"); done
  cg "$name" "$gpus" 60 "${problem[@]}" "${faults[@]}" || return 0
  seen=$(grep -c '"repeated_iterations"' "$report" || true)
  if ((seen < recoveries)); then
    reject "$seen recoveries in its report, not $recoveries"
  elif [[ $(value "$report" iterations) != "$iterations" ]]; then
    reject "$(value "$report" iterations) iterations instead of $iterations"
  else
    figure "$name, recovery" "$(value "$report" total_ms)" "ms ($(value "$report" kind))"
  fi
}

fault_drills() {
  local kind kinds=(kill illegal-address trap assert misaligned segv exit hang)
  problem=(--stencil $((quick ? 64 : 128)) --tol 1e-10 --max-iter 2000 --check-every 5 --commit-every 20)
  cg cg-no-fault "$gpus" 60 "${problem[@]}" || return 0
  iterations=$(value "$out/cg-no-fault.json" iterations)
  for kind in "${kinds[@]}"; do drill "cg-$kind" 1 "$kind@50:$victim"; done
  drill cg-two-faults 2 "kill@30:0" "illegal-address@60:$victim"
  drill cg-fault-in-recovery 1 "kill@50:$victim" "kill@form:0"
  # shellcheck disable=SC2046
  step cg-standby-off 60 $(on_gpus "$gpus") "$bin/troupe-cg" --engine cuda "${problem[@]}" --standby off \
    --fault "trap@50:$victim" || true
}

# ---- benchmarks

gbench=(--benchmark_repetitions=$((quick ? 3 : 7)) --benchmark_min_time=0.1
  --benchmark_report_aggregates_only=true --benchmark_out_format=csv)

bench_commands() {
  local csv=$out/command_bench.csv name
  step command_bench 60 "$bin/command_bench" "${gbench[@]}" "--benchmark_out=$csv" || return 0
  for name in tell_nop tell_axpy; do
    figure "$name, per call" "$(awk -v v="$(median "$csv" $name tell)" 'BEGIN { print v * 1e6 }')" us le 0.1
  done
  figure "no-op round trip" "$(median "$csv" nop_round_trip real_time)" us le 1
  figure "tiny kernel round trip" "$(median "$csv" kernel_round_trip real_time)" us
  # The same with an engine that does nothing: what of it is this machine's cores.
  step command_path 60 "$bin/command_path" --json "$out/command_path.json" || true
}

bench_actors() {
  local csv=$out/actors_bench.csv name ours theirs
  step actors_bench 60 "$bin/actors_bench" "${gbench[@]}" "--benchmark_out=$csv" || return 0
  for name in ping_pong four_to_one; do
    ours=$(median "$csv" "troupe_$name" items_per_second)
    theirs=$(median "$csv" "caf_$name" items_per_second)
    figure "actors $name" "$(awk -v v="$ours" 'BEGIN { print v / 1e6 }')" "M messages/s"
    [[ -z $theirs ]] ||
      figure "actors $name, troupe/CAF" "$(awk -v a="$ours" -v b="$theirs" 'BEGIN { print a / b }')" x ge 1.5
  done
}

# ratios FILE: a figure for each line of troupe against the library
ratios() {
  local line name
  while read -r line; do
    name=$(field "$line" name)
    [[ -n $name ]] || continue
    case $name in
      H2D* | D2H*) figure "$name, troupe/raw" "$(field "$line" ratio)" x ge 0.98 ;;
      "gemm f64 "*" x one GPU") figure "$name, troupe/raw" "$(field "$line" ratio)" x ge 0.9 ;;
      "fft c64 "*", exchange alone") figure "$name, troupe/raw" "$(field "$line" ratio)" x le 1.25 ;;
      "fft c64 "*", transforms alone") figure "$name, troupe/raw" "$(field "$line" ratio)" x ;;
      "all_reduce 8 B"*) figure "$name, troupe/raw" "$(field "$line" ratio)" x le 1.15 ;;
      traced*) figure "$name, with/without" "$(field "$line" ratio)" x le 1.02 ;;
      all_reduce* | *independent* | *", launches") figure "$name, troupe/raw" "$(field "$line" ratio)" x ;;
      *round\ trip) figure "$name, troupe - raw" "$(awk -v a="$(field "$line" troupe)" -v b="$(field "$line" raw)" \
        'BEGIN { d = a - b; print (d > 0.001 ? d : 0.001) }')" us le 1 ;;
      *cached\ on\ disk) figure "$name" "$(field "$line" troupe)" ms le 2 ;;
      *) figure "$name, troupe/raw" "$(field "$line" ratio)" x le 1.05 ;;
    esac
  done <"$1"
}

bench_cuda() {
  local options=(--repetitions $((quick ? 5 : 9)) --json "$out/cuda_raw_bench.json")
  ((quick)) && options+=(--largest-copy 256MiB)
  step cuda_raw_bench 120 "$bin/cuda_raw_bench" "${options[@]}" || return 0
  ratios "$out/cuda_raw_bench.json"
}

# beside NAME [OPTION...]: a benchmark of calls of libraries, if the build has it: each takes as long as the library's own
beside() {
  local bench=$1 line name
  shift
  [[ -x $bin/$bench ]] || return 0
  step "$bench" 240 "$bin/$bench" --json "$out/$bench.json" "$@" || return 0
  while read -r line; do
    name=$(field "$line" name)
    [[ -z $name ]] || figure "$name, troupe/raw" "$(field "$line" ratio)" x le 1.01
  done <"$out/$bench.json"
}

# Small calls are judged by what they take more.
bench_libraries() {
  local longest=() sparse=() repetitions=(--repetitions $((quick ? 5 : 15)))
  if ((quick)); then
    longest=(--largest-matrix 4096 --factored 2048 --fft-edge 256)
    sparse=(--edge 96 --keys 10000000 --elements 100000000)
  fi
  beside library_bench --repetitions $((quick ? 3 : 7)) "${longest[@]}"
  beside sparse_bench "${repetitions[@]}" "${sparse[@]}"
  beside tensor_bench "${repetitions[@]}"
  beside dnn_bench "${repetitions[@]}"
}

# The first call of each kind after a device host's death, over its steady time.
bench_first_calls() {
  local line name
  step first_call_bench 120 "$bin/first_call_bench" --engine cuda --standby local --restart-budget 100 \
    --repetitions $((quick ? 2 : 5)) --json "$out/first_call_bench.json" || return 0
  while read -r line; do
    name=$(field "$line" name)
    [[ -z $name ]] || figure "$name, first call after a death/steady" "$(field "$line" ratio)" x le \
      "$(awk -v v="$(field "$line" at_most)" 'BEGIN { printf "%.3g", v }')"
  done <"$out/first_call_bench.json"
}

bench_kernels() {
  step kernel_bench 120 "$bin/kernel_bench" --engine cuda --repetitions $((quick ? 5 : 9)) \
    --kernel-cache "$out/kernels" --json "$out/kernel_bench.json" || return 0
  ratios "$out/kernel_bench.json"
}

# bench_remote_actors: messages between two ranks, beside CAF where it is installed and beside MPI
bench_remote_actors() {
  local line name ratio
  # shellcheck disable=SC2046
  step remote_actors_bench 120 $(on_gpus 2) "$bin/remote_actors_bench" --engine cuda \
    --repetitions $((quick ? 3 : 7)) --json "$out/remote_actors_bench.json" || return 0
  while read -r line; do
    name=$(field "$line" name)
    [[ -n $name ]] || continue
    ratio=$(field "$line" ratio)
    figure "$name" "$(field "$line" troupe)" "$(field "$line" unit)"
    [[ $ratio == 0* && $ratio != *[1-9]* ]] || figure "$name, troupe/other" "$ratio" x
  done <"$out/remote_actors_bench.json"
}

# bench_recorded: an iteration of troupe-cg as a recorded sequence, beside one of single commands
bench_recorded() {
  local how seconds=()
  for how in off on; do
    cg "cg-record-$how" "$gpus" 60 --stencil "64,64,$((64 * gpus))" --tol 1e-10 --max-iter 2000 --record "$how" || return 0
    seconds+=("$(awk -v s="$(value "$out/cg-record-$how.json" seconds)" \
      -v n="$(value "$out/cg-record-$how.json" iterations)" 'BEGIN { print (n > 0 ? s / n : 0) }')")
  done
  figure "cg iteration, 64^3 per GPU, recorded" "$(awk -v s="${seconds[1]}" 'BEGIN { print 1e6 * s }')" us
  figure "cg iteration, recorded/single commands" \
    "$(awk -v a="${seconds[1]}" -v b="${seconds[0]}" 'BEGIN { print (b > 0 ? a / b : 0) }')" x le 0.6
}

# bench_hpcg: a rating by HPCG's rules, and one with a device host killed in its sets
bench_hpcg() {
  local points=$((quick ? 64 : 192)) name
  for name in hpcg hpcg-kill; do
    local options=(--hpcg --stencil $points --time $((quick ? 2 : 10))s)
    [[ $name == hpcg ]] || options+=(--fault "kill@30:$victim")
    cg "$name" "$gpus" 300 "${options[@]}" || return 0
    figure "$name, $points^3 per GPU" "$(value "$out/$name.json" gflops)" GFLOP/s
  done
}

# bench_heat: a stencil on a box of ranks, recorded and not, and with two faults
bench_heat() {
  local how points=$((quick ? 128 : 512)) options
  for how in on off; do
    # shellcheck disable=SC2046
    step "heat-record-$how" 120 $(on_gpus "$gpus") "$bin/troupe-heat" --engine cuda --points "$points" --steps 400 \
      --record "$how" --json "$out/heat-record-$how.json" || return 0
    figure "heat, $points^3 f64 per GPU, recorded $how" \
      "$(awk -v b="$(value "$out/heat-record-$how.json" bytes_per_second)" 'BEGIN { print b / 1e9 }')" GB/s
  done
  options=(--points 128 --steps 400 --commit-every 50 --fault "illegal-address@90:$victim" --fault kill@210:0)
  # shellcheck disable=SC2046
  step heat-faults 120 $(on_gpus "$gpus") "$bin/troupe-heat" --engine cuda "${options[@]}" || true
}

# bench_gemm: a product on all GPUs, in f64 and f32, then in small ones with two faults, every element compared
bench_gemm() {
  local type n=$((quick ? 8192 : 32768))
  for type in double float; do
    # shellcheck disable=SC2046
    step "gemm-$type" 150 $(on_gpus "$gpus") "$bin/troupe-gemm" --engine cuda -m "$n" -n "$n" -k "$n" -r 5 -t "$type" \
      --json "$out/gemm-$type.json" || return 0
    figure "gemm $type $n, $gpus GPUs" "$(value "$out/gemm-$type.json" tflops_median)" TFLOP/s
  done
  # shellcheck disable=SC2046
  step gemm-faults 120 $(on_gpus "$gpus") "$bin/troupe-gemm" --engine cuda -m 500 -n 400 -k 300 -r 12 -t zdouble --test \
    --transpose CN --block_a 64,64 --commit-every 2 --fault "illegal-address@4:$victim" --fault kill@9:0 || true
}

# bench_fft: transforms of an array on all GPUs, complex and real, then small ones with two faults
bench_fft() {
  local kind points=$((quick ? 256 : gpus > 1 ? 1024 : 512))  # what one GPU has room for
  for kind in c2c r2c; do
    # shellcheck disable=SC2046
    step "fft-$kind" 150 $(on_gpus "$gpus") "$bin/troupe-fft" --engine cuda --kind "$kind" --precision float -n10 \
      --points "$points" --json "$out/fft-$kind.json" || return 0
    figure "fft $kind f32 $points^3, $gpus GPUs" "$(value "$out/fft-$kind.json" gflops)" GFLOP/s
  done
  # shellcheck disable=SC2046
  step fft-faults 120 $(on_gpus "$gpus") "$bin/troupe-fft" --engine cuda --points 60,48,54 --pencils -n12 --commit-every 3 \
    --fault "illegal-address@4:$victim" --fault kill@9:0 || true
}

# bench_train: a GPT-2 on the text of the documents, beside PyTorch where that is installed; its gradients in both types; with
# two faults
bench_train() {
  local dtype python options=(--model gpt2 --steps $((quick ? 30 : 100)))
  for dtype in f32 bf16; do
    # shellcheck disable=SC2046
    step "train-gradients-$dtype" 120 $(on_gpus "$gpus") "$bin/troupe-train" --engine cuda --layers 2 --heads 2 --channels 64 \
      --sequence 32 --batch 2 --steps 20 --dtype "$dtype" --check-gradients --json "$out/train-gradients-$dtype.json" || true
  done
  cat "$root"/README.md "$root"/docs/*.md >"$out/train-text"
  options+=(--text "$out/train-text" --vocabulary 50304)
  # shellcheck disable=SC2046
  step train-f32 240 $(on_gpus "$gpus") "$bin/troupe-train" --engine cuda "${options[@]}" --batch 4 --json "$out/train-f32.json" &&
    train_figures "GPT-2, f32" "$out/train-f32.json"
  options+=(--batch 16 --dtype bf16)
  # shellcheck disable=SC2046
  step train-bf16 240 $(on_gpus "$gpus") "$bin/troupe-train" --engine cuda "${options[@]}" --json "$out/train-bf16.json" &&
    train_figures "GPT-2, bf16" "$out/train-bf16.json"
  # shellcheck disable=SC2046
  step train-faults 240 $(on_gpus "$gpus") "$bin/troupe-train" --engine cuda "${options[@]}" --commit-every 10 \
    --fault "illegal-address@13:$victim" --fault kill@25:0 --json "$out/train-faults.json" &&
    figure "GPT-2, bf16, final loss with two faults/without" \
      "$(awk -v a="$(value "$out/train-faults.json" final_loss)" -v b="$(value "$out/train-bf16.json" final_loss)" \
        'BEGIN { print (b > 0 ? a / b : 0) }')" x
  if ((gpus > 1)); then
    # shellcheck disable=SC2046
    step train-shrink 240 $(on_gpus "$gpus") "$bin/troupe-train" --engine cuda "${options[@]}" --commit-every 10 \
      --on-loss shrink --restart-budget 0 --fault kill@13:0 --json "$out/train-shrink.json" &&
      figure "GPT-2, bf16, final loss with a GPU lost for good/without" \
        "$(awk -v a="$(value "$out/train-shrink.json" final_loss)" -v b="$(value "$out/train-bf16.json" final_loss)" \
          'BEGIN { print (b > 0 ? a / b : 0) }')" x
  fi
  python=$(judge_python torch)
  "$python" -c 'import torch' >/dev/null 2>&1 || return 0
  # shellcheck disable=SC2046
  step train-torch 240 $(on_gpus "$gpus") "$python" -B "$root/bench/train_torch.py" "${options[@]}" || return 0
  grep '^{"app": "train_torch"' "$out/train-torch.log" | tr -d ' ' >"$out/train-torch.json" || true
  figure "GPT-2, bf16, troupe/PyTorch" "$(awk -v a="$(value "$out/train-bf16.json" tokens_per_second)" \
    -v b="$(field "$(cat "$out/train-torch.json")" tokens_per_second)" 'BEGIN { print (b > 0 ? a / b : 0) }')" x
}

# train_figures NAME JSON
train_figures() {
  figure "$1, tokens/s of $gpus GPUs" "$(value "$2" tokens_per_second)" ""
  figure "$1, model TFLOP/s of a GPU" \
    "$(awk -v f="$(value "$2" model_flops_per_second)" -v n="$gpus" 'BEGIN { print f / 1e12 / n }')" TFLOP/s
}

bench_collectives() {
  # shellcheck disable=SC2046
  step collective_bench 60 $(on_gpus "$gpus") "$bin/collective_bench" --engine cuda \
    --repetitions $((quick ? 5 : 9)) --json "$out/collective_bench.json" || return 0
  ratios "$out/collective_bench.json"
}

# bench_perf: every operation of troupe-perf, with NCCL beside what it has; all values are right
bench_perf() {
  local options=(--engine cuda -b 8 -e $((quick ? 8 : 128))M -f 16)
  # shellcheck disable=SC2046
  step troupe-perf 150 $(on_gpus "$gpus") "$bin/troupe-perf" "${options[@]}" --operation all,fetch,put --peer nccl \
    --json "$out/troupe-perf.json" || true
  # shellcheck disable=SC2046
  step troupe-perf-types 150 $(on_gpus "$gpus") "$bin/troupe-perf" --engine cuda -b 64K -e 64K -d all -o all \
    --operation all_reduce,reduce_scatter --peer nccl -G 10 || true
}

# bench_nccl_tests: troupe-perf beside nccl-tests, where the variable NCCL_TESTS names the folder of its programs (MPI=1)
bench_nccl_tests() {
  [[ -n ${NCCL_TESTS:-} ]] || return 0
  step nccl-tests 570 "$root/bench/nccl_tests.py" "$bin" "$NCCL_TESTS" "$gpus" "$out" || true
}

# bench_trace: what --trace and --metrics cost
bench_trace() {
  # shellcheck disable=SC2046
  step trace_bench 150 $(on_gpus "$gpus") "$bin/trace_bench" --engine cuda \
    --repetitions $((quick ? 5 : 9)) --json "$out/trace_bench.json" || return 0
  ratios "$out/trace_bench.json"
}

bench_distributed() {
  # shellcheck disable=SC2046
  step distributed_bench 150 $(on_gpus "$gpus") "$bin/distributed_bench" --engine cuda \
    --repetitions $((quick ? 3 : 7)) --n $((quick ? 16384 : 32768)) --json "$out/distributed_bench.json" || return 0
  ratios "$out/distributed_bench.json"
}

# bench_tokens PATH [TARGET]: fetch and put between two GPUs beside a raw peer copy, or beside MPI; small ones as a time
bench_tokens() {
  local name=token_bench-$1 line row unit target size=()
  ((quick)) && size=(--size 256MiB)
  # shellcheck disable=SC2046
  step "$name" 90 $(on_gpus 2) "$bin/token_bench" --engine cuda --token-path "$1" --repetitions 5 \
    "${size[@]}" --json "$out/$name.json" || return 0
  while read -r line; do
    [[ $line == *ratio* ]] || continue
    row=$(field "$line" name) unit=$(field "$line" unit) target=${2-}
    if [[ "$1 $row" == "peer fetch 8 B" ]]; then
      figure "$1: $row" "$(field "$line" troupe)" us le 20
    elif [[ $unit == us || $(field "$line" raw) == 0.0 ]]; then  # raw is 0: both ways at once over NVLink
      figure "$1: $row" "$(field "$line" troupe)" "$unit"
    else
      [[ -z $target || $row == *" 1024 MiB" ]] || target=0.9
      figure "$1: $row, troupe/raw" "$(field "$line" ratio)" x ${target:+ge "$target"}
    fi
  done <"$out/$name.json"
}

# bench_checkpoints: a commit, and the stall of the step loop when it goes to disk
bench_checkpoints() {
  local name=checkpoint_bench line
  # shellcheck disable=SC2046
  step "$name" 120 $(on_gpus 1) "$bin/checkpoint_bench" --engine cuda --repetitions 3 \
    --size "$( ((quick)) && echo 1GiB || echo 1GiB,10GiB)" --json "$out/$name.json" || return 0
  while read -r line; do
    [[ $line == *stall_over_copy* ]] || continue
    figure "$(field "$line" name): commit" "$(field "$line" commit_median)" ms
    figure "$(field "$line" name): stall/copy" "$(field "$line" stall_over_copy)" x le 1.2
    figure "$(field "$line" name): to disk, pinned" "$(field "$line" gigabytes_per_second)" GB/s
    [[ $line != *direct_gigabytes* ]] ||
      figure "$(field "$line" name): to disk, direct" "$(field "$line" direct_gigabytes_per_second)" GB/s
  done <"$out/$name.json"
}

# bench_idle: what ranks use of a core while they have nothing to do
bench_idle() {
  local line
  # shellcheck disable=SC2046
  step idle_bench 60 $(on_gpus "$gpus") "$bin/idle_bench" --engine cuda --json "$out/idle_bench.json" || return 0
  while read -r line; do
    [[ $line == *idle* ]] || continue
    figure "$(field "$line" name)" "$(field "$line" troupe)" "% of a core" le 5
  done <"$out/idle_bench.json"
}

# bench_recovery world|local|off: from a fault to the next verified all_reduce
bench_recovery() {
  local name=troupe-drill-standby-$1 line target
  # shellcheck disable=SC2046
  step "$name" 120 $(on_gpus "$gpus") "$bin/troupe-drill" --engine cuda --standby "$1" \
    --repetitions $((quick ? 2 : 5)) --json "$out/$name.json" || return 0
  while read -r line; do
    [[ $line == *wall_ms_median* ]] || continue
    case $1:$(field "$line" kind) in
      world:kill) target=130 ;;
      world:*) target=300 ;;
      local:kill) target=350 ;;
      local:*) target=500 ;;
      *) target=1300 ;;
    esac
    figure "$(field "$line" name): fault to verified all_reduce" "$(field "$line" wall_ms_median)" ms le $target
  done <"$out/$name.json"
}

# bench_losses: a rank is lost for good and comes back
bench_losses() {
  local name=troupe-drill-shrink line
  # shellcheck disable=SC2046
  step "$name" 120 $(on_gpus "$gpus") "$bin/troupe-drill" --engine cuda --on-loss shrink --in-run \
    --kinds kill,illegal-address,device-failure --repetitions $((quick ? 2 : 5)) --json "$out/$name.json" || return 0
  while read -r line; do
    [[ $line == *wall_ms_median* ]] || continue
    figure "$(field "$line" name): until the members compute" "$(field "$line" wall_ms_median)" ms
  done <"$out/$name.json"
}

spmv() {
  local points=$((quick ? 128 : 256)) spmv copy
  cg "cg-stencil-$points" 1 180 --stencil $points --dtype f64 --precond none || return 0
  spmv=$(value "$out/cg-stencil-$points.json" spmv_gb_per_s)
  copy=$(value "$out/cg-stencil-$points.json" copy_gb_per_s)
  figure "SpMV" "$spmv" GB/s
  figure "device-to-device copy" "$copy" GB/s
  figure "SpMV / copy" "$(awk -v a="$spmv" -v b="$copy" 'BEGIN { print (b > 0 ? a / b : 0) }')" x ge 0.8
  figure "solver" "$(value "$out/cg-stencil-$points.json" gflops)" GFLOP/s
}

# ---- several hosts

hosts() {
  local line
  if ((gpus < 2)); then
    steps+=("hosts|skipped: two hosts need two GPUs|")
    return 0
  fi
  # shellcheck disable=SC2154  # root: from build.sh
  step hosts 540 "$root/tests/cluster/gpu_hosts.sh" "$bin" "$root/scripts" "$out" || return 0
  while read -r line; do
    figure "hosts: $(field "$line" name)" "$(field "$line" value)" "$(field "$line" unit)"
  done <"$out/hosts.json"
}

# ---- all of it

say "$gpus GPUs, output in $out"
{
  date -u
  uname -a
  nvidia-smi 2>&1 || true
  ldd "$build"/libexec/troupe/troupe-*-cuda.so || true
} >"$out/machine.txt" 2>&1
# shellcheck disable=SC2046
step troupe-info 60 $(on_gpus "$gpus") "$bin/troupe-info" --engine cuda || true
# shellcheck disable=SC2046
step troupe-info-check 60 $(on_gpus "$gpus") "$bin/troupe-info" --engine cuda --check || true

if [[ $matching == . ]]; then tests unit 120 '[Cc]uda'; else tests unit 120; fi
# Each is one process with one device host: several share a GPU. cuDNN and CUB compile for minutes.
CTEST_PARALLEL_LEVEL=8 tests conformance 400
if wanted judge; then judges; fi
tests process 500
if wanted cg; then fault_drills; fi
if wanted bench; then
  bench_commands
  bench_actors
  bench_cuda
  bench_libraries
  bench_first_calls
  bench_kernels
  bench_recorded
  bench_hpcg
  bench_heat
  bench_gemm
  bench_fft
  bench_train
  bench_collectives
  bench_perf
  bench_nccl_tests
  bench_trace
  for standby in world local off; do bench_recovery $standby; done
  if ((gpus > 1)); then
    bench_distributed
    bench_losses
    bench_remote_actors
    bench_tokens peer 0.95
    bench_tokens network 0.9
    bench_tokens nccl
  fi
  bench_checkpoints
  bench_idle
fi
if wanted spmv; then spmv; fi
if wanted hosts; then hosts; fi
tests mpi 570
tests app 570
if wanted soak; then
  soak_seconds=$((quick ? 20 : 120))
  step soak $((soak_seconds + 180)) "$root/scripts/soak.sh" --seconds $soak_seconds --seed "$((10#$(date +%j)))" \
    --results "$out/soak" "$bin" || true
fi
# Each is a process that waits for every call: some of them share a GPU.
CTEST_PARALLEL_LEVEL=4 tests netlib 570

# json ARRAY-NAME KEY...: the lines of that array, whose parts are the values of these keys
json() {
  local -n lines=$1
  local keys=("${@:2}") parts line i n
  for ((n = 0; n < ${#lines[@]}; ++n)); do
    IFS='|' read -r -a parts <<<"${lines[n]}"
    line=''
    for i in "${!keys[@]}"; do line+=${line:+, }"\"${keys[i]}\": \"${parts[i]:-}\""; done
    printf '    {%s}%s\n' "$line" "$( ((n + 1 < ${#lines[@]})) && echo ,)"
  done
}
{
  printf '{\n  "gpus": %s, "seconds": %s, "failed": %s, "missed": %s,\n' "$gpus" "$SECONDS" "$failures" "$missed"
  printf '  "steps": [\n%s\n  ],\n' "$(json steps step result seconds)"
  printf '  "figures": [\n%s\n  ]\n}\n' "$(json figures figure value target met)"
} >"$out/summary.json"
{
  if ((${#figures[@]})); then
    printf '%-62s %-22s %-9s %s\n' figure value target met
    for line in "${figures[@]}"; do
      IFS='|' read -r name result target met <<<"$line"
      printf '%-62s %-22s %-9s %s\n' "$name" "$result" "$target" "$met"
    done
    echo
  fi
  printf '%-34s %4s  %s\n' step s result
  for line in "${steps[@]}"; do
    IFS='|' read -r name result seconds <<<"$line"
    printf '%-34s %4s  %s\n' "$name" "$seconds" "$result"
  done
  printf '%s GPUs, %s s: %s failed, %s figures beyond their targets\n' "$gpus" "$SECONDS" "$failures" "$missed"
} >"$out/summary.txt"
say "summary"
cat "$out/summary.txt"
((failures == 0))
