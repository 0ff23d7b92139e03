/* SPDX-License-Identifier: MIT */
#include "curve/read.h"

#include <math.h>
#include <string.h>
#include <xxhash.h>

#include "base/text.h"

#define LOSSES_MAX 100u          /* that are told one by one */
#define SERIES_MAX 65536u        /* of one command's files */
#define X_MAX 9007199254740992.0 /* 2^53: beyond it two steps are one double */
#define TEXT_MAX 1024u           /* bytes of a name, or of a mark's text */
#define NOTE_MAX 400u

static int no_memory(struct error *e)
{
	return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the loss logs");
}

static const char *keep(struct curve_reading *r, struct slice text)
{
	if (text.n == 0)
		return "";
	if (text.n > TEXT_MAX)
		text.n = text_whole_prefix(text, TEXT_MAX);
	return arena_strdup(&r->log->arena, text);
}

/* Series --------------------------------------------------------------------------------------- */

struct series_key {
	uint32_t file;
	struct slice name;
	enum curve_unit unit;
	int32_t rank;
};

static bool same_series(const void *of, uint32_t row, const void *key)
{
	const struct curve_series *s = &((const struct curve_log *)of)->series.items[row];
	const struct series_key *k = key;

	return s->file == k->file && s->unit == k->unit && s->rank == k->rank &&
	       slice_is(k->name, s->name);
}

/* What the user says of a name: `--series loss=NAME` gives it that role. */
static const struct curve_pattern *user_says(const struct curve_options *o, struct slice name)
{
	for (size_t i = 0; i < o->pattern_count; i++)
		if (slice_is(name, o->patterns[i].pattern) || slice_is(name, o->patterns[i].name))
			return &o->patterns[i];
	return NULL;
}

static int new_series(
	struct curve_reading *r, const struct curve_series *said, uint32_t *index, struct error *e)
{
	*index = (uint32_t)r->log->series.count;
	struct curve_series *s = array_push(&r->log->series, SERIES_MAX);
	if (!s) {
		*index = CURVE_NONE;
		return r->log->series.count == SERIES_MAX ? RP_OK : no_memory(e);
	}
	*s = *said;
	return s->name && s->source ? RP_OK : no_memory(e);
}

int curve_series_of(struct curve_reading *r, struct slice name, enum curve_role role,
	enum curve_unit unit, enum curve_mean mean, int32_t rank, uint32_t *series, struct error *e)
{
	struct curve_meaning says = {.role = role, .unit = CURVE_UNITS};

	if (name.n > TEXT_MAX)
		name.n = text_whole_prefix(name, TEXT_MAX);
	if (role == CURVE_OTHER) {
		says = curve_meaning_of(name);
		if (says.unit != CURVE_UNITS)
			unit = says.unit;
		if (says.says_mean)
			mean = says.mean;
	}
	struct series_key key = {r->file, name, unit, rank};
	uint64_t hash = XXH3_64bits_withSeed(
		name.n ? name.p : "", name.n, ((uint64_t)unit << 32) + (uint32_t)rank);
	*series = lookup_find(&r->by_name, hash, same_series, r->log, &key);
	if (*series != LOOKUP_NONE)
		return RP_OK;
	const struct curve_pattern *user = user_says(r->options, name);
	if (user && role == CURVE_OTHER && curve_role_named(slice_of(user->name)) != CURVE_OTHER)
		says.role = curve_role_named(slice_of(user->name));
	struct curve_series said = {.file = r->file,
		.role = (uint8_t)says.role,
		.unit = (uint8_t)unit,
		.mean = (uint8_t)mean,
		.name = keep(r, name),
		.source = keep(r, says.source),
		.rank = rank,
		.kept = says.role != CURVE_OTHER || user || r->options->others};
	if (new_series(r, &said, series, e) < 0)
		return e->status;
	if (*series == CURVE_NONE || lookup_add(&r->by_name, hash, *series))
		return RP_OK;
	return no_memory(e);
}

/* Points and marks ----------------------------------------------------------------------------- */

