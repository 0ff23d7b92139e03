/* SPDX-License-Identifier: MIT */
#include "audit/curves.h"

#include <math.h>
#include <stdlib.h>

#include "audit/case.h"
#include "audit/seams.h"
#include "base/text.h"

#define SCALE_POINTS 20000u  /* of the loss scale that are looked at */
#define SCALE_BLOCKS 20u     /* blocks of equal length, of whose medians the trend is judged */
#define EPOCHS_LOOKED 8u     /* other epochs' starts that are looked at */
#define EPOCH_NEAR 2.0       /* intervals from a resume, within which an epoch starts at it */
#define EPOCH_SHARE 0.5      /* of a stretch's depth, that is as deep */
#define SCALE_BLOCK_LEAST 8u /* points in one */
#define SCALE_POWERS 2.0     /* of two, by which the last quarter lies below the first half */

/* Replays, by the sample log --------------------------------------------------------------------
 */

static bool is_replay(const struct seam_judgement *j)
{
	return j->outcome == SEAM_FROM_START || j->outcome == SEAM_FROM_EPOCH ||
	       j->outcome == SEAM_WINDOW || j->outcome == SEAM_OTHER_ORDER;
}

/* The last step that the sample log calls a replay behind a resume from that step, or NAN. */
static double replayed_to(const struct audit_case *a, double from)
{
	if (!a || a->line_count == 0)
		return NAN;
	const struct case_line *line = &a->lines[0];
	for (size_t i = 0; i < line->judged.list.count; i++) {
		const struct seam *s = &line->alignments.seams.items[i];
		const struct seam_judgement *j = &line->judged.list.items[i];
		int64_t step = line->lineage.attempts.items[s->to].from_step;
		if ((double)step != from || !is_replay(j) || j->run == 0)
			continue;
		uint64_t last = s->at + (j->run < s->rows ? j->run : s->rows) - 1;
		return last < line->lineage.rows ? (double)line_step_at(&line->lineage, last)->step
						 : NAN;
	}
	return NAN;
}

/* Epochs --------------------------------------------------------------------------------------- */

/* How a stretch that is lower or higher than the trend is looked for. */
typedef int find_stretch(const struct case_curve *c, uint32_t attempt, double from,
	struct resume_low *out, struct error *e);

static int find_low(const struct case_curve *c, uint32_t attempt, double from,
	struct resume_low *out, struct error *e)
{
	return resume_find_low(&c->stitch, attempt, from, NAN, out, e);
}

static int find_high(const struct case_curve *c, uint32_t attempt, double from,
	struct resume_low *out, struct error *e)
{
	return resume_find_high(&c->stitch, attempt, from, out, e);
}

/*
 * Whether a stretch behind a resume at an epoch's start is the data's own: behind other epochs'
 * starts there is one like it, as where samples are sorted by length. *yes tells.
 */
static int every_epoch_has_it(const struct case_curve *c, const struct curve_resume *r,
	const struct resume_low *l, find_stretch *find, bool *yes, struct error *e)
{
	const struct stitch_track *t = stitch_track_of(&c->stitch, CURVE_EPOCH_COUNT);
	size_t looked = 0;
	bool here = false, there = false;

	*yes = false;
	for (size_t i = 1; l->found && t && i < t->line.count && looked < EPOCHS_LOOKED; i++) {
		const struct stitch_value *a = &t->values.items[t->line.items[i - 1]];
		const struct stitch_value *b = &t->values.items[t->line.items[i]];
		struct resume_low other;
		if (floor(b->value) != floor(a->value) + 1)
			continue;
		if (fabs(b->x - r->check.from) <= EPOCH_NEAR * fmax(1, c->spikes.interval)) {
			here = true;
			continue;
		}
		looked++;
		if (find(c, b->attempt, a->x, &other, e) < 0)
			return e->status;
		there = there || (other.found && other.depth > EPOCH_SHARE * l->depth);
	}
	*yes = here && there;
	return RP_OK;
}

