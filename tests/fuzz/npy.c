/* SPDX-License-Identifier: MIT */
/*
 * NumPy's files. The last byte chooses: even, the input is a whole file (.npy or .npz); odd, it is
 * the literal of a header, put into a file whose lengths are right, with 64 bytes of elements.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"

#define ELEMENTS 64u
#define PREFIX 12u

static const uint8_t prefix[] = "\x93NUMPY\2";

int fuzz_npy(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	if (data[size - 1] % 2 == 0) {
		fuzz_document((struct slice){(const char *)data, size});
		return 0;
	}
	size_t n = size - 1;
	uint8_t *file = calloc(1, PREFIX + n + ELEMENTS);
	MUST(file);
	memcpy(file, prefix, sizeof prefix);
	for (int i = 0; i < 4; i++)
		file[8 + i] = (uint8_t)(n >> 8 * i);
	memcpy(file + PREFIX, data, n);
	fuzz_document((struct slice){(const char *)file, PREFIX + n + ELEMENTS});
	free(file);
	return 0;
}
