/* SPDX-License-Identifier: MIT */
#include "state/statistics.h"

#include <math.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

const struct statistics statistics_none = {.min = HUGE_VAL, .max = -HUGE_VAL};

/* The loops over floats take them as the processor has them. */
#define HOST_IS_LITTLE (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)

#define INLINE static inline __attribute__((always_inline))
#define CHUNK 2048u /* elements that are gone over while they lie in the nearest cache */

/* How a float type lies in its bits, of which the top one is the sign. */
struct float_type {
	uint64_t infinity; /* the bits of infinity: what is above, sign off, is NaN */
	uint64_t least;    /* those of the smallest normal number: what is below is denormal */
};

static const struct float_type float_types[DTYPE_COUNT] = {
	[DTYPE_F64] = {0x7ff0000000000000, 0x0010000000000000},
	[DTYPE_F32] = {0x7f800000, 0x00800000},
	[DTYPE_BF16] = {0x7f80, 0x0080},
	[DTYPE_F16] = {0x7c00, 0x0400},
};

/* The size of these types where a constant is asked for. */
#define dtype_width(d) ((d) == DTYPE_F64 ? 8u : (d) == DTYPE_F32 ? 4u : 2u)

/*
 * The extremes of a chunk as bits. As unsigned integers, floats with the sign on come last, the
 * largest magnitude last of all; as signed ones the largest positive number is last. Integers, so
 * that the compiler may go over them in any order.
 */
struct extremes {
	uint64_t unsigned_most, signed_most;
	uint64_t least_magnitude;
};

/* What is not an ordinary number in a chunk. */
struct specials {
	uint64_t zeros, denormals, infinities, negative_infinities, nans;
};

/*
 * For each width of floats: the extremes of a chunk, a count of its specials, and a copy in which
 * zero stands for what is not finite. Loops that a compiler vectorises.
 */
