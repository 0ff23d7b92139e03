/* SPDX-License-Identifier: MIT */
/* wandb's own files: as they are, and with all sums made right, so that the messages are looked at.
 */
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "fuzz/fuzz.h"

#define BLOCK 32768u
#define HEADER 7u

static void make_sums_right(uint8_t *p, size_t n)
{
	size_t at = HEADER;

	while (at + HEADER <= n) {
		size_t in_block = BLOCK - at % BLOCK;
		if (in_block < HEADER) {
			at += in_block;
			continue;
		}
		size_t length = load_le16(p + at + 4), room = in_block - HEADER;
		if (room > n - at - HEADER)
			room = n - at - HEADER;
		if (length > room)
			length = room;
		p[at + 4] = (uint8_t)length;
		p[at + 5] = (uint8_t)(length >> 8);
		uint32_t sum = libdeflate_crc32(0, p + at + 6, length + 1);
		for (unsigned i = 0; i < 4; i++)
			p[at + i] = (uint8_t)(sum >> 8 * i);
		at += HEADER + length;
	}
}

int fuzz_curve_wandb(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size + 1);

	fuzz_curve("run-x.wandb", data, size);
	if (!copy)
		return 0;
	memcpy(copy, data, size);
	make_sums_right(copy, size);
	fuzz_curve("run-x.wandb", copy, size);
	free(copy);
	return 0;
}
