#!/bin/sh
# Prints how many GPUs a program may use here: those of CUDA_VISIBLE_DEVICES if that is set, else all of the machine.
if [ -n "${CUDA_VISIBLE_DEVICES+set}" ]; then
  echo "$CUDA_VISIBLE_DEVICES" | tr ',' '\n' | grep -c . || true
else
  (nvidia-smi -L 2>/dev/null || true) | grep -c '^GPU ' || true
fi
