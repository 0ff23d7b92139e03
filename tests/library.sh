#!/bin/sh
# SPDX-License-Identifier: MIT
# The shared library exports what its header declares and its map lists, no more, and the header can be
# included from C99 and from C++.
set -eu
library=$1
compiler=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

nm -D --defined-only "$library" | awk '$2 == "T" { sub(/@.*/, "", $3); print $3 }' | sort >"$work/exports"
sed -n 's/^RP_API .*[ *]\(rp_[a-z_]*\)(.*/\1/p' include/reprise.h | sort >"$work/header"
sed -n 's/^\t\t\(rp_[a-z_]*\);/\1/p' src/api/libreprise.map | sort >"$work/map"
diff "$work/header" "$work/exports"
diff "$work/header" "$work/map"
printf '#include <reprise.h>\nint main(void) { return rp_version() == 0; }\n' >"$work/use.c"
cp "$work/use.c" "$work/use.cc"
$compiler -std=c99 -Wall -Wextra -Werror -Iinclude -fsyntax-only "$work/use.c"
$compiler -x c++ -Wall -Wextra -Werror -Iinclude -fsyntax-only "$work/use.cc" 2>"$work/complaint" || {
	grep -q "cannot execute\|not found\|No such file" "$work/complaint" || { cat "$work/complaint"; exit 1; }
}
echo "$(wc -l <"$work/exports") exported functions: header, map and library agree"
