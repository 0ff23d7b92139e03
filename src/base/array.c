/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "base/array.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"

bool array_reserve_(void **items, size_t *capacity, size_t need, size_t size, size_t max)
{
	if (need <= *capacity)
		return true;
	if (need > max)
		return false;
	size_t wanted = *capacity > max / 2 ? max : *capacity * 2;
	if (wanted < 16)
		wanted = 16;
	if (wanted < need)
		wanted = need;
	void *grown = reallocarray(*items, wanted, size);
	if (!grown)
		return false;
	*items = grown;
	*capacity = wanted;
	return true;
}

void *array_push_(void **items, size_t *count, size_t *capacity, size_t size, size_t max)
{
	if (!array_reserve_(items, capacity, size_add(*count, 1), size, max))
		return NULL;
	void *element = (char *)*items + *count * size;
	memset(element, 0, size);
	(*count)++;
	return element;
}
