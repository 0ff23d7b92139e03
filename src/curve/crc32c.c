/* SPDX-License-Identifier: MIT */
#include "curve/crc32c.h"

#include "base/cursor.h"

#define POLYNOMIAL 0x82f63b78u /* 0x1edc6f41, bits reversed */

/* Eight bytes at once: a table for each place (Intel's slicing-by-8). */
static uint32_t by_tables(const struct crc32c *c, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;
	uint32_t sum = UINT32_MAX;

	for (; n >= 8; n -= 8, p += 8) {
		uint32_t low = sum ^ load_le32(p), high = load_le32(p + 4);
		sum = c->table[7][low & 0xff] ^ c->table[6][low >> 8 & 0xff] ^
		      c->table[5][low >> 16 & 0xff] ^ c->table[4][low >> 24] ^
		      c->table[3][high & 0xff] ^ c->table[2][high >> 8 & 0xff] ^
		      c->table[1][high >> 16 & 0xff] ^ c->table[0][high >> 24];
	}
	for (; n > 0; n--)
		sum = sum >> 8 ^ c->table[0][(sum ^ *p++) & 0xff];
	return ~sum;
}

void crc32c_init_tables(struct crc32c *c)
{
	c->run = by_tables;
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t sum = i;
		for (int bit = 0; bit < 8; bit++)
			sum = sum >> 1 ^ (sum & 1 ? POLYNOMIAL : 0);
		c->table[0][i] = sum;
	}
	for (unsigned place = 1; place < 8; place++)
		for (unsigned i = 0; i < 256; i++) {
			uint32_t before = c->table[place - 1][i];
			c->table[place][i] = before >> 8 ^ c->table[0][before & 0xff];
		}
}

#if defined __x86_64__

/* Records are short, so that several sums side by side would gain nothing. */
__attribute__((target("sse4.2"))) static uint32_t by_instruction(
	const struct crc32c *c, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;
	uint64_t sum = UINT32_MAX;

	(void)c;
	for (; n >= 8; n -= 8, p += 8)
		sum = __builtin_ia32_crc32di(sum, load_le64(p));
	for (; n > 0; n--)
		sum = __builtin_ia32_crc32qi((uint32_t)sum, *p++);
	return ~(uint32_t)sum;
}

void crc32c_init(struct crc32c *c)
{
	crc32c_init_tables(c);
	if (__builtin_cpu_supports("sse4.2"))
		c->run = by_instruction;
}

#else

void crc32c_init(struct crc32c *c)
{
	crc32c_init_tables(c);
}

#endif
