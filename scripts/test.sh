#!/usr/bin/env bash
# Installs what troupe needs, builds it and runs all of its tests.
#
#   scripts/test.sh [CMAKE-OPTION...]
#
# 1. packages of Debian 12 or Ubuntu 24.04 that are missing (root or sudo); where cuDNN is found, the headers of
#    cudnn-frontend from PyPI; where the CUDA toolkit is found, cuDSS and cuTENSOR from there
# 2. build/asan: the unit tests under AddressSanitizer and UndefinedBehaviorSanitizer
# 3. build/tsan: the unit tests of what threads share, under ThreadSanitizer
# 4. build/release: everything, several files as one, with the CUDA engine where the CUDA toolkit is found. Without a GPU
#    all is compiled in a hurry (-O1, kernels hardly optimised), and the tests are brief (-DTROUPE_BRIEF_TESTS=ON): of the
#    unit tests there are those alone that steps 2 and 3 shorten or lack, and all of them try a third of the longest rows
#    of random cases; conformance tests try half of the types of numbers, and shorter arrays; netlib judges the other half
#    of BLAS, on four sizes of matrices instead of six; of the two largest models of the protocol a part is left; and
#    benchmarks are compiled as tests are
# 5. build/release: all of CTest, half a minute of random programs (two minutes where tests are not brief) among them; its
#    summary ends the output
#
# The options go to all three configurations, for instance -DTROUPE_ENGINE_CUDA=OFF. With TROUPE_TEST_BACKEND=cuda the
# tests of step 5 run on this machine's GPUs. Exit status: 0 if everything passed, 1 otherwise.
set -euo pipefail
source "$(dirname "$0")/lib/build.sh"
source "$root/scripts/lib/packages.sh"
source "$root/scripts/lib/wheels.sh"

accept_cmake_options "$@"

# Test suites of what threads share: rings, mailboxes and actors, tickets, the command port, futures.
readonly shared_by_threads='Ring*:Mailbox*:Actor*:ProductionScheduler*:Supervision*:Ticket*:CommandPort*:MoveTo*:SettleInPlace*:Future*:Coroutine*:Progress*:Threads*:WhenAll*:Surrendering*'
failures=()

# Kernels that randomise addresses widely leave no room where the sanitizers of g++ 12 and 13 expect it. This is passed
# on to all children; where it is forbidden (in most containers) it is left out.
fixed_addresses=(setarch "$(uname -m)" --addr-no-randomize)
"${fixed_addresses[@]}" true 2>/dev/null || fixed_addresses=(env)

# clang compiles for sanitizers in half of the time that g++ takes.
sanitizing_compiler=()
find_sanitizing_compiler() {
  local clang=clang++-16
  local program='int main() {}'
  "$clang" -fsanitize=address -x c++ - -o /dev/null <<<"$program" &>/dev/null || return 0
  sanitizing_compiler=("-DCMAKE_CXX_COMPILER=$clang")
  "$clang" -fsanitize=address -fuse-ld=lld -x c++ - -o /dev/null <<<"$program" &>/dev/null || return 0
  sanitizing_compiler+=(-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld)
}

# sanitized PRESET TARGET LABEL: builds and runs the unit tests with a label; the target is all of them.
sanitized() {
  local preset=$1 target=$2 label=$3
  configure "$preset" "build/$preset" "${brief[@]}" "${cmake_options[@]}" "${sanitizing_compiler[@]}" -DTROUPE_ENGINE_CUDA=OFF &&
    build "build/$preset" "$target" &&
    say "unit tests, preset $preset" &&
    env -u TROUPE_TEST_BACKEND "${fixed_addresses[@]}" ctest --test-dir "$root/build/$preset" --label-regex "^$label\$" \
      --no-tests=error --output-on-failure --no-label-summary --parallel "$(nproc)"
}

cmake_options=(-DTROUPE_TESTS=ON "$@")
find_cuda
mpi_environment
# Hundreds of MiB come from PyPI meanwhile: what is built for the sanitizers, without the CUDA engine, does not need them.
fetch_wheels() {
  ! cudnn_header >/dev/null || fetch_cudnn_frontend
  ! command -v nvcc >/dev/null || fetch_cudss
  ! command -v nvcc >/dev/null || fetch_cutensor
}
fetch_wheels &
fetching=$!
install_packages "${packages_for_building[@]}" "${packages_for_testing[@]}" "${!optional_packages[@]}"
# Without a GPU nothing runs the kernels: they are compiled for one model and hardly optimised, in a quarter of the time. Nor
# is anything measured: at -O1 the rest compiles in two thirds of the time. And of the unit tests those are left out that run
# in full under the sanitizers.
without_gpu=() brief=()
if ! nvidia-smi -L &>/dev/null; then
  hastily="-Xptxas -O0"
  [[ $(nvcc --help 2>/dev/null) != *--Ofast-compile* ]] || hastily="-Ofc max"
  without_gpu=(-DCMAKE_CUDA_ARCHITECTURES=90-real "-DCMAKE_CUDA_FLAGS=$hastily" "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG")
  brief=(-DTROUPE_BRIEF_TESTS=ON)
fi

find_sanitizing_compiler
sanitized asan unit_tests unit || failures+=("the unit tests under AddressSanitizer and UndefinedBehaviorSanitizer")
GTEST_FILTER=$shared_by_threads sanitized tsan unit_tests_of_threads threads || failures+=("the unit tests under ThreadSanitizer")

wait "$fetching"
with_memory
configure release build/release -DTROUPE_BENCHMARKS=ON -DTROUPE_WARNINGS_AS_ERRORS=ON -DCMAKE_UNITY_BUILD=ON \
  -DCMAKE_UNITY_BUILD_BATCH_SIZE=12 "${without_gpu[@]}" "${brief[@]}" "${large_heap[@]}" "${cmake_options[@]}"
build build/release

say "all tests, preset release, engine ${TROUPE_TEST_BACKEND:-cpu}"
# Most tests wait more than they compute. The memory of a job is cleared when it starts, so jobs on few cores take little of it.
# On GPUs one by one: each wants all of them.
parallel=$(($(nproc) * 3))
if [[ ${TROUPE_TEST_BACKEND:-cpu} == cuda ]]; then
  parallel=1
else
  export TROUPE_SLAB_SIZE=8MiB TROUPE_PINNED_POOL=8MiB
fi
ctest --test-dir "$root/build/release" --no-tests=error --output-on-failure --no-label-summary --parallel "$parallel" ||
  failures+=("the tests of the release build")

((${#failures[@]} == 0)) || {
  printf '== FAILED: %s\n' "${failures[@]}" >&2
  exit 1
}