/* Take what every epoch has for no doing of the resume. */
static int drop_epochs(const struct case_curve *c, struct curve_resume *r, struct error *e)
{
	bool low, high;

	if (every_epoch_has_it(c, r, &r->low, find_low, &low, e) < 0 ||
		every_epoch_has_it(c, r, &r->high, find_high, &high, e) < 0)
		return e->status;
	r->low.found = r->low.found && (!low || !isnan(r->replayed_to));
	r->high.found = r->high.found && !high;
	return RP_OK;
}

/* Opening -------------------------------------------------------------------------------------- */

/*
 * A few steps follow the dead branch by chance now and then. Where more of them follow other steps,
 * and more closely, they are those.
 */
static bool repeats_rather(const struct curve_resume *r)
{
	const struct resume_check *k = &r->check;
	const struct resume_repeat *p = &r->repeat;

	return k->outcome == RESUME_SAME_BATCHES && p->found && !p->renumbered &&
	       p->points > k->loss.pairs && p->correlation > k->correlation;
}

static int add_resume(struct case_curve *c, const struct resume_check *check,
	const struct audit_case *audit, struct error *e)
{
	struct curve_resume *r = array_push(&c->resumes, SIZE_MAX);
	struct strbuf b;

	if (!r)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the resumes");
	*r = (struct curve_resume){.check = *check,
		.replayed_to = replayed_to(audit, check->from),
		.changes = "",
		.rate_changes = ""};
	bool begins = check->from == c->stitch.attempts.items[check->attempt].from;
	if ((begins && resume_find_repeat(&c->stitch, check->attempt, &r->repeat, e) < 0) ||
		resume_find_low(
			&c->stitch, check->attempt, check->from, r->replayed_to, &r->low, e) < 0 ||
		resume_find_high(&c->stitch, check->attempt, check->from, &r->high, e) < 0 ||
		drop_epochs(c, r, e) < 0)
		return e->status;
	if (repeats_rather(r))
		r->check.outcome = RESUME_DIFFERS;
	if (begins)
		resume_find_ramp(&c->stitch, check->attempt, &r->ramp);
	if (begins && !r->repeat.renumbered)
		rate_judge(&c->stitch, check->attempt, check->reference, check->from, &r->rate);
	strbuf_init(&b, 2000);
	r->explained = begins && resume_changes(&c->stitch, check->attempt, !check->by_amount, &b);
	if (r->explained)
		r->changes = arena_strdup(&c->arena, strbuf_slice(&b));
	strbuf_clear(&b);
	if (begins)
		r->rate_by = (uint8_t)rate_declared(&c->stitch, check->attempt, &b);
	if (r->rate_by != RATE_UNDECLARED)
		r->rate_changes = arena_strdup(&c->arena, strbuf_slice(&b));
	if (b.no_memory || !r->rate_changes)
		r->changes = NULL;
	strbuf_release(&b);
	return r->changes ? RP_OK
			  : fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the resumes");
}

int case_curve_open(struct case_curve *c, const struct curve_log *l, const struct stitch_options *o,
	const struct audit_case *audit, struct error *e)
{
	*c = (struct case_curve){.log = l};
	arena_init(&c->arena, SIZE_MAX);
	if (stitch_build(&c->stitch, l, o, e) < 0 || spikes_of(&c->spikes, &c->stitch, e) < 0)
		return e->status;
	struct resume_check *list = calloc(c->stitch.attempts.count + 1, sizeof *list);
	if (!list)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the resumes");
	size_t n = resume_check_all(&c->stitch, list);
	int status = n != SIZE_MAX
			     ? RP_OK
			     : fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the resumes");
	for (size_t i = 0; i < n && status == RP_OK; i++)
		status = add_resume(c, &list[i], audit, e);
	free(list);
	/* Resumes inside an attempt, of which there is no dead branch. */
	for (size_t i = 0; i < c->stitch.seams.count && status == RP_OK; i++) {
		const struct stitch_seam *s = &c->stitch.seams.items[i];
		struct resume_check inside = {.attempt = s->to,
			.reference = CURVE_NONE,
			.from = s->x,
			.outcome = RESUME_ALONE,
			.correlation = NAN,
			.noise = NAN,
			.diverges = NAN};
		if (s->hidden || s->known)
			status = add_resume(c, &inside, audit, e);
	}
	return status;
}

