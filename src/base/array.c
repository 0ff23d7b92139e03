/* SPDX-License-Identifier: MIT */
#include "base/array.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"

bool array_reserve_(void **items, size_t *capacity, size_t need, size_t size, size_t max)
{
	if (need > max)
		return false;
	if (need <= *capacity)
		return true;
	size_t wanted = *capacity > max / 2 ? max : *capacity * 2;
	if (wanted < 16)
		wanted = max < 16 ? max : 16;
	if (wanted < need)
		wanted = need;
	size_t bytes = size_mul(wanted, size);
	void *grown = bytes < SIZE_MAX ? realloc(*items, bytes) : NULL;
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
