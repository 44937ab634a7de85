#!/usr/bin/env bash
# scripts_check.sh SOURCE-TREE: shellcheck has nothing to say about the job scripts and the tests of clusters. Exit status 77
# (skipped) where there is no shellcheck.
set -euo pipefail
command -v shellcheck >/dev/null || { echo "skipped: shellcheck is not installed" && exit 77; }
cd "$1"
shellcheck --external-sources --source-path=SCRIPTDIR scripts/scaling.sh scripts/slurm/*.sh scripts/slurm/*.sbatch tests/cluster/*.sh tests/cluster/lib/* "$0"
