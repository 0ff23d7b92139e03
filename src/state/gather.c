/* SPDX-License-Identifier: MIT */
#include "state/gather.h"

#include <stdlib.h>
#include <string.h>

/* Reading what lies between is cheaper than asking again, up to about a page. */
#define BRIDGED_BYTES 4096u
/* A slab may hold so many times the bytes that are wanted of it, or be this short. */
#define WASTE 8u
#define SHORT_SLAB ((uint64_t)64 << 10)

/* One dimension of a box: `count` elements `stride` apart in the storage, `step` apart in the
 * window. */
struct axis {
	uint64_t count, step;
	int64_t stride;
};

/* A box of elements: where its first one is in the storage and in the window. */
struct box {
	struct axis axes[TENSOR_MAX_DIMS];
	unsigned n;
	size_t element; /* bytes */
};

void gather_release(struct gather *g)
{
	free(g->window);
	free(g->slab);
	*g = (struct gather){0};
}

static uint64_t magnitude(int64_t v)
{
	return v < 0 ? -(uint64_t)v : (uint64_t)v;
}

static int compare_strides(const void *pa, const void *pb)
{
	const struct axis *a = pa, *b = pb;
	uint64_t x = magnitude(a->stride), y = magnitude(b->stride);

	if (x != y)
		return x < y ? -1 : 1;
	return (a->step > b->step) - (a->step < b->step);
}

/* The dimensions of a tensor without those of one element, neighbours in a row made one. */
static unsigned simplify(const struct state_tensor *t, struct axis *axes)
{
	unsigned n = 0;

	if (!t->stride) {
		axes[0] = (struct axis){.count = t->numel, .stride = 1};
		return 1;
	}
	for (unsigned i = 0; i < t->ndim; i++) {
		struct axis *last = n > 0 ? &axes[n - 1] : NULL;
		uint64_t count = (uint64_t)t->shape[i];
		int64_t span;
		if (count == 1)
			continue;
		if (last && !__builtin_mul_overflow(t->stride[i], t->shape[i], &span) &&
			last->stride == span) {
			last->count *= count;
			last->stride = t->stride[i];
			continue;
		}
		axes[n++] = (struct axis){.count = count, .stride = t->stride[i]};
	}
	return n;
}

/* Elements from the lowest to the highest of the first `n` axes. */
static uint64_t span_of(const struct axis *axes, unsigned n)
{
	uint64_t span = 1;

	for (unsigned i = 0; i < n; i++)
		span += (axes[i].count - 1) * magnitude(axes[i].stride);
	return span;
}

/* How many of the axes, smallest strides first, are read in one piece. */
static unsigned slab_axes(const struct box *b)
{
	uint64_t wanted = 1;
	unsigned n = 0;

	for (; n < b->n; n++) {
		wanted *= b->axes[n].count;
		uint64_t bytes = span_of(b->axes, n + 1) * b->element;
		if (bytes > GATHER_SLAB ||
			(bytes > SHORT_SLAB && bytes > WASTE * wanted * b->element))
			break;
	}
	return n;
}

static void copy_element(uint8_t *to, const uint8_t *from, size_t element)
{
	switch (element) {
	case 1:
		*to = *from;
		break;
	case 2:
		memcpy(to, from, 2);
		break;
	case 4:
		memcpy(to, from, 4);
		break;
	case 8:
		memcpy(to, from, 8);
		break;
	default:
		memcpy(to, from, element);
		break;
	}
}

/* Spread the elements of a slab over the window; `from` and `to` are those of its first element. */
static void spread(const struct box *b, unsigned axes, const uint8_t *from, uint8_t *to)
{
	if (axes == 0) {
		copy_element(to, from, b->element);
		return;
	}
	const struct axis *a = &b->axes[axes - 1];
	const int64_t element = (int64_t)b->element;
	if (axes == 1 && a->stride == 1 && a->step == 1) {
		memcpy(to, from, a->count * b->element);
		return;
	}
	for (uint64_t i = 0; i < a->count; i++) {
		const uint8_t *source = from + (int64_t)i * a->stride * element;
		uint8_t *place = to + i * a->step * b->element;
		if (axes == 1)
			copy_element(place, source, b->element);
		else
			spread(b, axes - 1, source, place);
	}
}

struct reading {
	const struct source *source;
	uint64_t begin; /* of the storage */
	uint8_t *window, *slab;
};