void case_curve_close(struct case_curve *c)
{
	stitch_release(&c->stitch);
	spikes_release(&c->spikes);
	array_release(&c->resumes);
	arena_release(&c->arena);
}

const struct curve_resume *curve_resume_of(const struct case_curve *c, uint32_t attempt)
{
	for (size_t i = 0; i < c->resumes.count; i++)
		if (c->resumes.items[i].check.attempt == attempt &&
			c->resumes.items[i].check.from == c->stitch.attempts.items[attempt].from)
			return &c->resumes.items[i];
	return NULL;
}

/* Words ---------------------------------------------------------------------------------------- */

static void add_first(struct strbuf *b, const struct resume_series *s, bool mean)
{
	strbuf_add_text(b, "the first ");
	if (s->matched != 1) {
		text_add_count(b, s->matched);
		strbuf_add_char(b, ' ');
	}
	strbuf_add_text(b, mean ? "logged mean" : "logged step");
	strbuf_add_text(b, s->matched == 1 ? " matches" : "s match");
}

static void add_rate(const struct curve_resume *r, struct strbuf *b)
{
	static const char *const words[] = {[RATE_RESTARTED] = "starts again",
		[RATE_LAG] = "is that of other steps",
		[RATE_PACE] = "goes at another pace",
		[RATE_LENGTH] = "jumps",
		[RATE_SCALED] = "jumps",
		[RATE_JUMP] = "jumps"};

	if (r->rate.kind > RATE_CONTINUES)
		strbuf_printf(b, "; the learning rate %s", words[r->rate.kind]);
}

static void add_further(const struct curve_resume *r, struct strbuf *b)
{
	if (r->explained && r->check.outcome >= RESUME_SAME_BATCHES)
		strbuf_printf(b, " (%s)", r->changes);
	if (r->repeat.found)
		strbuf_add_text(b, "; repeats earlier steps");
	if (r->low.found)
		strbuf_add_text(b, "; low at first, as replayed data makes it");
	add_rate(r, b);
}

/* A batch, which is mostly a whole number. */
static void add_size(struct strbuf *b, double v)
{
	if (v >= 1 && fabs(v - round(v)) < 1e-3 * v)
		text_add_count(b, (uint64_t)llround(v));
	else
		text_add_rounded(b, v, 4);
}

/* What came of comparing over the same samples: "32 samples a step for 16: …". */
static void add_by_amount(
	const struct case_curve *c, const struct resume_check *k, struct strbuf *b)
{
	const char *unit = k->guessed ? "samples" : curve_unit_name(c->stitch.unit);

	if (k->outcome < RESUME_MATCHES)
		strbuf_add_text(b, "not checked: ");
	if (k->guessed) {
		strbuf_add_text(b, "a step has, by the losses, ");
		text_add_rounded(b, k->after, 3);
		strbuf_add_text(b, " times the samples");
	} else {
		add_size(b, k->after);
		strbuf_printf(b, " %s a step for ", unit);
		add_size(b, k->before);
	}
	strbuf_add_text(b, ", and ");
	switch (k->outcome) {
	case RESUME_ALONE:
		strbuf_add_text(b, "no other attempt logged the same ones as a whole");
		break;
	case RESUME_MATCHES:
		strbuf_add_text(b, "the loss over the same ones matches");
		break;
	case RESUME_SAME_BATCHES:
		strbuf_add_text(b, "the same ones with other values");
		break;
	case RESUME_DIFFERS:
		strbuf_printf(b, "the loss over the same %s does not match", unit);
		break;
	default:
		strbuf_add_text(
			b, "too little of the same ones was logged to tell them from others");
		break;
	}
}

