/* SPDX-License-Identifier: MIT */
/* Arithmetic on sizes from files: it saturates, and a saturated size fails wherever it is used. */
#ifndef BASE_SIZE_H
#define BASE_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline size_t size_add(size_t a, size_t b)
{
	size_t sum;
	return __builtin_add_overflow(a, b, &sum) ? SIZE_MAX : sum;
}

static inline size_t size_mul(size_t a, size_t b)
{
	size_t product;
	return __builtin_mul_overflow(a, b, &product) ? SIZE_MAX : product;
}

/* Whether [offset, offset + length) lies inside [0, total). */
static inline bool range_inside(uint64_t offset, uint64_t length, uint64_t total)
{
	return offset <= total && length <= total - offset;
}

#endif
