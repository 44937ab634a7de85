# Headers that come as Python wheels, because no Debian package has them. To be sourced after build.sh.

readonly cudnn_frontend_version=1.32.0

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

# extract_headers WHEEL FOLDER: what the wheel has in include/
extract_headers() {
  python3 - "$1" "$2" <<'PYTHON'
import sys, zipfile

with zipfile.ZipFile(sys.argv[1]) as wheel:
    wheel.extractall(sys.argv[2], [name for name in wheel.namelist() if name.startswith("include/")])
PYTHON
}
