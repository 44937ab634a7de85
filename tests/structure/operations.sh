#!/usr/bin/env bash
# operations.sh SOURCE-TREE TROUPE-INFO: docs/operations.md is what scripts/operations.sh writes.
set -euo pipefail
diff "$1/docs/operations.md" <("$1/scripts/operations.sh" "$2") ||
  { echo "docs/operations.md is stale: scripts/operations.sh $2 >docs/operations.md" && exit 1; }
rows=$(grep -c '^| `' "$1/docs/operations.md")
((rows > 50)) || { echo "only $rows operations" && exit 1; }
echo "$rows operations"
