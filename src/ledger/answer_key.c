/* SPDX-License-Identifier: MIT */
#include "ledger/answer_key.h"

#include "base/identity.h"

/* The steps of an attempt from `first` on, up to the first hole in the log. */
static struct answer_key key_of(
	const struct ledger *l, enum key_origin origin, uint32_t attempt, uint32_t first)
{
	const struct ledger_attempt *a = &l->attempts.items[attempt];
	struct answer_key k = {.origin = KEY_NONE};

	if (first >= a->first + a->steps)
		return k;
	k = (struct answer_key){.origin = (uint8_t)origin,
		.attempt = attempt,
		.first = first,
		.steps = steps_unbroken(&l->steps.items[first], a->first + a->steps - first),
		.row = l->steps.items[first].row};
	const struct ledger_step *last = &l->steps.items[first + k.steps - 1];
	k.rows = last->row + last->n - k.row;
	return k;
}

struct answer_references answer_references(const struct ledger *l)
{
	struct answer_references r = {0};

	for (uint32_t i = 0; i < l->attempts.count; i++) {
		if (l->attempts.items[i].kind != ATTEMPT_REFERENCE)
			continue;
		if (r.end == 0)
			r.first = i;
		r.end = i + 1;
	}
	return r;
}

/* The step behind which both the attempt and what it is held against have been logged. */
static int64_t compared_from(const struct lineage *g, uint32_t attempt)
{
	const struct lineage_attempt *n = &g->attempts.items[attempt];

	return n->gap > 0 && n->gap_last > n->from_step ? n->gap_last : n->from_step;
}

struct answer_key answer_find(
	const struct lineage *g, uint32_t attempt, const struct answer_references *references)
{
	const struct ledger *l = g->ledger;
	int64_t from = g->attempts.items[attempt].from_step, step = compared_from(g, attempt);
	uint32_t parent = g->attempts.items[attempt].parent;
	struct answer_key best = {.origin = KEY_NONE};

	if (parent == LEDGER_NONE || from == LEDGER_NO_STEP)
		return best;
	best = key_of(l, KEY_TAIL, parent, ledger_step_after(l, &l->attempts.items[parent], step));
	for (uint32_t i = parent + 1; i < attempt && best.origin == KEY_NONE; i++) {
		const struct lineage_attempt *n = &g->attempts.items[i];
		if (n->member && n->parent == parent && n->from_step == from)
			best = key_of(l, KEY_SISTER, i,
				n->gap > 0 && n->gap_last > step
					? LEDGER_NONE
					: ledger_step_after(l, &l->attempts.items[i], step));
	}
	for (uint32_t i = references->first; i < references->end && best.origin == KEY_NONE; i++)
		if (l->attempts.items[i].kind == ATTEMPT_REFERENCE)
			best = key_of(l, KEY_REFERENCE, i,
				ledger_step_after(l, &l->attempts.items[i], step));
	return best;
}

/* Steps of another size: compare what both had consumed wherever the numbers of samples meet. */
static void match_by_samples(const struct ledger_step *own, uint32_t steps,
	const struct ledger_step *key, uint32_t key_steps, struct key_match *m)
{
	uint64_t sum[2] = {0}, key_sum[2] = {0}, n = 0, key_n = 0;
	uint32_t i = 0, k = 0, met = 0, key_met = 0;

	m->by_samples = true;
	for (;;) {
		if (n <= key_n && i < steps) {
			identity_sum(sum, own[i].sum);
			n += own[i++].n;
		} else if (n > key_n && k < key_steps) {
			identity_sum(key_sum, key[k].sum);
			key_n += key[k++].n;
		} else {
			break;
		}
		if (n != key_n)
			continue;
		if (sum[0] != key_sum[0] || sum[1] != key_sum[1]) {
			m->differs = true;
			m->at = met;
			m->key_at = key_met;
			m->step = own[met].step;
			break;
		}
		met = i;
		key_met = k;
		m->samples = n;
	}
	m->steps = i;
	m->same = met;
}

struct key_match answer_match(const struct ledger_step *own, uint32_t steps,
	const struct ledger_step *key, uint32_t key_steps)
{
	struct key_match m = {.steps = steps < key_steps ? steps : key_steps};
	bool equal = true;

	for (uint32_t i = 0; i < m.steps; i++) {
		const struct ledger_step *s = &own[i], *d = &key[i];
		/* One of the two has a hole here: what comes next are not the same steps. */
		if (s->step - own->step != d->step - key->step) {
			m.steps = i;
			break;
		}
		/* A step that was cut short, on either side, is no difference; and where the log
		 * has none of the key's samples, it says nothing of what they were. */
		if ((s->n < d->n && i + 1 == steps) || (d->n < s->n && i + 1 == key_steps)) {
			m.steps = i;
			break;
		}
		if (d->n == 0 && s->n > 0) {
			m.steps = i;
			break;
		}
		if (s->n != d->n && m.same == i && s->n > 0 && d->n > 0) {
			struct key_match by = {0};
			match_by_samples(own, steps_unbroken(own, steps), key,
				steps_unbroken(key, key_steps), &by);
			/* What was equal step by step stays so. */
			by.equal = m.equal;
			return by;
		}
		if (s->sum[0] != d->sum[0] || s->sum[1] != d->sum[1] || s->n != d->n) {
			m.differs = true;
			m.at = m.key_at = i;
			m.step = s->step;
			break;
		}
		equal = equal && s->chain == d->chain;
		m.equal += equal;
		m.same++;
		m.empty += s->n == 0;
		m.samples += s->n;
	}
	return m;
}
