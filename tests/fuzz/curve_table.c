/* SPDX-License-Identifier: MIT */
/* Tables. */
#include "fuzz/fuzz.h"

int fuzz_curve_table(const uint8_t *data, size_t size)
{
	fuzz_curve("metrics.csv", data, size);
	return 0;
}
