/* SPDX-License-Identifier: MIT */
/* Family O: is this optimizer state one that Adam can have reached? */
#include "audit/case.h"
#include "base/text.h"

static void broken_finding(struct audit_case *c, struct findings *sink,
	const struct moments_outcome *m, const char *message, const char *cause, const char *unit)
{
	struct finding *f = finding_add(sink, FINDING_O106, "%s", message);

	place_file(sink, f, c->current, m->worst->file);
	f->place.path = findings_escaped(sink, slice_of(m->worst->name));
	f->place.step_last = f->place.step_first = case_step(c);
	f->observed = quantity_real(m->worst_observed);
	f->expected = quantity_real(m->worst_bound);
	f->unit = unit;
	f->cause = cause;
}

static void cover_moments(struct audit_case *c, struct coverage *cover, const char *rule,
	const char *subject, const struct moments_outcome *m)
{
	if (m->unread > 0)
		c->unread = "the bytes of the optimizer's moments could not be read";
	if (m->tensors == 0 && m->late)
		cover_not_checked(cover, rule, subject, "%s", case_late);
	else if (m->tensors == 0)
		cover_not_checked(cover, rule, subject,
			"no float32 moments of Adam with constant betas are saved");
	else
		cover_ran(cover, rule, subject, "tensors", m->tensors, m->tensors + m->skipped,
			m->late      ? case_late
			: m->skipped ? "the others are of other types, or have no counterpart"
				     : NULL);
}

static void run_moments(struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	struct moments_outcome m;

	if (moments_belong(&c->current_place, &m, NULL) < 0) {
		sink->lost++;
		return;
	}
	if (m.broken > 0)
		broken_finding(c, sink, &m,
			findings_text(sink,
				"%llu of %llu elements of the first moments are too large for their second moments (%s)",
				(unsigned long long)m.broken, (unsigned long long)m.elements,
				counted_text(sink, m.broken_tensors, "parameter")),
			"the two moments are not a pair: one was reset, swapped, or belongs to other betas",
			"in m squared, at the most");
	cover_moments(c, cover, "moments", "Adam's moments against each other", &m);
}

const struct rule rule_moments = {
	.name = "moments",
	.subject = "Adam's moments against each other",
	.needs = NEEDS_BYTES | NEEDS_ELEMENTS,
	.run = run_moments,
};

static void run_moments_continue(
	struct audit_case *c, struct findings *sink, struct coverage *cover)
{
	static const char *const name = "moments-continue",
				 *const subject =
					 "Adam's second moments since the previous checkpoint";
	struct moments_outcome m;
	int64_t steps;

	if (!case_steps_between(c, &steps) || steps <= 0) {
		cover_not_checked(cover, name, subject, "the steps between the two are not known");
		return;
	}
	if (moments_continue(&c->previous_place, &c->current_place, steps, &m, NULL) < 0) {
		sink->lost++;
		return;
	}
	if (m.broken > 0)
		broken_finding(c, sink, &m,
			findings_text(sink,
				"the optimizer's state does not continue the previous one: %llu of %llu second moments fell faster than "
				"beta2 allows in %lld updates (%s)",
				(unsigned long long)m.broken, (unsigned long long)m.elements,
				(long long)steps,
				counted_text(sink, m.broken_tensors, "parameter")),
			"the state was made anew, or is of another branch, or of other parameters",
			"in exp_avg_sq, at the least");
	cover_moments(c, cover, name, subject, &m);
}

const struct rule rule_moments_continue = {
	.name = "moments-continue",
	.subject = "Adam's second moments since the previous checkpoint",
	.needs = NEEDS_PREVIOUS | NEEDS_BYTES | NEEDS_ELEMENTS,
	.run = run_moments_continue,
};
