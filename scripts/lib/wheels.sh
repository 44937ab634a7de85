# What comes as Python wheels, because no Debian package has it. To be sourced after build.sh.

readonly cudnn_frontend_version=1.32.0
readonly cudss_version=1.0.0.35

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

# fetch_cudss: cuDSS with its headers in build/wheels/cudss, where CMake looks for them; some 160 MiB. Its licence is NVIDIA's: it is
# linked from there, and goes into no bundle. Where it cannot be had, the CUDA engine is built without the library direct.
fetch_cudss() {
  local wheels=$root/build/wheels/cudss major error
  if [[ -f $wheels/lib/libcudss.so.1 && -f $wheels/cudss-$cudss_version ]]; then
    say "cuDSS $cudss_version: there"
    return 0
  fi
  major=$(nvcc --version | sed -n 's/.*release \([0-9]*\)\..*/\1/p')
  rm -rf "$wheels"
  mkdir -p "$wheels"
  if error=$(python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
    --python-version 311 --platform manylinux_2_17_x86_64 --dest "$wheels" \
    "nvidia-cudss-cu$major==$cudss_version" 2>&1 && extract_cudss "$wheels"/nvidia_cudss_*.whl "$wheels" 2>&1); then
    rm -f "$wheels"/nvidia_cudss_*.whl
    touch "$wheels/cudss-$cudss_version"
    say "cuDSS $cudss_version: fetched"
  else
    rm -rf "$wheels"
    warn "no library direct for the CUDA engine: cuDSS $cudss_version cannot be had: $(tail -n 1 <<<"$error")"
  fi
}

# extract_cudss WHEEL FOLDER: the headers to include/, the library to lib/
extract_cudss() {
  python3 - "$1" "$2" <<'PYTHON'
import os, sys, zipfile

with zipfile.ZipFile(sys.argv[1]) as wheel:
    for name in wheel.namelist():
        folder, base = os.path.basename(os.path.dirname(name)), os.path.basename(name)
        if folder == "include" and base or folder == "lib" and base.startswith("libcudss.so"):
            os.makedirs(os.path.join(sys.argv[2], folder), exist_ok=True)
            with open(os.path.join(sys.argv[2], folder, base), "wb") as file:
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
