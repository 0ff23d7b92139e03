/* SPDX-License-Identifier: MIT */
/* JSON lines of trainers. */
#include "fuzz/fuzz.h"

int fuzz_curve_jsonl(const uint8_t *data, size_t size)
{
	fuzz_curve("log.jsonl", data, size);
	return 0;
}
