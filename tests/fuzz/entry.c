/* SPDX-License-Identifier: MIT */
/* The door for libFuzzer, compiled once for each target with -DFUZZ_TARGET=<name>. */
#include "fuzz/fuzz.h"

#define PASTE(a, b) a##b
#define FUZZ(name) PASTE(fuzz_, name)

__attribute__((visibility("default"))) int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return FUZZ(FUZZ_TARGET)(data, size);
}
