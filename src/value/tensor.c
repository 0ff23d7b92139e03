/* SPDX-License-Identifier: MIT */
#include "value/tensor.h"

#include <math.h>
#include <string.h>

const struct dtype_row dtype_rows[DTYPE_COUNT] = {
	{"unknown", "", 0, DTYPE_KIND_OPAQUE},
#define DTYPE(id, name, safetensors, bits, kind) {name, safetensors, (bits) / 8, DTYPE_KIND_##kind},
#include "value/dtypes.def"
#undef DTYPE
};

enum dtype dtype_by_name(struct slice name)
{
	for (int i = 1; i < DTYPE_COUNT; i++)
		if (slice_is(name, dtype_rows[i].name))
			return (enum dtype)i;
	return DTYPE_UNKNOWN;
}

enum dtype dtype_by_safetensors_name(struct slice name)
{
	for (int i = 1; name.n > 0 && i < DTYPE_COUNT; i++)
		if (slice_is(name, dtype_rows[i].safetensors))
			return (enum dtype)i;
	return DTYPE_UNKNOWN;
}

enum dtype dtype_by_numpy_code(struct slice code)
{
	static const struct {
		const char *code;
		enum dtype dtype;
	} codes[] = {
		{"f4", DTYPE_F32},
		{"f8", DTYPE_F64},
		{"i8", DTYPE_I64},
		{"u4", DTYPE_U32},
		{"u1", DTYPE_U8},
		{"i4", DTYPE_I32},
		{"b1", DTYPE_BOOL},
		{"u8", DTYPE_U64},
		{"f2", DTYPE_F16},
		{"i1", DTYPE_I8},
		{"i2", DTYPE_I16},
		{"u2", DTYPE_U16},
		{"c8", DTYPE_C64},
		{"c16", DTYPE_C128},
	};

	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
		if (slice_is(code, codes[i].code))
			return codes[i].dtype;
	return DTYPE_UNKNOWN;
}

uint64_t shape_numel(const int64_t *shape, size_t ndim)
{
	int64_t numel = 1;
	bool empty = false, overflow = false;

	for (size_t i = 0; i < ndim; i++) {
		if (shape[i] < 0)
			return UINT64_MAX;
		if (shape[i] == 0)
			empty = true;
		else if (__builtin_mul_overflow(numel, shape[i], &numel))
			overflow = true;
	}
	/* The frameworks allow (0, 2^62, 2^62): there is nothing in it. */
	if (empty)
		return 0;
	return overflow ? UINT64_MAX : (uint64_t)numel;
}

uint64_t tensor_reach(const struct tensor *t)
{
	int64_t lowest, highest, end;

	if (t->numel == 0)
		return 0;
	if (t->first > INT64_MAX || t->numel > INT64_MAX)
		return UINT64_MAX;
	lowest = highest = (int64_t)t->first;
	if (!t->stride) {
		if (__builtin_add_overflow(highest, (int64_t)t->numel - 1, &highest))
			return UINT64_MAX;
	} else {
		for (size_t i = 0; i < t->ndim; i++) {
			int64_t way;
			if (__builtin_mul_overflow(t->shape[i] - 1, t->stride[i], &way))
				return UINT64_MAX;
			int64_t *edge = way < 0 ? &lowest : &highest;
			if (__builtin_add_overflow(*edge, way, edge))
				return UINT64_MAX;
		}
	}
	if (lowest < 0 || __builtin_add_overflow(highest, 1, &end) ||
		__builtin_mul_overflow(end, (int64_t)dtype_size(t->dtype), &end))
		return UINT64_MAX;
	return (uint64_t)end;
}

bool tensor_is_contiguous(const struct tensor *t)
{
	int64_t expected = 1;

	if (!t->stride || t->numel <= 1)
		return true;
	for (size_t i = t->ndim; i-- > 0;) {
		/* The stride of a dimension of size 1 is never used, and may be anything. */
		if (t->shape[i] == 1)
			continue;
		if (t->stride[i] != expected)
			return false;
		expected *= t->shape[i]; /* at most numel, which fits */
	}
	return true;
}

uint64_t tensor_element(const struct tensor *t, uint64_t i)
{
	if (!t->stride)
		return t->first + i;
	/* Unsigned, so that negative strides wrap as they should. */
	uint64_t element = t->first;
	for (size_t d = t->ndim; d-- > 0;) {
		uint64_t size = (uint64_t)t->shape[d];
		if (size == 0)
			return t->first;
		element += i % size * (uint64_t)t->stride[d];
		i /= size;
	}
	return element;
}

/* The value of `bytes` bytes in either order. */
static uint64_t load_bits(const uint8_t *p, size_t bytes, bool big_endian)
{
	uint64_t v = 0;

	for (size_t i = 0; i < bytes; i++)
		v = v << 8 | p[big_endian ? i : bytes - 1 - i];
	return v;
}

