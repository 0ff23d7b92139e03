/* SPDX-License-Identifier: MIT */
/*
 * A run's loss curve with all that was worked out of it: the line, what each resume came to by the
 * logs alone, and the spikes. Rules report it; it is worked out once for all of them.
 */
#ifndef AUDIT_CURVES_H
#define AUDIT_CURVES_H

#include "curve/rate.h"
#include "curve/resume.h"
#include "curve/spikes.h"
#include "curve/stitch.h"
#include "finding/finding.h"
#include "ledger/ledger.h"

struct audit_case;

/* What is known of one resume, of the line or of a branch that was rolled back. */
struct curve_resume {
	struct resume_check check;
	struct resume_repeat repeat;
	struct resume_low low, high;
	struct resume_ramp ramp;
	struct rate_change rate;
	/* What the sample log says of the replay that it begins: the last step that is one. NAN
	 * where there is no log, or none. */
	double replayed_to;
	bool explained;           /* the logs say that the launch was changed */
	const char *changes;      /* "seed 42 -> 43", in the case's arena; "" */
	uint8_t rate_by;          /* enum rate_declared: whether they say that the rate was */
	const char *rate_changes; /* what they say of it, likewise */
};

struct case_curve {
	struct arena arena;
	struct stitch stitch;
	struct spikes spikes;
	ARRAY(struct curve_resume) resumes; /* by attempt */
	const struct curve_log *log;
};

/*
 * Work all of it out. The log must outlive it. `audit` is where the sample log comes from, or NULL.
 * Release it also after errors.
 */
int case_curve_open(struct case_curve *c, const struct curve_log *l, const struct stitch_options *o,
	const struct audit_case *audit, struct error *e);
void case_curve_close(struct case_curve *c);

/* The resume of an attempt, or NULL. */
const struct curve_resume *curve_resume_of(const struct case_curve *c, uint32_t attempt);

/* What the resume came to, in a few words: "the first 12 steps match", "not checked: …". */
void curve_resume_words(
	const struct case_curve *c, const struct curve_resume *r, struct strbuf *out);

/* Points and marks as curves have them from a sample log that has losses of its own; the log is as
 * empty as after curve_release() where it has none. */
int curve_of_ledger(struct curve_log *l, const struct ledger *ledger, const struct limits *limits,
	struct error *e);

/* The newest step whose checkpoint comes before the first sign of trouble, and that sign. */
struct curve_trouble {
	bool any;
	double x;         /* of the first sign; INFINITY: none */
	const char *what; /* "spike", "loss scale falling", … */
};
struct curve_trouble curve_first_trouble(const struct case_curve *c);

/*
 * Where the loss scale begins to fall for good: `fallen` powers of two below what it had been, up
 * to the end of the branch of an attempt. NAN where it does not.
 */
double curve_scale_falls(
	const struct case_curve *c, uint32_t attempt, double *before, double *after);

#endif
