#!/usr/bin/env bash
# config_example.sh SOURCE-TREE TROUPE-CG: every line of config/troupe.conf.example, taken out of its comment, is a
# valid setting and states the default; and every setting of all programs is in it.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
while IFS= read -r name; do unset "$name"; done < <(env | sed -n 's/^\(TROUPE_[A-Z_]*\)=.*/\1/p')
export TROUPE_SITE_CONFIG=
sed -n 's/^# \([a-z-]* = \)/\1/p' "$1/config/troupe.conf.example" >"$work/all.conf"
settings() { sed -n 's/^\([a-z-]*\) *= *\([^ #]*\).*/\1 = \2/p' "$1" | grep -v '^device-host ' | sort; }

"$2" --print-config >"$work/defaults"
"$2" --print-config --config "$work/all.conf" >"$work/set"
diff <(settings "$work/defaults") <(settings "$work/set") || { echo "the example states other values than the defaults" && exit 1; }
# What the programs have in common is all that is no option of troupe-cg.
own="matrix stencil precond dtype tol max-iter check-every commit-every fault history hpcg json record time"
diff <(settings "$work/all.conf" | cut -d ' ' -f 1) \
  <(settings "$work/defaults" | cut -d ' ' -f 1 | grep -vxF "${own// /$'\n'}") || { echo "the example is not complete" && exit 1; }
echo "the example holds $(wc -l <"$work/all.conf") settings"
