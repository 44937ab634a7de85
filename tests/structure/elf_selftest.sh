#!/usr/bin/env bash
# elf_selftest.sh CXX: links programs against libraries with the forbidden names; elf.sh must refuse each of them.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
echo 'int main() { return 0; }' >program.cpp

# refuse CXX SIDE LIBRARY [PROGRAM]
refuse() {
  local program=${4:-program}
  "$1" -shared -Wl,-soname,"$3" -o "$3" -x c++ /dev/null
  "$1" -Wl,--no-as-needed -o "$program" program.cpp "./$3"
  if "$here/elf.sh" "$2" "$program" >/dev/null; then
    echo "a $2 program, $program, that needs $3 was let through" && exit 1
  fi
}

for library in libcuda.so.1 libcudart.so.12 libcublas.so.13 libcublasLt.so.13 libcusparse.so.12 libcurand.so.10 libnccl.so.2 libgloo.so.0; do
  refuse "$1" rank $library
done
for library in libmpi.so.40 libmpi_cxx.so.40 libopen-rte.so.40 libtroupe.so.0; do refuse "$1" device $library; done
refuse "$1" device libcudart.so.13
refuse "$1" device libcublas.so.13 troupe-engine-cuda.so
refuse "$1" device libnccl.so.2 troupe-engine-cuda.so
refuse "$1" device libcublas.so.13 troupe-collective-cuda.so
refuse "$1" device libcusparse.so.12 troupe-blas-cuda.so
refuse "$1" device libnccl.so.2 troupe-sparse-cuda.so
refuse "$1" device libcublas.so.13 troupe-vector-cuda.so
refuse "$1" device libcudart.so.13 troupe-blas-cpu.so
refuse "$1" device libgloo.so.0 troupe-engine-cpu.so
"$1" -o program program.cpp
"$here/elf.sh" rank program >/dev/null && "$here/elf.sh" device program >/dev/null
echo "every forbidden library was found"