#define DEFINE_WIDTH(width)                                                                        \
	INLINE struct extremes extremes##width(const uint8_t *p, size_t n)                         \
	{                                                                                          \
		const uint##width##_t sign = (uint##width##_t)1 << (width - 1);                    \
		uint##width##_t unsigned_most = 0, least = sign - 1;                               \
		int##width##_t signed_most = INT##width##_MIN;                                     \
		for (size_t i = 0; i < n; i++) {                                                   \
			uint##width##_t v;                                                         \
			memcpy(&v, p + i * sizeof v, sizeof v);                                    \
			uint##width##_t magnitude = v & (uint##width##_t)(sign - 1);               \
			int##width##_t s = (int##width##_t)v;                                      \
			unsigned_most = v > unsigned_most ? v : unsigned_most;                     \
			least = magnitude < least ? magnitude : least;                             \
			signed_most = s > signed_most ? s : signed_most;                           \
		}                                                                                  \
		return (struct extremes){unsigned_most, (uint##width##_t)signed_most, least};      \
	}                                                                                          \
                                                                                                   \
	INLINE struct specials specials##width(                                                    \
		const uint8_t *p, size_t n, const struct float_type *t)                            \
	{                                                                                          \
		const uint##width##_t sign = (uint##width##_t)1 << (width - 1);                    \
		const uint##width##_t infinity = (uint##width##_t)t->infinity;                     \
		const uint##width##_t least = (uint##width##_t)t->least;                           \
		uint##width##_t zeros = 0, small = 0, infinite = 0, negative = 0, nans = 0;        \
		for (size_t i = 0; i < n; i++) {                                                   \
			uint##width##_t v;                                                         \
			memcpy(&v, p + i * sizeof v, sizeof v);                                    \
			uint##width##_t magnitude = v & (uint##width##_t)(sign - 1);               \
			zeros = (uint##width##_t)(zeros + (magnitude == 0));                       \
			small = (uint##width##_t)(small + (magnitude < least));                    \
			infinite = (uint##width##_t)(infinite + (magnitude == infinity));          \
			negative = (uint##width##_t)(negative + (v == (sign | infinity)));         \
			nans = (uint##width##_t)(nans + (magnitude > infinity));                   \
		}                                                                                  \
		return (struct specials){                                                          \
			zeros, (uint64_t)(small - zeros), infinite, negative, nans};               \
	}                                                                                          \
                                                                                                   \
	INLINE size_t finite##width(                                                               \
		uint8_t *out, const uint8_t *p, size_t n, const struct float_type *t)              \
	{                                                                                          \
		const uint##width##_t mask = ((uint##width##_t)1 << (width - 1)) - 1;              \
		size_t kept = 0;                                                                   \
		for (size_t i = 0; i < n; i++) {                                                   \
			uint##width##_t v;                                                         \
			memcpy(&v, p + i * sizeof v, sizeof v);                                    \
			if ((v & mask) < t->infinity)                                              \
				memcpy(out + kept++ * sizeof v, &v, sizeof v);                     \
		}                                                                                  \
		return kept;                                                                       \
	}

DEFINE_WIDTH(16)
DEFINE_WIDTH(32)
DEFINE_WIDTH(64)

/* Vectors whose loads need no alignment; made of the lanes of any processor. */
typedef float f32x4 __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint32_t u32x4 __attribute__((vector_size(16), aligned(1), may_alias));
typedef double f64x4 __attribute__((vector_size(32), aligned(1), may_alias));

#define LOAD(type, p) (*(const type *)(const void *)(p))

/* Four numbers more into lanes of a sum and of a sum of squares. */
#define ADD_FOUR(k, four)                                                                          \
	do {                                                                                       \
		f64x4 v_ = (four);                                                                 \
		sum##k += v_;                                                                      \
		squares##k += v_ * v_;                                                             \
	} while (0)

/* Sixteen elements of each type at `p`; WIDE makes four doubles of four floats. */
#define ADD_F64(p, WIDE)                                                                           \
	do {                                                                                       \
		ADD_FOUR(0, LOAD(f64x4, p));                                                       \
		ADD_FOUR(1, LOAD(f64x4, (p) + 32));                                                \
		ADD_FOUR(2, LOAD(f64x4, (p) + 64));                                                \
		ADD_FOUR(3, LOAD(f64x4, (p) + 96));                                                \
	} while (0)

#define ADD_F32(p, WIDE)                                                                           \
	do {                                                                                       \
		ADD_FOUR(0, WIDE(LOAD(f32x4, p)));                                                 \
		ADD_FOUR(1, WIDE(LOAD(f32x4, (p) + 16)));                                          \
		ADD_FOUR(2, WIDE(LOAD(f32x4, (p) + 32)));                                          \
		ADD_FOUR(3, WIDE(LOAD(f32x4, (p) + 48)));                                          \
	} while (0)

/* Two elements of 16 bits in a word of 32: the even ones to some lanes, the odd ones to others. */
#define ADD_PAIRS(p, WIDE, FLOATS)                                                                 \
	do {                                                                                       \
		u32x4 a_ = LOAD(u32x4, p), b_ = LOAD(u32x4, (p) + 16);                             \
		ADD_FOUR(0, WIDE(FLOATS(a_ << 16)));                                               \
		ADD_FOUR(1, WIDE(FLOATS(a_ & 0xffff0000u)));                                       \
		ADD_FOUR(2, WIDE(FLOATS(b_ << 16)));                                               \
		ADD_FOUR(3, WIDE(FLOATS(b_ & 0xffff0000u)));                                       \
	} while (0)

/*
 * Exponent and mantissa of float16, moved to where float32 has them, are the number times 2^-112:
 * exponents begin at 15 and at 127. That holds for denormals too.
 */
#define HALF_SCALE ((f32x4){0x1p112f, 0x1p112f, 0x1p112f, 0x1p112f})
#define FROM_HALF(w) ((f32x4)(((w)&0x80000000u) | ((w)&0x7fffffffu) >> 3) * HALF_SCALE)
#define FROM_BRAIN(w) ((f32x4)(w))
#define ADD_BF16(p, WIDE) ADD_PAIRS(p, WIDE, FROM_BRAIN)
#define ADD_F16(p, WIDE) ADD_PAIRS(p, WIDE, FROM_HALF)

INLINE double sum_of_lanes(const f64x4 *a, const f64x4 *b, const f64x4 *c, const f64x4 *d)
{
	f64x4 four = (*a + *b) + (*c + *d);

	return (four[0] + four[1]) + (four[2] + four[3]);
}

/* Add the sums of `n` finite elements; what the last sixteen lack is filled with zeros. */
#define DEFINE_SUMS(name, width, ADD_SIXTEEN, WIDE)                                                \
	static void name(struct statistics *out, const uint8_t *p, size_t n)                       \
	{                                                                                          \
		f64x4 sum0 = {0}, sum1 = {0}, sum2 = {0}, sum3 = {0};                              \
		f64x4 squares0 = {0}, squares1 = {0}, squares2 = {0}, squares3 = {0};              \
		size_t whole = n - n % 16;                                                         \
		for (size_t i = 0; i < whole; i += 16)                                             \
			ADD_SIXTEEN(p + i * (width), WIDE);                                        \
		if (whole < n) {                                                                   \
			uint8_t rest[16 * (width)] = {0};                                          \
			memcpy(rest, p + whole * (width), (n - whole) * (width));                  \
			ADD_SIXTEEN(rest, WIDE);                                                   \
		}                                                                                  \
		out->sum += sum_of_lanes(&sum0, &sum1, &sum2, &sum3);                              \
		out->squares += sum_of_lanes(&squares0, &squares1, &squares2, &squares3);          \
	}

static double value_of_bits(enum dtype d, uint64_t bits)
{
	uint8_t raw[8];
	double v = 0;

	for (size_t i = 0; i < sizeof raw; i++)
		raw[i] = (uint8_t)(bits >> 8 * i);
	dtype_to_double(d, raw, false, &v);
	return v + 0.0; /* zero has no sign here */
}

/* Take in the extremes of finite elements. */
INLINE void add_extremes(struct statistics *out, enum dtype d, const struct extremes *x)
{
	const uint64_t sign = (uint64_t)1 << (8 * dtype_width(d) - 1);
	uint64_t least = x->unsigned_most & sign ? x->unsigned_most : x->least_magnitude;
	uint64_t most = x->signed_most & sign ? x->least_magnitude | sign : x->signed_most;
	double min = value_of_bits(d, least), max = value_of_bits(d, most);

	if (min < out->min)
		out->min = min;
	if (max > out->max)
		out->max = max;
}

INLINE struct extremes extremes_of(enum dtype d, const uint8_t *p, size_t n)
{
	return dtype_width(d) == 2   ? extremes16(p, n)
	       : dtype_width(d) == 4 ? extremes32(p, n)
				     : extremes64(p, n);
}

INLINE void add_specials(struct statistics *out, enum dtype d, const uint8_t *p, size_t n)
{
	const struct float_type *t = &float_types[d];
	struct specials c = dtype_width(d) == 2   ? specials16(p, n, t)
			    : dtype_width(d) == 4 ? specials32(p, n, t)
						  : specials64(p, n, t);

	out->zeros += c.zeros;
	out->denormals += c.denormals;
	out->infinities += c.infinities;
	out->negative_infinities += c.negative_infinities;
	out->nans += c.nans;
}

INLINE size_t finite_of(enum dtype d, uint8_t *out, const uint8_t *p, size_t n)
{
	const struct float_type *t = &float_types[d];

	return dtype_width(d) == 2   ? finite16(out, p, n, t)
	       : dtype_width(d) == 4 ? finite32(out, p, n, t)
				     : finite64(out, p, n, t);
}

/*
 * One chunk but for its sums. Returns how many finite elements there are to be summed, and where:
 * in the chunk itself, or in `finite` where the others were left out.
 */
INLINE size_t add_chunk(
	struct statistics *out, enum dtype d, const uint8_t **p, size_t n, uint8_t *finite)
{
	const struct float_type *t = &float_types[d];
	const uint64_t sign = (uint64_t)1 << (8 * dtype_width(d) - 1);
	struct extremes x = extremes_of(d, *p, n);
	bool special = x.unsigned_most >= (sign | t->infinity) ||
		       (!(x.signed_most & sign) && x.signed_most >= t->infinity);

	if (special || x.least_magnitude < t->least)
		add_specials(out, d, *p, n);
	if (special) {
		n = finite_of(d, finite, *p, n);
		*p = finite;
		if (n == 0)
			return 0;
		x = extremes_of(d, finite, n);
	}
	add_extremes(out, d, &x);
	return n;
}

typedef void floats_fn(struct statistics *out, const uint8_t *p, size_t n);

/* All elements of one type. Whole chunks have a length that the compiler knows. */
#define DEFINE_FLOATS(name, dtype, ADD_SIXTEEN, WIDE, TARGET)                                      \
	TARGET DEFINE_SUMS(name##_sums, dtype_width(dtype), ADD_SIXTEEN, WIDE)                     \
	TARGET static void name(struct statistics *out, const uint8_t *p, size_t n)                \
	{                                                                                          \
		uint8_t finite[CHUNK * dtype_width(dtype)];                                        \
		while (n > 0) {                                                                    \
			const uint8_t *at = p;                                                     \
			size_t taken = n < CHUNK ? n : CHUNK;                                      \
			size_t kept = taken == CHUNK ? add_chunk(out, dtype, &at, CHUNK, finite)   \
						     : add_chunk(out, dtype, &at, taken, finite);  \
			name##_sums(out, at, kept);                                                \
			p += taken * dtype_width(dtype);                                           \
			n -= taken;                                                                \
		}                                                                                  \
	}

#define DEFINE_TARGET(name, WIDE, TARGET)                                                          \
	DEFINE_FLOATS(name##_f64, DTYPE_F64, ADD_F64, WIDE, TARGET)                                \
	DEFINE_FLOATS(name##_f32, DTYPE_F32, ADD_F32, WIDE, TARGET)                                \
	DEFINE_FLOATS(name##_bf16, DTYPE_BF16, ADD_BF16, WIDE, TARGET)                             \
	DEFINE_FLOATS(name##_f16, DTYPE_F16, ADD_F16, WIDE, TARGET)                                \
	static floats_fn *name(enum dtype d)                                                       \
	{                                                                                          \
		return d == DTYPE_F64    ? name##_f64                                              \
		       : d == DTYPE_F32  ? name##_f32                                              \
		       : d == DTYPE_BF16 ? name##_bf16                                             \
					 : name##_f16;                                             \
	}

#define WIDE_PLAIN(four) __builtin_convertvector(four, f64x4)
DEFINE_TARGET(floats_plain, WIDE_PLAIN, )

#if defined(__x86_64__)
/* AVX2 and no more: a fused multiply-add would round the squares of doubles otherwise. */
#define WIDE_AVX2(four) ((f64x4)_mm256_cvtps_pd((__m128)(four)))
DEFINE_TARGET(floats_avx2, WIDE_AVX2, __attribute__((target("avx2"))))
#endif

static floats_fn *floats_best(enum dtype d)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx2"))
		return floats_avx2(d);
#endif
	return floats_plain(d);
}

/* One value that stands `times` times among the elements. */
static void add_value(struct statistics *out, double v, double least_normal, uint64_t times)
{
	if (isnan(v)) {
		out->nans += times;
		return;
	}
	if (isinf(v)) {
		out->infinities += times;
		out->negative_infinities += v < 0 ? times : 0;
		return;
	}
	out->zeros += v == 0 ? times : 0;
	out->denormals += v != 0 && fabs(v) < least_normal ? times : 0;
	out->min = v < out->min ? v + 0.0 : out->min;
	out->max = v > out->max ? v + 0.0 : out->max;
	out->sum += v * (double)times;
	out->squares += v * v * (double)times;
}

/* The smallest normal number of a type; 0 where it has no denormals. */
static double least_normal_of(enum dtype d)
{
	switch (d) {
	case DTYPE_F64:
		return 0x1p-1022;
	case DTYPE_F32:
	case DTYPE_BF16:
		return 0x1p-126;
	case DTYPE_F16:
	case DTYPE_F8_E5M2:
		return 0x1p-14;
	case DTYPE_F8_E4M3:
		return 0x1p-6;
	case DTYPE_F8_E4M3FNUZ:
		return 0x1p-7;
	case DTYPE_F8_E5M2FNUZ:
		return 0x1p-15;
	default:
		return 0;
	}
}

/* A byte has 256 values: count them, and the sums are exact. */
static void add_bytes(struct statistics *out, enum dtype d, const uint8_t *p, size_t n)
{
	uint64_t counts[4][256] = {{0}};
	size_t i = 0;

	/* Four tables, since equal neighbours would wait for each other in one. */
	for (; i + 4 <= n; i += 4)
		for (size_t k = 0; k < 4; k++)
			counts[k][p[i + k]]++;
	for (; i < n; i++)
		counts[0][p[i]]++;
	for (unsigned v = 0; v < 256; v++) {
		uint64_t times = counts[0][v] + counts[1][v] + counts[2][v] + counts[3][v];
		if (times > 0)
			add_value(out, value_of_bits(d, v), least_normal_of(d), times);
	}
}

/* Numbers of any type, one by one. */
static void add_numbers(struct statistics *out, enum dtype d, const uint8_t *p, size_t n)
{
	const double least_normal = least_normal_of(d);

	for (size_t i = 0; i < n; i++) {
		double v = 0;
		dtype_to_double(d, p + i * dtype_size(d), false, &v);
		add_value(out, v, least_normal, 1);
	}
}

bool statistics_possible(enum dtype d)
{
	return dtype_rows[d].kind != DTYPE_KIND_OPAQUE && dtype_rows[d].kind != DTYPE_KIND_COMPLEX;
}

static struct statistics statistics_by(
	floats_fn *(*choose)(enum dtype), enum dtype d, const uint8_t *p, size_t n)
{
	struct statistics out = statistics_none;

	if (dtype_size(d) == 1)
		add_bytes(&out, d, p, n);
	else if (dtype_rows[d].kind == DTYPE_KIND_FLOAT && HOST_IS_LITTLE)
		choose(d)(&out, p, n);
	else
		add_numbers(&out, d, p, n);
	return out;
}

struct statistics statistics_of(enum dtype d, const uint8_t *p, size_t n)
{
	return statistics_by(floats_best, d, p, n);
}

struct statistics statistics_of_plain(enum dtype d, const uint8_t *p, size_t n)
{
	return statistics_by(floats_plain, d, p, n);
}

void statistics_add(struct statistics *s, const struct statistics *next)
{
	s->min = next->min < s->min ? next->min : s->min;
	s->max = next->max > s->max ? next->max : s->max;
	s->sum += next->sum;
	s->squares += next->squares;
	s->zeros += next->zeros;
	s->nans += next->nans;
	s->infinities += next->infinities;
	s->negative_infinities += next->negative_infinities;
	s->denormals += next->denormals;
}

void statistics_conclude(const struct statistics *s, uint64_t numel, struct tensor_summary *out)
{
	double finite = (double)(numel - s->nans - s->infinities);
	bool any = finite > 0;

	out->valued = true;
	out->min = any ? s->min : NAN;
	out->max = any ? s->max : NAN;
	out->mean = any ? s->sum / finite : NAN;
	out->rms = any ? sqrt(s->squares / finite) : NAN;
	out->zeros = s->zeros;
	out->nans = s->nans;
	out->infinities = s->infinities;
	out->negative_infinities = s->negative_infinities;
	out->denormals = s->denormals;
}
