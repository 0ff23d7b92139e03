/* SPDX-License-Identifier: MIT */
/* Console logs, as of a file that the user named: lines of no known trainer are guessed as well. */
#include "fuzz/fuzz.h"

int fuzz_curve_console(const uint8_t *data, size_t size)
{
	fuzz_curve("train.out", data, size);
	return 0;
}
