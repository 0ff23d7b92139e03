/* SPDX-License-Identifier: MIT */
/* Event files: as they are, and with all sums made right, so that the messages are looked at. */
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "curve/crc32c.h"
#include "curve/tfrecord.h"
#include "fuzz/fuzz.h"

static void set_le32(uint8_t *p, uint32_t v)
{
	for (unsigned i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

static void make_sums_right(uint8_t *p, size_t n)
{
	const size_t frame = TFRECORD_HEAD + TFRECORD_TAIL;
	struct crc32c c;

	crc32c_init(&c);
	while (n >= frame) {
		uint64_t length = load_le64(p);
		if (length > n - frame)
			length %= n - frame + 1;
		set_le32(p, (uint32_t)length);
		set_le32(p + 4, (uint32_t)(length >> 32));
		set_le32(p + 8, crc32c_masked(&c, p, 8));
		uint8_t *data = p + TFRECORD_HEAD;
		set_le32(data + length, crc32c_masked(&c, data, (size_t)length));
		p += frame + length;
		n -= frame + (size_t)length;
	}
}

int fuzz_curve_tensorboard(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size + 1);

	fuzz_curve("events.out.tfevents.1", data, size);
	if (!copy)
		return 0;
	memcpy(copy, data, size);
	make_sums_right(copy, size);
	fuzz_curve("events.out.tfevents.1", copy, size);
	free(copy);
	return 0;
}