/* One slab: the first `axes` axes from element `first` on. */
static bool read_slab(
	const struct reading *r, const struct box *b, unsigned axes, uint64_t first, uint64_t place)
{
	uint64_t below = 0;

	for (unsigned i = 0; i < axes; i++)
		if (b->axes[i].stride < 0)
			below += (b->axes[i].count - 1) * magnitude(b->axes[i].stride);
	uint64_t bytes = span_of(b->axes, axes) * b->element;
	if (source_read(r->source, r->begin + (first - below) * b->element, r->slab, (size_t)bytes,
		    NULL) < 0)
		return false;
	spread(b, axes, r->slab + below * b->element, r->window + place * b->element);
	return true;
}

/* A slab whose only axis is too long for one piece, in pieces. */
static bool read_long_axis(
	const struct reading *r, const struct box *b, uint64_t first, uint64_t place)
{
	struct box part = *b;
	struct axis *a = &part.axes[0];
	const uint64_t count = b->axes[0].count, stride = magnitude(a->stride) * b->element;
	/* Far apart: one read for each, since pages are read whole anyway. */
	const uint64_t most = stride > BRIDGED_BYTES ? 1 : GATHER_SLAB / stride;

	for (uint64_t i = 0; i < count; i += most) {
		a->count = count - i < most ? count - i : most;
		if (!read_slab(r, &part, 1, first + i * (uint64_t)a->stride, place + i * a->step))
			return false;
	}
	return true;
}

/* The box from axis `axis - 1` down to the slabs. */
static bool read_axes(const struct reading *r, const struct box *b, unsigned axis, unsigned in_slab,
	uint64_t first, uint64_t place)
{
	if (axis == in_slab)
		return read_slab(r, b, in_slab, first, place);
	if (axis == 1)
		return read_long_axis(r, b, first, place);
	const struct axis *a = &b->axes[axis - 1];
	for (uint64_t i = 0; i < a->count; i++)
		if (!read_axes(r, b, axis - 1, in_slab, first + i * (uint64_t)a->stride,
			    place + i * a->step))
			return false;
	return true;
}

static bool read_box(const struct reading *r, struct box *b, uint64_t first)
{
	qsort(b->axes, b->n, sizeof b->axes[0], compare_strides);
	return read_axes(r, b, b->n, slab_axes(b), first, 0);
}

bool gather_tensor(struct gather *g, const struct source *source, uint64_t begin,
	const struct state_tensor *t, gather_fn *take, void *context)
{
	struct axis axes[TENSOR_MAX_DIMS];
	const size_t element = dtype_size(t->dtype);
	const unsigned n = simplify(t, axes);
	uint64_t inner = 1,
		 outer = 1; /* elements of what lies inside, and rounds outside, of axis `cut` */
	unsigned cut = n;

	if (!g->window)
		g->window = malloc(GATHER_WINDOW);
	if (!g->slab)
		g->slab = malloc(GATHER_SLAB);
	if (!g->window || !g->slab)
		return false;
	const struct reading r = {source, begin, g->window, g->slab};
	/* The inner axes fill a window whole, of the next one as many as there is room for. */
	while (cut > 0 && axes[cut - 1].count <= GATHER_WINDOW / element / inner) {
		axes[--cut].step = inner;
		inner *= axes[cut].count;
	}
	const uint64_t length = cut > 0 ? axes[cut - 1].count : 1;
	const uint64_t room = GATHER_WINDOW / element / inner;
	for (unsigned i = 0; i + 1 < cut; i++)
		outer *= axes[i].count;
	for (uint64_t round = 0; round < outer; round++) {
		uint64_t base = t->first, rest = round;
		for (unsigned i = cut > 0 ? cut - 1 : 0; i-- > 0;) {
			base += rest % axes[i].count * (uint64_t)axes[i].stride;
			rest /= axes[i].count;
		}
		for (uint64_t i = 0; i < length; i += room) {
			struct box b = {.element = element};
			uint64_t count = length - i < room ? length - i : room;
			uint64_t first = base;
			if (cut > 0) {
				b.axes[b.n++] = (struct axis){count, inner, axes[cut - 1].stride};
				first += i * (uint64_t)axes[cut - 1].stride;
			}
			for (unsigned k = cut; k < n; k++)
				b.axes[b.n++] = axes[k];
			if (!read_box(&r, &b, first) ||
				!take(context, g->window, (size_t)(count * inner) * element))
				return false;
		}
	}
	return true;
}
