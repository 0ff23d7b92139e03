/* SPDX-License-Identifier: MIT */
/* CRC-32C (Castagnoli), as TFRecord files have it: by the processor's instruction, or by tables. */
#ifndef CURVE_CRC32C_H
#define CURVE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

struct crc32c {
	uint32_t (*run)(const struct crc32c *c, const void *p, size_t n);
	uint32_t table[8][256];
};

/* Choose the way of this machine. 8 KB of tables are made, which takes some microseconds. */
void crc32c_init(struct crc32c *c);

/* The same by tables on every machine. */
void crc32c_init_tables(struct crc32c *c);

static inline uint32_t crc32c(const struct crc32c *c, const void *p, size_t n)
{
	return c->run(c, p, n);
}

/* As TFRecord stores it: a sum over bytes that hold sums would be weak. */
static inline uint32_t crc32c_masked(const struct crc32c *c, const void *p, size_t n)
{
	uint32_t sum = crc32c(c, p, n);

	return (sum >> 15 | sum << 17) + 0xa282ead8u;
}

#endif
