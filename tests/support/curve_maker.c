/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "support/curve_maker.h"

#include <math.h>

#include "support/logs.h"

#include <check.h>

void maker_begin(struct curve_maker *m)
{
	*m = (struct curve_maker){.mean = CURVE_OF_STEP, .wall = NAN};
	arena_init(&m->log.arena, SIZE_MAX);
}

void maker_file(struct curve_maker *m, const char *name, const char *format)
{
	struct curve_file *f = array_push(&m->log.files, SIZE_MAX);

	ck_assert_ptr_nonnull(f);
	*f = (struct curve_file){.path = name, .format = format, .writer = "", .note = ""};
	for (int i = 0; i < CURVE_ROLES; i++)
		m->series[i] = CURVE_NONE;
}

static uint32_t series_of(struct curve_maker *m, enum curve_role role)
{
	if (m->series[role] != CURVE_NONE)
		return m->series[role];
	struct curve_series *s = array_push(&m->log.series, SIZE_MAX);
	ck_assert_ptr_nonnull(s);
	*s = (struct curve_series){.file = (uint32_t)m->log.files.count - 1,
		.role = (uint8_t)role,
		.unit = CURVE_STEPS,
		.mean = role == CURVE_LOSS ? (uint8_t)m->mean : CURVE_OF_STEP,
		.name = curve_role_name(role),
		.source = "",
		.rank = -1,
		.kept = true};
	return m->series[role] = (uint32_t)m->log.series.count - 1;
}

void maker_point(struct curve_maker *m, enum curve_role role, double x, double value)
{
	uint32_t series = series_of(m, role);
	struct curve_point *p = array_push(&m->log.points, SIZE_MAX);

	ck_assert_ptr_nonnull(p);
	if (m->resolution > 0)
		value = round(value / (double)m->resolution) * (double)m->resolution;
	*p = (struct curve_point){.x = x,
		.value = value,
		.wall = m->wall,
		.resolution = m->resolution,
		.series = series,
		.at = (uint64_t)llround(x) + 1};
	m->log.series.items[series].points++;
	m->log.files.items[m->log.files.count - 1].points++;
}

void maker_mark(struct curve_maker *m, enum curve_mark_kind kind, double x, const char *text)
{
	struct curve_mark *k = array_push(&m->log.marks, SIZE_MAX);

	ck_assert_ptr_nonnull(k);
	*k = (struct curve_mark){.file = (uint32_t)m->log.files.count - 1,
		.kind = (uint8_t)kind,
		.unit = CURVE_STEPS,
		.before = m->log.points.count,
		.x = x,
		.value = NAN,
		.wall = m->wall,
		.text = text};
}

void maker_end(struct curve_maker *m)
{
	array_release(&m->log.files);
	array_release(&m->log.series);
	array_release(&m->log.points);
	array_release(&m->log.marks);
	array_release(&m->log.losses);
	arena_release(&m->log.arena);
}

static double uniform(uint64_t *seed)
{
	return ((double)(log_random(seed) >> 11) + 0.5) / 9007199254740992.0;
}

double noise_normal(uint64_t *seed)
{
	double a = uniform(seed);

	return sqrt(-2 * log(a)) * cos(2 * M_PI * uniform(seed));
}

double noise_laplace(uint64_t *seed)
{
	double v = -log(uniform(seed)) * M_SQRT1_2;

	return uniform(seed) < 0.5 ? -v : v;
}

double noise_of_batch(uint64_t run, uint64_t batch)
{
	uint64_t seed = run * 0x9e3779b97f4a7c15u + batch;

	return noise_normal(&seed);
}

double clean_loss(double step)
{
	return 2 + 3 * pow(step + 10, -0.3);
}
