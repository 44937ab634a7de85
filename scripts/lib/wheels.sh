# What comes as Python wheels, because no Debian package has it. To be sourced after build.sh.

readonly cudnn_frontend_version=1.32.0
readonly cudss_version=1.0.0.35
readonly cutensor_version=2.8.1

# cudnn_header: where the header of cuDNN is; fails where there is none.
cudnn_header() {
  local nvcc folder
  nvcc=$(command -v nvcc) || return 1
  for folder in "$(dirname "$(readlink -f "$nvcc")")/../include" /usr/include "/usr/include/$(uname -m)-linux-gnu"; do
    [[ -f $folder/cudnn.h ]] && echo "$folder/cudnn.h" && return 0
  done
  return 1
}

# fetch_cudnn_frontend: the headers of cudnn-frontend (Apache 2.0 and MIT) in build/wheels/include, where CMake looks for them. Where they
# cannot be had, the CUDA engine is built without the library dnn.
fetch_cudnn_frontend() {
  local wheels=$root/build/wheels error
  if [[ -f $wheels/include/cudnn_frontend.h && -f $wheels/cudnn-frontend-$cudnn_frontend_version ]]; then
    say "cudnn-frontend $cudnn_frontend_version: there"
    return 0
  fi
  mkdir -p "$wheels"
  rm -rf "$wheels/include" "$wheels"/cudnn-frontend-* "$wheels"/nvidia_cudnn_frontend-*.whl
  if error=$(python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
    --python-version 311 --platform manylinux_2_27_x86_64 --dest "$wheels" \
    "nvidia-cudnn-frontend==$cudnn_frontend_version" 2>&1 && extract_headers "$wheels"/nvidia_cudnn_frontend-*.whl "$wheels" 2>&1); then
    touch "$wheels/cudnn-frontend-$cudnn_frontend_version"
    say "cudnn-frontend $cudnn_frontend_version: fetched"
  else
    rm -rf "$wheels/include"
    warn "no library dnn for the CUDA engine: cudnn-frontend $cudnn_frontend_version cannot be had: $(tail -n 1 <<<"$error")"
  fi
}

# fetch_cudss: cuDSS with its headers in build/wheels/cudss, where CMake looks for them; some 160 MiB. Where it cannot be had, the CUDA
# engine is built without the library direct.
fetch_cudss() { fetch_library cudss libcudss.so.1 "$cudss_version" "nvidia-cudss-cu$(cuda_major)" direct; }

# fetch_cutensor: the same of cuTENSOR in build/wheels/cutensor, some 320 MiB, and of the library tensor.
fetch_cutensor() { fetch_library cutensor libcutensor.so.2 "$cutensor_version" "cutensor-cu$(cuda_major)" tensor; }

cuda_major() { nvcc --version | sed -n 's/.*release \([0-9]*\)\..*/\1/p'; }

# fetch_library NAME FILE VERSION WHEEL LIBRARY: a library of NVIDIA's from PyPI, whose licence is NVIDIA's: it is linked from there, and
# goes into no bundle.
fetch_library() {
  local name=$1 file=$2 version=$3 wheel=$4 wheels=$root/build/wheels/$1 error
  if [[ -f $wheels/lib/$file && -f $wheels/$name-$version ]]; then
    say "$name $version: there"
    return 0
  fi
  rm -rf "$wheels"
  mkdir -p "$wheels"
  if error=$(python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
    --python-version 311 --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 \
    --dest "$wheels" "$wheel==$version" 2>&1 && extract_library "$wheels"/*.whl "$wheels" "$file" 2>&1); then
    rm -f "$wheels"/*.whl
    touch "$wheels/$name-$version"
    say "$name $version: fetched"
  else
    rm -rf "$wheels"
    warn "no library $5 for the CUDA engine: $name $version cannot be had: $(tail -n 1 <<<"$error")"
  fi
}

# extract_library WHEEL FOLDER FILE: the headers to include/, the files of the library, whose name ends in a version, to lib/
extract_library() {
  python3 - "$1" "$2" "${3%.so.*}.so" <<'PYTHON'
import os, sys, zipfile

with zipfile.ZipFile(sys.argv[1]) as wheel:
    for name in wheel.namelist():
        part = name.partition("/include/")[2]
        base = os.path.basename(name)
        if part and base:
            path = os.path.join(sys.argv[2], "include", part)
        elif os.path.basename(os.path.dirname(name)) == "lib" and base.startswith(sys.argv[3]):
            path = os.path.join(sys.argv[2], "lib", base)
        else:
            continue
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(wheel.read(name))
PYTHON
}

# extract_headers WHEEL FOLDER: what the wheel has in include/
extract_headers() {
  python3 - "$1" "$2" <<'PYTHON'
import sys, zipfile

with zipfile.ZipFile(sys.argv[1]) as wheel:
    wheel.extractall(sys.argv[2], [name for name in wheel.namelist() if name.startswith("include/")])
PYTHON
}
