/* SPDX-License-Identifier: MIT */
/*
 * From logs alone: did the learning rate go on at a resume as the schedule gave it before? Writers
 * log it before or after the schedule moves, at intervals that do not coincide, and with few
 * digits, so the rates of a resumed attempt are not compared step by step: each is looked up on the
 * schedule as it was logged (up to the resume, and behind it where there is a dead branch), which
 * gives the step that it belongs to. Those steps against the attempt's own tell a lag, another
 * pace, or another length of the decay; what cannot be looked up may still be a jump.
 */
#ifndef CURVE_RATE_H
#define CURVE_RATE_H

#include "base/strbuf.h"
#include "curve/stitch.h"

enum rate_kind {
	RATE_UNKNOWN,   /* too few rates, or none that tell */
	RATE_CONTINUES, /* as far as they tell */
	RATE_RESTARTED, /* the rates of the run's beginning again */
	RATE_LAG,       /* those of other steps, at a constant distance */
	RATE_PACE,      /* from the resume on the schedule is passed through at another pace */
	RATE_LENGTH,    /* as of a decay of another length */
	RATE_SCALED,    /* all by the same factor */
	RATE_JUMP,      /* none of these */
};

/* What a resume did to the rate. Steps are x of the stitch. */
struct rate_change {
	uint8_t kind;           /* enum rate_kind */
	double first_x, last_x; /* of the attempt: as far as rates were compared */
	double before, after;   /* the last rate before the resume, the first one behind it */
	double expected;        /* what the schedule gives for first_x; NAN: not known */
	double source_x;        /* RESTARTED: where the run begins */
	double lag;             /* LAG: by how much it is behind; negative: ahead */
	double factor; /* RESTARTED: of the rates, NAN: one; PACE: of the pace; LENGTH: of the
			  length; SCALED: of the rate */
	bool proven;   /* a dead branch shows what it should be */
	bool ended;    /* the schedule had come to its end before */
	bool stepped;  /* from one constant rate to another */
	bool highest;  /* it is the run's highest rate again */
	bool skips;    /* updates may have been skipped under a loss scale */
};

/*
 * Look at the first rates of an attempt that went on from x. `reference` is another attempt that
 * went on from there, or CURVE_NONE. O(n) in the rates of the run's first attempt and of these.
 */
void rate_judge(const struct stitch *s, uint32_t attempt, uint32_t reference, double from,
	struct rate_change *out);

/* Where an attempt went on that counts from 0 as a fresh one does. */
struct rate_origin {
	bool found;
	bool anew;       /* with the rates of the run's beginning: only its loss goes on */
	uint32_t source; /* the attempt that it went on from */
	double x;        /* where it did, on the source's own count; about, where `about` is set */
	bool about;
	double first, fresh; /* its first rate, and the one that the run began with */
	double loss, ended,
		began; /* where its loss begins, and where the source's ended and began */
};

/*
 * Whether an attempt whose steps or epochs begin at 0 is no fresh one: its loss begins where that
 * of an earlier attempt ended, and its rates go on from that one's, or are those of the run's
 * beginning again. O(n) in the rates of the few attempts before it.
 */
void rate_find_origin(const struct stitch *s, uint32_t attempt, struct rate_origin *out);

/*
 * Whether the first rates of an attempt that went on from x are those that the schedule gives by
 * what was consumed, where the batch changes: Megatron's may count samples. A line through the last
 * known rates stands for the schedule where no dead branch shows it.
 */
bool rate_goes_by_amounts(
	const struct stitch *s, uint32_t attempt, uint32_t reference, double from);

/* What the launches say that changes a rate. */
enum rate_declared {
	RATE_UNDECLARED,
	RATE_BY_LENGTH, /* steps, epochs or batch: what a schedule is made from */
	RATE_BY_NAME,   /* the rate, its warm-up or its schedule */
};

/* The settings that the logs give for an attempt and, with another value, for its parent, of those
 * that change a rate; `out` gets the first of them: "lr 0.1 -> 0.2". */
enum rate_declared rate_declared(const struct stitch *s, uint32_t attempt, struct strbuf *out);

#endif
