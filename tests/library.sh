#!/bin/sh
# SPDX-License-Identifier: MIT
# A shared library exports what its header declares and its map lists, no more, and the header can be
# included from C99 and from C++. library.sh LIBRARY HEADER MAP COMPILER
set -eu
library=$1
header=$2
map=$3
compiler=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

nm -D --defined-only "$library" | awk '$2 == "T" { sub(/@.*/, "", $3); print $3 }' | sort >"$work/exports"
sed -n 's/^RP_[A-Z_]*API .*[ *]\(rp_[a-z_]*\)(.*/\1/p' "$header" | sort >"$work/header"
sed -n 's/^\t\t\(rp_[a-z_]*\);/\1/p' "$map" | sort >"$work/map"
diff "$work/header" "$work/exports"
diff "$work/header" "$work/map"
printf '#include <%s>\nint main(void) { return %s() == 0; }\n' "${header##*/}" "$(grep _version "$work/header")" >"$work/use.c"
cp "$work/use.c" "$work/use.cc"
$compiler -std=c99 -Wall -Wextra -Werror -Iinclude -fsyntax-only "$work/use.c"
$compiler -x c++ -Wall -Wextra -Werror -Iinclude -fsyntax-only "$work/use.cc" 2>"$work/complaint" || {
	grep -q "cannot execute\|not found\|No such file" "$work/complaint" || { cat "$work/complaint"; exit 1; }
}
echo "$(wc -l <"$work/exports") exported functions of ${library##*/}: header, map and library agree"