void curve_resume_words(const struct case_curve *c, const struct curve_resume *r, struct strbuf *b)
{
	const struct resume_check *k = &r->check;
	bool mean = c->stitch.attempts.items[k->attempt].mean;

	if (k->by_amount) {
		add_by_amount(c, k, b);
		add_further(r, b);
		return;
	}
	switch (k->outcome) {
	case RESUME_ALONE:
		strbuf_add_text(b, "not checked: no other attempt logged these steps");
		break;
	case RESUME_INTERVALS:
		strbuf_add_text(b, "not checked: the logged intervals do not coincide");
		break;
	case RESUME_BATCH:
		strbuf_add_text(b,
			"not checked: the batch changed, and the logs do not say how many "
			"samples a step has");
		break;
	case RESUME_COARSE:
		strbuf_add_text(
			b, "not checked: too few or too smooth values to tell batches apart");
		break;
	case RESUME_MATCHES:
		add_first(b, &k->loss, mean);
		break;
	case RESUME_SAME_BATCHES:
		strbuf_add_text(b, "the same batches, other values");
		break;
	default:
		strbuf_add_text(b, k->loss.matched == 0 ? "does not match the dead branch"
							: "matches at first, then differs");
		break;
	}
	add_further(r, b);
}

/* The sample log's own loss ---------------------------------------------------------------------
 */

static int no_memory(struct error *e)
{
	return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the sample log's losses");
}

static bool add_series(struct curve_log *l, enum curve_role role, const char *name)
{
	struct curve_series *s = array_push(&l->series, SIZE_MAX);

	if (s)
		*s = (struct curve_series){.role = (uint8_t)role,
			.unit = CURVE_STEPS,
			.mean = CURVE_OF_STEP,
			.name = name,
			.source = "",
			.rank = -1,
			.kept = true};
	return s != NULL;
}

static bool add_point(struct curve_log *l, uint32_t series, int64_t step, float v)
{
	if (isnan(v) && series != 0)
		return true;
	struct curve_point *p = array_push(&l->points, SIZE_MAX);
	if (!p)
		return false;
	*p = (struct curve_point){.x = (double)step,
		.value = (double)v,
		.wall = NAN,
		.series = series,
		.at = l->points.count};
	l->series.items[series].points++;
	l->files.items[0].points++;
	return true;
}

static bool add_mark(struct curve_log *l, enum curve_mark_kind kind, int64_t x)
{
	struct curve_mark *m = array_push(&l->marks, SIZE_MAX);

	if (m)
		*m = (struct curve_mark){.kind = (uint8_t)kind,
			.unit = CURVE_STEPS,
			.before = l->points.count,
			.x = x == LEDGER_NO_STEP ? NAN : (double)x,
			.value = NAN,
			.wall = NAN,
			.text = ""};
	return m != NULL;
}

static bool has_losses(const struct ledger *g)
{
	for (size_t i = 0; i < g->steps.count; i++)
		if (!isnan(g->steps.items[i].loss))
			return true;
	return false;
}

int curve_of_ledger(
	struct curve_log *l, const struct ledger *g, const struct limits *limits, struct error *e)
{
	*l = (struct curve_log){.limits = limits};
	arena_init(&l->arena, SIZE_MAX);
	if (!has_losses(g))
		return RP_OK;
	struct curve_file *file = array_push(&l->files, SIZE_MAX);
	bool ok = file && add_series(l, CURVE_LOSS, "loss") && add_series(l, CURVE_LR, "lr") &&
		  add_series(l, CURVE_GRAD_NORM, "grad_norm") &&
		  add_series(l, CURVE_BATCH, "global batch");
	if (file)
		*file = (struct curve_file){
			.path = g->path, .format = "ledger", .writer = "sample log", .note = ""};
	for (size_t i = 0; ok && i < g->attempts.count; i++) {
		const struct ledger_attempt *a = &g->attempts.items[i];
		if (a->kind != ATTEMPT_TRAIN || a->steps == 0)
			continue;
		ok = add_mark(l, CURVE_LAUNCH, LEDGER_NO_STEP);
		if (ok && a->from_step != LEDGER_NO_STEP)
			ok = add_mark(l, CURVE_LOADED, a->from_step);
		for (uint32_t k = 0; ok && k < a->steps; k++) {
			const struct ledger_step *s = &g->steps.items[a->first + k];
			/* A step without a loss of its own says nothing, and is no NaN. */
			ok = (isnan(s->loss) || add_point(l, 0, s->step, s->loss)) &&
			     add_point(l, 1, s->step, s->lr) &&
			     add_point(l, 2, s->step, s->grad_norm) &&
			     add_point(l, 3, s->step, s->n > 0 ? (float)s->n : NAN);
		}
	}
	return ok ? RP_OK : no_memory(e);
}

