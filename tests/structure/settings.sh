#!/usr/bin/env bash
# settings.sh SOURCE-TREE PROGRAM: the table of docs/settings.md is what scripts/settings.sh writes.
set -euo pipefail
diff <(sed -n '/^| setting /,/^$/p' "$1/docs/settings.md" | sed '/^$/d') <("$1/scripts/settings.sh" "$2") ||
  { echo "the table of docs/settings.md is stale: scripts/settings.sh $2 prints it" && exit 1; }
rows=$(grep -c '^| `' "$1/docs/settings.md")
((rows > 40)) || { echo "only $rows settings" && exit 1; }
echo "$rows settings"
