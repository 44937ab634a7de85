#!/usr/bin/env bash
# layering_selftest.sh SOURCE-TREE: plants one violation of every rule into a copy of the tree; layering.sh must find
# each, at its place, and nothing in the copy before.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$1/include" "$1/src" "$1/apps" "$work/"
mkdir "$work/tests" && cp -r "$1/tests/torture" "$work/tests/"
"$here/layering.sh" "$work" >/dev/null || { echo "the tree is not clean to begin with" && exit 1; }

# plant FILE INCLUDE: what layering.sh must print of it goes to `expected`
planted=() expected=()
plant() {
  local file=$work/$1
  if [[ " ${planted[*]} " != *" $1 "* ]]; then
    [[ ! -e $file ]] || { echo "$1 is there already" && exit 1; }
    planted+=("$1")
    mkdir -p "$(dirname "$file")"
    echo '// planted' >"$file"
  fi
  echo "#include $2" >>"$file"
  expected+=("$1:$(wc -l <"$file"): $2: ")
}

plant include/troupe/planted.hpp '"common/core/log.hpp"'
plant include/troupe/planted.hpp '<fmt/format.h>'
plant include/troupe/planted.hpp '<mpi.h>'
plant include/troupe/planted.hpp '<cereal/cereal.hpp>'
plant src/common/core/planted.hpp '"rank/protocol/message.hpp"'
plant src/common/wire/planted.cpp '"device_host/lanes/lanes.hpp"'
plant src/common/ipc/planted.cpp '<mpi.h>'
plant src/plugin/planted.hpp '"device_host/lanes/lanes.hpp"'
plant src/rank/device/planted.cpp '"plugin/cpu.hpp"'
plant src/rank/device/planted.cpp '"device_host/device_host.hpp"'
plant src/rank/device/planted.cpp '<mpi.h>'
plant src/rank/net/planted.cpp '<mpi.h>'
plant src/keeper/planted.cpp '"rank/net/session.hpp"'
plant src/rank/net/planted.cpp '"keeper/place.hpp"'
plant src/rank/world/planted.cpp '<cuda_runtime_api.h>'
plant src/rank/net/planted.cpp '<nccl.h>'
plant src/rank/net/planted.cpp '"rank/protocol/message.hpp"'
plant src/rank/protocol/planted.cpp '"rank/device/commands/command_port.hpp"'
plant src/rank/store/planted.cpp '"rank/world/groups.hpp"'
plant src/rank/token/planted.cpp '"rank/protocol/message.hpp"'
plant src/rank/post/planted.cpp '"rank/net/session.hpp"'
plant src/rank/world/planted.cpp '"rank/run/restart.hpp"'
plant src/device_host/planted.cpp '"rank/protocol/message.hpp"'
plant src/device_host/planted.cpp '<curand.h>'
plant src/device_host/planted.cpp '"device_host/engine/cuda/status.hpp"'
plant src/device_host/engine/cpu/planted.cpp '<cublas_v2.h>'
plant src/device_host/engine/cpu/planted.cpp '"device_host/engine/cuda/status.hpp"'
plant src/device_host/engine/cuda/planted.cu '"device_host/engine/cpu/worker.hpp"'
plant src/device_host/engine/cuda/planted.cpp '<nccl.h>'
plant src/device_host/engine/cpu/planted.cpp '<gloo/context.h>'
plant src/device_host/engine/cpu/planted.cpp '<troupe/lib/memory.hpp>'
plant src/device_host/planted.cpp '<troupe/lib/blas.hpp>'
plant src/common/wire/planted.cpp '<troupe/lib/collective.hpp>'
plant src/common/wire/planted.cpp '<troupe/lib/operations.hpp>'
plant src/device_host/planted.cpp '"lanes.hpp"'
plant src/device_host/engine/cpu/planted.cpp '"lib/rng/random_cpu.hpp"'
plant src/rank/device/planted.cpp '"lib/rng/random_cpu.hpp"'
plant src/lib/blas/planted.cpp '"rank/protocol/message.hpp"'
plant src/lib/blas/planted.cpp '"device_host/engine/cpu/library.hpp"'
plant src/lib/blas/planted_cpu.cpp '"device_host/engine/engine.hpp"'
plant src/lib/blas/planted_cpu.cpp '"lib/rng/random_cpu.hpp"'
plant src/lib/blas/planted_cpu.cpp '<cublas_v2.h>'
plant src/lib/blas/planted.cpp '<cublas_v2.h>'
plant src/lib/blas/planted_cuda.cpp '<nccl.h>'
plant src/lib/blas/planted_cpu.cpp '<gloo/context.h>'
plant src/lib/distributed/planted.cpp '"common/core/log.hpp"'
plant src/lib/collective/planted.cpp '<nccl.h>'
plant src/lib/collective/planted_cpu.cpp '<nccl.h>'
plant src/lib/collective/planted_cuda.cpp '<gloo/context.h>'
plant src/lib/collective/planted.cpp '"device_host/engine/collective_half.hpp"'
plant src/lib/blas/planted_cpu.cpp '"device_host/engine/collective_half.hpp"'
plant src/lib/blas/planted_cuda.cpp '"device_host/engine/cuda/cuda_engine.hpp"'
plant src/lib/blas/planted/rules.cpp '"device_host/engine/cpu/library.hpp"'
plant src/lib/blas/planted/cpu.cpp '"lib/rng/random_cpu.hpp"'
plant src/lib/blas/planted/cpu.cpp '<cublas_v2.h>'
plant src/lib/blas/planted/cuda.cpp '<nccl.h>'
plant src/lib/blas/planted_cuda.cpp '"device_host/engine/cpu/library.hpp"'
plant src/lib/blas/planted.cu '"device_host/engine/cuda/library.hpp"'
plant src/device_host/engine/cuda/planted.cpp '"lib/blas/common/status_cuda.hpp"'
plant apps/troupe-cg/planted.cpp '"common/core/log.hpp"'
plant apps/troupe-cg/planted.cpp '<mpi.h>'
plant apps/troupe-info/planted.cpp '"stencil.hpp"'
plant tests/torture/planted.cpp '"common/core/log.hpp"'
plant tests/torture/planted.cpp '<mpi.h>'
echo '  friend class Stranger;' >>"$work/src/common/core/planted.hpp"
expected+=("src/common/core/planted.hpp:$(wc -l <"$work/src/common/core/planted.hpp"): ")

if output=$("$here/layering.sh" "$work"); then echo "nothing was found" && exit 1; fi
for line in "${expected[@]}"; do
  grep -qF "$line" <<<"$output" || { echo "not found: $line" && echo "$output" && exit 1; }
done
echo "every planted violation was found"
