/* SPDX-License-Identifier: MIT */
/*
 * A sticky walk over the fields of one protobuf message in hand, enough to take a few fields out of
 * large ones: what is damaged ends the walk and sets `failed`.
 */
#ifndef CURVE_PROTOBUF_H
#define CURVE_PROTOBUF_H

#include "base/cursor.h"

enum protobuf_wire {
	PROTOBUF_VARINT = 0,
	PROTOBUF_FIXED64 = 1,
	PROTOBUF_BYTES = 2,
	PROTOBUF_FIXED32 = 5,
};

struct protobuf {
	const uint8_t *p, *end;
	bool failed;
	/* The field at hand. */
	uint32_t field;
	uint8_t wire;       /* enum protobuf_wire */
	uint64_t value;     /* of a number, its bits */
	struct slice bytes; /* of PROTOBUF_BYTES */
};

static inline struct protobuf protobuf_over(struct slice message)
{
	const uint8_t *p = (const void *)(message.n ? message.p : "");

	return (struct protobuf){.p = p, .end = p + message.n};
}

/* At most ten bytes, of which the last counts one bit. */
static inline uint64_t protobuf_varint(struct protobuf *m)
{
	uint64_t value = 0;

	/* Keys and lengths mostly have one. */
	if (m->p < m->end && *m->p < 0x80)
		return *m->p++;
	for (unsigned shift = 0; shift < 64 && m->p < m->end; shift += 7) {
		uint8_t byte = *m->p++;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return value;
	}
	m->failed = true;
	return 0;
}

static inline bool protobuf_fail(struct protobuf *m)
{
	m->failed = true;
	return false;
}

/* Go on to the next field. False at the end, and where the message is damaged. */
static inline bool protobuf_next(struct protobuf *m)
{
	if (m->failed || m->p == m->end)
		return false;
	uint64_t key = protobuf_varint(m);
	if (m->failed || key >> 3 == 0 || key >> 3 > UINT32_MAX >> 3)
		return protobuf_fail(m);
	m->field = (uint32_t)(key >> 3);
	m->wire = key & 7;
	m->bytes = (struct slice){"", 0};
	size_t left;
	switch (m->wire) {
	case PROTOBUF_VARINT:
		m->value = protobuf_varint(m);
		return !m->failed;
	case PROTOBUF_FIXED64:
		if (m->end - m->p < 8)
			return protobuf_fail(m);
		m->value = load_le64(m->p);
		m->p += 8;
		return true;
	case PROTOBUF_BYTES:
		m->value = protobuf_varint(m);
		left = (size_t)(m->end - m->p);
		if (m->failed || m->value > left)
			return protobuf_fail(m);
		m->bytes = (struct slice){(const char *)m->p, (size_t)m->value};
		m->p += m->value;
		return true;
	case PROTOBUF_FIXED32:
		if (m->end - m->p < 4)
			return protobuf_fail(m);
		m->value = load_le32(m->p);
		m->p += 4;
		return true;
	default:
		/* Groups are not written by anyone any more. */
		return protobuf_fail(m);
	}
}

/* Whether the field at hand is this one. */
static inline bool protobuf_is(const struct protobuf *m, uint32_t field, enum protobuf_wire wire)
{
	return m->field == field && m->wire == wire;
}

static inline double protobuf_double(uint64_t bits)
{
	double v;

	memcpy(&v, &bits, sizeof v);
	return v;
}

static inline float protobuf_float(uint64_t bits)
{
	uint32_t low = (uint32_t)bits;
	float v;

	memcpy(&v, &low, sizeof v);
	return v;
}

#endif