int curve_add(struct curve_reading *r, uint32_t series, double x, double value, float resolution,
	struct error *e)
{
	struct curve_log *l = r->log;

	if (series == CURVE_NONE) {
		l->dropped++;
		return RP_OK;
	}
	if (fabs(x) > X_MAX) {
		curve_lost(r, "a point at %g, which counts nothing", x);
		return RP_OK;
	}
	struct curve_series *s = &l->series.items[series];
	s->points++;
	l->files.items[r->file].points++;
	if (!s->kept)
		return RP_OK;
	if (l->points.count >= l->limits->curve_points) {
		l->dropped++;
		return RP_OK;
	}
	if (l->points.count == l->points.capacity &&
		!array_reserve(&l->points, l->points.count + 1, l->limits->curve_points))
		return no_memory(e);
	l->points.items[l->points.count++] = (struct curve_point){.x = x,
		.value = value,
		.wall = r->wall,
		.resolution = resolution,
		.series = series,
		.at = r->at};
	return RP_OK;
}

int curve_mark(struct curve_reading *r, enum curve_mark_kind kind, enum curve_unit unit, double x,
	double value, struct slice text, struct error *e)
{
	struct curve_log *l = r->log;

	if (l->marks.count >= l->limits->curve_points) {
		l->dropped++;
		return RP_OK;
	}
	struct curve_mark *m = array_push(&l->marks, l->limits->curve_points);
	const char *kept = m ? keep(r, text) : NULL;
	if (!kept)
		return no_memory(e);
	*m = (struct curve_mark){.file = r->file,
		.kind = (uint8_t)kind,
		.unit = (uint8_t)unit,
		.before = l->points.count,
		.x = x,
		.value = value,
		.wall = r->wall,
		.text = kept,
		.at = r->at};
	return RP_OK;
}

/* What is said of the file --------------------------------------------------------------------- */

void curve_lost(struct curve_reading *r, const char *format, ...)
{
	struct curve_log *l = r->log;
	char text[NOTE_MAX];
	va_list ap;

	l->lost++;
	l->files.items[r->file].lost++;
	struct curve_loss *loss = array_push(&l->losses, LOSSES_MAX);
	if (!loss)
		return;
	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	const char *kept = keep(r, slice_of(text));
	*loss = (struct curve_loss){.file = r->file, .at = r->at, .what = kept ? kept : ""};
}

int curve_broke(struct curve_reading *r, const struct error *why, struct error *e)
{
	if (error_of_system(why)) {
		*e = *why;
		return e->status;
	}
	curve_lost(r, "the rest was not read: %s", why->text);
	return RP_OK;
}

void curve_writer(struct curve_reading *r, const char *writer)
{
	const char *kept = keep(r, slice_of(writer));

	r->log->files.items[r->file].writer = kept ? kept : "";
}

void curve_note(struct curve_reading *r, const char *format, ...)
{
	char text[NOTE_MAX];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	const char *kept = keep(r, slice_of(text));
	r->log->files.items[r->file].note = kept ? kept : "";
}

/* Numbers -------------------------------------------------------------------------------------- */

#define EXACT_POWER 22 /* powers of ten up to here are exact */

static const double powers[EXACT_POWER + 1] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9,
	1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static double power_of_ten(int n)
{
	if (n >= 0 && n <= EXACT_POWER)
		return powers[n];
	return n < 0 && n >= -EXACT_POWER ? 1 / powers[-n] : pow(10, n);
}