/* Trouble -------------------------------------------------------------------------------------- */

static int compare_doubles(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;

	return (a > b) - (a < b);
}

double curve_scale_falls(
	const struct case_curve *c, uint32_t attempt, double *before, double *after)
{
	const struct stitch_track *t = stitch_track_of(&c->stitch, CURVE_LOSS_SCALE);
	uint32_t *index = t ? calloc(SCALE_POINTS, sizeof *index) : NULL;
	double *block = t ? calloc(SCALE_POINTS, sizeof *block) : NULL;
	double falls = NAN;

	*before = *after = NAN;
	if (!index || !block) {
		free(index);
		free(block);
		return NAN;
	}
	size_t n = stitch_branch(&c->stitch, t, attempt, INFINITY, index, SCALE_POINTS);
	size_t blocks = n / SCALE_BLOCK_LEAST < SCALE_BLOCKS ? n / SCALE_BLOCK_LEAST : SCALE_BLOCKS;
	double median[SCALE_BLOCKS], first[SCALE_BLOCKS];
	for (size_t b = 0; b < blocks; b++) {
		size_t begin = b * n / blocks, end = (b + 1) * n / blocks, m = 0;
		for (size_t i = begin; i < end; i++)
			if (t->values.items[index[i]].value > 0)
				block[m++] = log2(t->values.items[index[i]].value);
		qsort(block, m, sizeof *block, compare_doubles);
		median[b] = m ? block[m / 2] : NAN;
		first[b] = t->values.items[index[begin]].x;
	}
	/* The first block finds the scale that the run can bear; what it then keeps in its first
	 * half is what it should keep. The fall begins behind the last block that had it. */
	if (blocks >= SCALE_BLOCKS / 2) {
		size_t half = blocks / 2, last = blocks - blocks / 4, top = 0;
		memcpy(block, median + 1, (half - 1) * sizeof *block);
		qsort(block, half - 1, sizeof *block, compare_doubles);
		double usual = block[(half - 1) / 2];
		bool low = true;
		for (size_t b = last; b < blocks; b++)
			low = low && median[b] <= usual - SCALE_POWERS;
		for (size_t b = 0; b < last; b++)
			top = median[b] >= usual ? b : top;
		if (low) {
			falls = first[top + 1];
			*before = exp2(usual);
			*after = exp2(median[blocks - 1]);
		}
	}
	free(index);
	free(block);
	return falls;
}

static bool is_trouble(const struct spike *k)
{
	return k->class != SPIKE_FAST && k->class != SPIKE_DROP && k->class != SPIKE_SLOW;
}

static void take_sign(struct curve_trouble *t, double x, const char *what)
{
	if (!(x < t->x))
		return;
	t->any = true;
	t->x = x;
	t->what = what;
}

struct curve_trouble curve_first_trouble(const struct case_curve *c)
{
	struct curve_trouble t = {.x = INFINITY};
	double before, after;

	for (size_t i = 0; i < c->spikes.list.count; i++) {
		const struct spike *k = &c->spikes.list.items[i];
		if (!is_trouble(k))
			continue;
		take_sign(&t, k->x, spike_class_name(k->class));
		if (k->lead > 0)
			take_sign(&t, k->x - k->lead, "the gradient norm rises");
	}
	for (uint32_t i = 0; i < c->stitch.attempts.count; i++)
		if (c->stitch.attempts.items[i].dead > 0 || i == c->stitch.tip)
			take_sign(&t, curve_scale_falls(c, i, &before, &after),
				"the loss scale falls");
	return t;
}