/*
 * A float of sign, `exponent` and `mantissa` bits with subnormals. What the top exponent and the
 * sign bit alone mean differs, so the caller has dealt with infinities and NaNs. Exact: all fit a
 * double.
 */
static double small_float(unsigned bits, unsigned exponent, unsigned mantissa, int bias)
{
	unsigned fraction = bits & ((1u << mantissa) - 1);
	int power = (int)(bits >> mantissa & ((1u << exponent) - 1));
	bool negative = bits >> (mantissa + exponent) & 1;

	if (power > 0)
		fraction |= 1u << mantissa;
	else
		power = 1;
	double v = ldexp((double)fraction, power - bias - (int)mantissa);
	return negative ? -v : v;
}

/* The same with IEEE 754's infinities and NaNs. */
static double ieee_float(unsigned bits, unsigned exponent, unsigned mantissa, int bias)
{
	unsigned top = (1u << exponent) - 1;

	if ((bits >> mantissa & top) != top)
		return small_float(bits, exponent, mantissa, bias);
	if (bits & ((1u << mantissa) - 1))
		return NAN;
	return bits >> (mantissa + exponent) & 1 ? -HUGE_VAL : HUGE_VAL;
}

static double float_value(enum dtype d, uint64_t bits)
{
	unsigned small = (unsigned)bits;
	uint32_t word = (uint32_t)bits;
	double wide;
	float narrow;

	switch (d) {
	case DTYPE_F64:
		memcpy(&wide, &bits, sizeof wide);
		return wide;
	case DTYPE_BF16:
		word <<= 16;
		/* fall through */
	case DTYPE_F32:
		memcpy(&narrow, &word, sizeof narrow);
		return (double)narrow;
	case DTYPE_F16:
		return ieee_float(small, 5, 10, 15);
	case DTYPE_F8_E5M2:
		return ieee_float(small, 5, 2, 15);
	/* OCP 8-bit formats: e4m3 has no infinities, all ones is NaN; e8m0 is a bare power of two.
	 */
	case DTYPE_F8_E4M3:
		return (small & 0x7f) == 0x7f ? NAN : small_float(small, 4, 3, 7);
	case DTYPE_F8_E8M0:
		return small == 0xff ? NAN : ldexp(1, (int)small - 127);
	/* The fnuz formats have no infinities and no negative zero, whose bits are the NaN. */
	case DTYPE_F8_E4M3FNUZ:
		return small == 0x80 ? NAN : small_float(small, 4, 3, 8);
	case DTYPE_F8_E5M2FNUZ:
		return small == 0x80 ? NAN : small_float(small, 5, 2, 16);
	default:
		return NAN;
	}
}

static int64_t sign_extend(uint64_t v, size_t bytes)
{
	unsigned shift = (unsigned)(64 - 8 * bytes);

	return (int64_t)(v << shift) >> shift;
}

bool dtype_to_double(enum dtype d, const uint8_t *p, bool big_endian, double *out)
{
	size_t bytes = dtype_size(d);

	if (dtype_rows[d].kind == DTYPE_KIND_COMPLEX || dtype_rows[d].kind == DTYPE_KIND_OPAQUE)
		return false;
	uint64_t bits = load_bits(p, bytes, big_endian);
	switch (dtype_rows[d].kind) {
	case DTYPE_KIND_FLOAT:
		*out = float_value(d, bits);
		return true;
	case DTYPE_KIND_INT:
		*out = (double)sign_extend(bits, bytes);
		return true;
	case DTYPE_KIND_BOOL:
		*out = bits != 0;
		return true;
	default:
		*out = (double)bits;
		return true;
	}
}

bool dtype_to_i64(enum dtype d, const uint8_t *p, bool big_endian, int64_t *out)
{
	size_t bytes = dtype_size(d);
	double v;

	switch (dtype_rows[d].kind) {
	case DTYPE_KIND_BOOL:
		*out = load_bits(p, bytes, big_endian) != 0;
		return true;
	case DTYPE_KIND_INT:
		*out = sign_extend(load_bits(p, bytes, big_endian), bytes);
		return true;
	case DTYPE_KIND_UINT: {
		uint64_t u = load_bits(p, bytes, big_endian);
		*out = (int64_t)u;
		return u <= INT64_MAX;
	}
	case DTYPE_KIND_FLOAT:
		/* Step counters are float32 tensors in the optimizers. */
		v = float_value(d, load_bits(p, bytes, big_endian));
		if (!(v >= -0x1p63 && v < 0x1p63) || v != trunc(v))
			return false;
		*out = (int64_t)v;
		return true;
	default:
		return false;
	}
}
