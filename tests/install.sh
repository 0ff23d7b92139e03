#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `make install` puts everything below DESTDIR and the prefix; the tool and the library work from there; `make
# uninstall` leaves nothing.
set -euo pipefail
usage="usage: install.sh MAKE MODE PREFIX COMPILER"
make=${1:?$usage} mode=${2:?$usage} prefix=${3:?$usage} compiler=${4:?$usage}
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
top=$work/root$prefix

run_make() {
	"$make" --no-print-directory MODE="$mode" DESTDIR="$work/root" "$@" >/dev/null
}

run_make install
"$top/bin/reprise" verify -q fixtures/transformers-5.24.0/right-resume/out | grep -q ^CONSISTENT
[ -z "$(find "$work/root" -type l ! -exec test -e {} \; -print)" ] || { echo "a link leads nowhere"; exit 1; }
[ -z "$(find "$work/root" -type f ! -perm -444)" ] || { echo "a file is not readable by all"; exit 1; }

# The manual's own program, against the shared and the static library.
sed -n '/^#include <reprise.h>/,/^\.Ed/p' man/libreprise.3 | sed '$d; s/\\e/\\/g; s|runs/lm|fixtures/transformers-5.24.0/right-resume/out|' >"$work/app.c"
export PKG_CONFIG_PATH=$top/lib/pkgconfig
flags=("--define-variable=prefix=$top" reprise)
read -ra shared <<<"$(pkg-config --cflags --libs "${flags[@]}")"
$compiler -o "$work/app" "$work/app.c" "${shared[@]}"
read -ra private <<<"$(pkg-config --static --cflags --libs "${flags[@]}")"
$compiler -o "$work/app-static" "$work/app.c" "${private[@]/#-lreprise/-l:libreprise.a}"
for program in app app-static; do
	[ "$(LD_LIBRARY_PATH=$top/lib "$work/$program")" = CONSISTENT ] || { echo "$program fails"; exit 1; }
done
readelf -d "$work/app" | grep -q 'NEEDED.*libreprise.so' || { echo "app does not use the shared library"; exit 1; }
[ "$(pkg-config --modversion reprise)" = "$("$top/bin/reprise" --version | cut -d' ' -f2)" ]

# The recorder: its manual's program, and the Python package from where it was installed.
sed -n '/^#include <reprise_record.h>/,/^\.Ed/p' man/libreprise-record.3 | sed "\$d; s|runs/lm/record|$work/record|" >"$work/record.c"
read -ra shared <<<"$(pkg-config --cflags --libs "--define-variable=prefix=$top" reprise-record)"
$compiler -o "$work/recorder" "$work/record.c" "${shared[@]}"
LD_LIBRARY_PATH=$top/lib "$work/recorder" || { echo "the recorder's program fails"; exit 1; }
# A sanitized library cannot be loaded into a Python that is not.
if [ "$mode" = release ]; then
	PYTHONPATH=$top/share/reprise/python PYTHONDONTWRITEBYTECODE=1 python3 -c 'if True:
		import reprise, sys
		with reprise.Recorder(sys.argv[1], from_step=1) as recorder:
			assert recorder.step(2, [5, 6])' "$work/record"
	"$top/bin/reprise" audit -v "$work/record" | grep -q "6 samples" || { echo "what was recorded is not read"; exit 1; }
fi
# The library needs libc alone.
[ "$(readelf -d "$top/lib/libreprise-record.so" | grep -c 'NEEDED.*\[lib[^cm]')" -eq 0 ] || [ "$mode" != release ] ||
	{ echo "the recorder needs more than libc"; exit 1; }

count=$(find "$work/root" ! -type d | wc -l)
run_make uninstall
left=$(find "$work/root" ! -type d -o -type d -name '*reprise*')
[ -z "$left" ] || { echo "uninstall leaves: $left"; exit 1; }
echo "$count files installed, used and removed"
