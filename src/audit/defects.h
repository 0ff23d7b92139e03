/* SPDX-License-Identifier: MIT */
/*
 * What frameworks are known to save or restore wrongly, and in which versions: defects.def is the
 * one table; rule_defects.c holds it against a checkpoint, `explain --defects` lists it.
 */
#ifndef AUDIT_DEFECTS_H
#define AUDIT_DEFECTS_H

#include "audit/environment.h"
#include "finding/finding.h"

struct audit_case;
struct fact;

/* What a condition saw in the checkpoint. */
struct evidence {
	const struct fact *fact;            /* that shows it best, or NULL */
	const char *meaning;                /* what it does to this run, with numbers; or NULL */
	struct quantity observed, expected; /* numbers that prove it, where there are some */
	const char *unit;
};

/* Whether the checkpoint is one that the defect can hurt. */
typedef bool (*defect_condition)(
	const struct audit_case *c, struct findings *sink, struct evidence *out);

/* How a row becomes known to the user. */
enum defect_kind {
	DEFECT_FOUND,    /* a finding of its own, where its condition is met */
	DEFECT_EXPLAINS, /* names the cause of a finding that another rule made from the files alone
			  */
	DEFECT_UNSEEN,   /* no checkpoint shows whether it hurts: knowledge to be listed */
};

struct defect {
	const char *id;      /* "trainer-resumes-in-the-order-of-epoch-0" */
	const char *profile; /* whose checkpoints, or "" any */
	enum defect_kind kind;
	enum finding_code code; /* FINDING_COUNT where it is unseen */
	enum severity affected; /* of the finding */
	enum severity unsure;   /* of the finding where a version is not known; SEVERITY_OK: none */
	/*
	 * What must hold of the versions that saved and that will resume: "accelerate>=1.7,<1.15;
	 * transformers<5", "" any. A package without bounds ("accelerate") is named for the reader.
	 */
	const char *saved, *resumed;
	defect_condition condition;
	const char *message; /* of the finding: one clause */
	const char *effect;  /* what happens, one sentence without a full stop */
	const char *remedy;  /* or NULL: the finding's own */
	const char *source;  /* issues, pull requests, commits */
	const char *proof;   /* how the range of versions is known, or that it is not */
};

/* The conditions of the table, in defect_conditions.c. */
#define DEFECT(id, profile, code, affected, unsure, saved, resumed, condition, message, effect,    \
	remedy, source, proof)                                                                     \
	bool defect_##condition(                                                                   \
		const struct audit_case *c, struct findings *sink, struct evidence *out);
#define EXPLAINS(id, profile, code, saved, resumed, effect, source, proof)
#define UNSEEN(id, profile, saved, resumed, effect, source, proof)
#include "audit/defects.def"
#undef DEFECT
#undef EXPLAINS
#undef UNSEEN

/* All rows, in the order of the table. */
extern const struct defect defects[];
extern const size_t defect_count;

enum truth {
	TRUTH_NO,
	TRUTH_YES,
	TRUTH_UNKNOWN,
};

/* One package of a requirement. */
struct clause {
	struct slice package, text; /* "accelerate"; "accelerate>=1.7,<1.15" */
	bool has_from, has_before;
	struct version from, before;
};

/*
 * Take the next clause of a requirement: 1, 0 at its end, -1 where the text is none, which a test
 * of the table rules out.
 */
int requirement_next(struct slice *rest, struct clause *out);

/*
 * Whether a version satisfies a clause. NULL is an unknown version; an unfinished state of the
 * release in which something changed (1.15.0.dev0, where the bound is 1.15) may be either.
 */
enum truth clause_holds(const struct clause *c, const struct version *v);

#endif