/* The same, rounded, without a division where digits behind the point are as many as usual. */
static float unit_of(int last)
{
#define UNIT(n) (float)(1 / 1e##n)
	static const float units[] = {UNIT(0), UNIT(1), UNIT(2), UNIT(3), UNIT(4), UNIT(5), UNIT(6),
		UNIT(7), UNIT(8), UNIT(9), UNIT(10), UNIT(11), UNIT(12), UNIT(13), UNIT(14),
		UNIT(15), UNIT(16), UNIT(17), UNIT(18), UNIT(19), UNIT(20), UNIT(21), UNIT(22)};
#undef UNIT

	return last <= 0 && last >= -EXACT_POWER ? units[-last] : (float)power_of_ten(last);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* A number's parts: sign, digits without point and commas, the power of ten of the last digit. */
struct decimal {
	bool negative, grouped;
	uint64_t mantissa; /* of the first 19 digits */
	unsigned digits;   /* all that were seen */
	int last;          /* the value is mantissa * 10^last where digits <= 19 */
};

/* The digits before the point; thousands may stand apart by commas: 12,345. */
static const char *whole_digits(const char *p, const char *end, struct decimal *d)
{
	unsigned group = 0;

	for (; p < end; p++) {
		if (is_digit(*p)) {
			if (d->digits++ < 19)
				d->mantissa = d->mantissa * 10 + (unsigned)(*p - '0');
			group++;
			continue;
		}
		if (*p != ',')
			break;
		if (group == 0 || group > 3 || (d->grouped && group != 3))
			return NULL;
		d->grouped = true;
		group = 0;
	}
	return d->grouped && group != 3 ? NULL : p;
}

static const char *exponent_digits(const char *p, const char *end, int *exponent)
{
	bool negative = false;
	int n = 0;

	if (p < end && (*p == '-' || *p == '+'))
		negative = *p++ == '-';
	const char *first = p;
	for (; p < end && is_digit(*p); p++)
		if (n < 10000)
			n = n * 10 + (*p - '0');
	*exponent = negative ? -n : n;
	return p > first ? p : NULL;
}

/* The end of the number, or NULL where there is none. */
static const char *read_decimal(const char *p, const char *end, struct decimal *d)
{
	int exponent = 0;

	if (p < end && (*p == '-' || *p == '+'))
		d->negative = *p++ == '-';
	p = whole_digits(p, end, d);
	if (p && p < end && *p == '.')
		for (p++; p < end && is_digit(*p); p++) {
			if (d->digits++ < 19)
				d->mantissa = d->mantissa * 10 + (unsigned)(*p - '0');
			d->last--;
		}
	if (!p || d->digits == 0)
		return NULL;
	if (p < end && (*p == 'e' || *p == 'E')) {
		p = exponent_digits(p + 1, end, &exponent);
		d->last += exponent;
	}
	return p;
}

/* The power of ten of a suffix, or -1. */
static int suffix_power(char c)
{
	switch (c) {
	case 'K':
	case 'k':
		return 3;
	case 'M':
		return 6;
	case 'B':
	case 'G':
		return 9;
	case 'T':
		return 12;
	default:
		return -1;
	}
}

/* What has too many digits for a product of two exact numbers goes the long way. */
static bool long_way(struct slice text, bool grouped, double *value)
{
	char plain[128];
	size_t n = 0;

	if (!grouped)
		return text_parse_double(text, value);
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] == ',')
			continue;
		if (n == sizeof plain)
			return false;
		plain[n++] = text.p[i];
	}
	return text_parse_double((struct slice){plain, n}, value);
}

bool curve_decimal(uint64_t mantissa, int last, double *value, float *resolution)
{
	*resolution = unit_of(last);
	return text_decimal(mantissa, last, value);
}

bool curve_number(struct slice text, bool suffixes, double *value, float *resolution)
{
	const char *end = text.p + text.n;
	struct decimal d = {0};
	int power = 0;

	*resolution = 0;
	if (text.n == 0)
		return false;
	const char *p = read_decimal(text.p, end, &d);
	if (!p)
		return text_parse_double(text, value) && !isfinite(*value);
	if (suffixes && end - p == 1 && (power = suffix_power(*p)) > 0)
		end--;
	if (p != end)
		return false;
	if (d.digits <= 19 && text_decimal(d.mantissa, d.last + power, value)) {
		if (d.negative)
			*value = -*value;
	} else if (long_way((struct slice){text.p, (size_t)(end - text.p)}, d.grouped, value)) {
		*value *= power_of_ten(power);
	} else {
		return false;
	}
	*resolution = unit_of(d.last + power);
	return true;
}
