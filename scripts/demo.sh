#!/usr/bin/env bash
# Installs what troupe needs, builds it and shows what it is for: four ranks solve a linear system while the device
# host of one of them is killed (SIGKILL), and end with the right answer.
#
#   scripts/demo.sh [CMAKE-OPTION...]
#
# Builds in build/demo what it runs (troupe-cg) and nothing else; its last lines say how to build the other programs. Runs
# on the GPUs of this machine (up to four, one rank each) if the CUDA toolkit is there, else with the CPU engine.
# Exit status: 0 if the solution is right and the loss was recovered from, 1 otherwise.
set -euo pipefail
source "$(dirname "$0")/lib/build.sh"
source "$root/scripts/lib/packages.sh"

accept_cmake_options "$@"

find_cuda
mpi_environment
engine=cpu ranks=4 points=64 cuda=OFF
if command -v nvcc >/dev/null && (($(gpu_count) > 0)); then cuda=AUTO; fi
say "three steps: packages (half a minute), building troupe-cg (3 minutes on two cores), a job with a fault (seconds)"
install_packages "${packages_for_building[@]}" "${packages_for_libraries[@]}" libfftw3-dev
with_memory
configure release build/demo -DTROUPE_TESTS=OFF -DTROUPE_BENCHMARKS=OFF -DCMAKE_UNITY_BUILD=ON \
  -DCMAKE_UNITY_BUILD_BATCH_SIZE=12 "-DTROUPE_ENGINE_CUDA=$cuda" "${large_heap[@]}" "$@"
build build/demo troupe_demo

if [[ -e $root/build/demo/libexec/troupe/troupe-engine-cuda.so ]] && (($(gpu_count) > 0)); then
  engine=cuda points=128 ranks=$(gpu_count)
  ((ranks > 4)) && ranks=4
fi
victim=$((ranks > 1 ? 1 : 0))
kill_at=50

report=$root/build/demo/report.json
rm -f "$report"
command=(mpirun -n "$ranks" --oversubscribe --bind-to none "$root/build/demo/bin/troupe-cg"
  --stencil "$points" --tol 1e-10 --max-iter 1000 --check-every 5 --commit-every 20
  --engine "$engine" --fault "kill@$kill_at:$victim" --json "$report")
# The flight recorder writes its dump of the fault next to the report.
export TROUPE_FLIGHT_DIR=$root/build/demo/troupe-flight
say "$ranks ranks solve a linear system; the device host of rank $victim is killed at iteration $kill_at"
say "${command[*]}"
status=0
timeout 300 "${command[@]}" </dev/null || status=$?

# value KEY: of the report, the first (and, but for recoveries, only) one of that name
value() { sed -n "s/^ *\"$1\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}\$/\1/p" "$report" | head -n 1; }

((status == 0)) || die "troupe-cg ended with status $status"
[[ -f $report ]] || die "troupe-cg wrote no report"
[[ $(value converged) == true ]] || die "the solver did not converge"
recoveries=$(grep -c '"repeated_iterations"' "$report" || true)
((recoveries == 1)) || die "the report shows $recoveries recoveries instead of 1"
[[ $(value kind) == kill && $(value rank) == "$victim" ]] || die "the report shows another fault than the one ordered"

LC_ALL=C printf '
== Shown: the device host of rank %s (%s engine) was killed at iteration %s. After %.0f ms the job went on,
== repeated %s iterations and ended with the right answer (relative error %.1e).
' "$victim" "$engine" "$kill_at" "$(value total_ms)" "$(value repeated_iterations)" "$(value relative_error)"
cat <<TXT
== Next: the other programs and the examples, built in the same folder:
     cmake --build build/demo --parallel $(compilers)
     mpirun -n 2 build/demo/bin/troupe-heat --points 32 --steps 100 --fault kill@50:1   # also troupe-gemm, -fft, -train
== They are described in README.md; scripts/test.sh builds everything in build/release and runs all tests.
TXT
