/* SPDX-License-Identifier: MIT */
/*
 * Findings: what is wrong with a checkpoint or a run, as facts with a stable code. findings.def is
 * the one table from which the enum, the names, `explain`, the manual and the JSON schema come.
 *
 * A finding is not an error (base/error.h): after a finding the audit goes on.
 */
#ifndef FINDING_FINDING_H
#define FINDING_FINDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/slice.h"

enum severity {
	SEVERITY_OK,
	SEVERITY_INFO,
	SEVERITY_WARNING,
	SEVERITY_ERROR,
};

/* The first word of a report. The order is the precedence: the first that applies wins. */
enum verdict_word {
#define VERDICT(id, word, forecast, text) VERDICT_##id,
#include "finding/verdicts.def"
#undef VERDICT
	VERDICT_COUNT
};

struct verdict_row {
	const char *word;
	bool forecast; /* about data: WOULD- is put in front where nothing has been consumed yet */
	const char *text;
};

extern const struct verdict_row verdict_rows[VERDICT_COUNT];

enum finding_code {
#define FINDING(code, id, severity, word, needs, summary, explain, confirm, remedy) FINDING_##code,
#include "finding/findings.def"
#undef FINDING
	FINDING_COUNT
};

struct finding_row {
	const char *code; /* "P101" */
	const char *id;   /* "NO_DATA_POSITION", for programs that want a word */
	enum severity severity;
	enum verdict_word word; /* VERDICT_COUNT where the finding never chooses the word */
	const char *needs;      /* of C, CC, G, L, X, K: see findings(7) */
	const char *summary;    /* one line */
	const char *explain;    /* what it means for the run */
	const char *confirm;    /* how to see it oneself */
	const char *remedy;     /* what to do */
};

extern const struct finding_row finding_rows[FINDING_COUNT];

/* The code for "P101" (any case), or FINDING_COUNT. */
enum finding_code finding_by_name(const char *name);

const char *severity_name(enum severity s);

/* A number or word that proves a finding. */
enum quantity_kind {
	QUANTITY_NONE,
	QUANTITY_COUNT, /* an integer */
	QUANTITY_REAL,
	QUANTITY_TEXT,
};

struct quantity {
	enum quantity_kind kind;
	union {
		int64_t count;
		double real;
		const char *text; /* lives in the sink's arena */
	};
};

static inline struct quantity quantity_count(int64_t n)
{
	return (struct quantity){.kind = QUANTITY_COUNT, .count = n};
}

static inline struct quantity quantity_real(double v)
{
	return (struct quantity){.kind = QUANTITY_REAL, .real = v};
}

static inline struct quantity quantity_text(const char *text)
{
	return (struct quantity){.kind = QUANTITY_TEXT, .text = text};
}

#define FINDING_MESSAGE_MAX 1000

#define PLACE_NO_STEP INT64_MIN
#define PLACE_NO_OFFSET UINT64_MAX

/* Where a finding is. Unknown parts are NULL, PLACE_NO_STEP or PLACE_NO_OFFSET. */
struct place {
	const char *file;  /* as given or relative to what was given */
	const char *path;  /* inside the file, in the syntax that `get` reads back */
	const char *ranks; /* "1", "0-3, 7" */
	uint64_t offset;   /* byte offset in the file */
	int64_t step_first, step_last;
};

struct finding {
	enum finding_code code;
	enum severity severity;
	enum verdict_word word; /* that it stands for when it fails: the table's, or a rule's */
	bool not_ready; /* the files are still changing and time may heal it: it does not fail */
	const char *accepted; /* why a policy accepts it, so that it does not fail; or NULL */
	struct place place;
	const char *message; /* what is so in this case, one clause, lower case, no full stop */
	struct quantity observed, expected;
	const char *unit;    /* of both: "words", "steps", "ranks", … */
	const char *cause;   /* the named cause, where the numbers or a pattern name one */
	const char *meaning; /* what it does to this run, with numbers; NULL: the table's */
	const char *remedy;  /* what to do in this case; NULL: the table's */
};

/*
 * Where findings go. Strings are copied into the sink. Of one code at most `keep` are stored, all
 * are counted; where one that is not stored turns out worse than a stored one of its code, it takes
 * that one's place, so that no error hides behind a hundred notes. A sink that ran out of memory
 * says so in `lost`: a report with lost > 0 is a failure.
 */
struct findings {
	struct arena arena;
	ARRAY(struct finding) list;
	size_t of_code[FINDING_COUNT];
	size_t keep;
	size_t lost;
	struct finding scratch; /* what finding_add returned last, where that was not stored */
	bool scratch_used;
	char scratch_message[FINDING_MESSAGE_MAX];
	enum severity
		mildest[FINDING_COUNT]; /* no stored finding of the code is milder than this */
};

void findings_init(struct findings *sink);
void findings_release(struct findings *sink);

/*
 * Add a finding with the table's severity and the given message. Never NULL: fill in what else is
 * known through the pointer, at once, since the next call may move it. Texts put there must live in
 * the sink's arena (findings_text) or be literals.
 */
struct finding *finding_add(struct findings *sink, enum finding_code code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Say where a finding just added is: the file, the part of it (from the file: escaped; may be
 * empty) and the byte offset or PLACE_NO_OFFSET. `file` is copied.
 */
void finding_place(struct findings *sink, struct finding *f, const char *file, struct slice part,
	uint64_t offset);

/* Add copies of all that another sink holds; what that one only counted is counted. */
void findings_append(struct findings *sink, const struct findings *from);

/* A formatted text that lives as long as the sink; "" when memory ran out (counted as lost). */
const char *findings_text(struct findings *sink, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The text of a buffer, which is released. */
struct strbuf;
const char *findings_take(struct findings *sink, struct strbuf *b);

/* The same for bytes from a file: escaped, at most 200 characters. */
const char *findings_escaped(struct findings *sink, struct slice text);

/*
 * The order in which findings are shown: severity, verdict precedence, code, place, message,
 * numbers. It is total, so that it is the same whatever the number of threads. Negative where `a`
 * comes first.
 */
int finding_compare(const struct finding *a, const struct finding *b);

/* Observed over expected, where both are numbers and the latter is not zero. */
bool finding_ratio(const struct finding *f, double *ratio);

/* Nothing more will be filled in: bring the findings into that order. */
void findings_sort(struct findings *sink);

/* Coverage: what a rule looked at. Not seeing is never passing. */
enum cover_status {
	COVER_RAN,
	COVER_PARTLY,
	COVER_NOT_CHECKED,
};

struct cover {
	const char *rule;
	const char *subject; /* what it was about: "rng streams", "bytes", … */
	enum cover_status status;
	const char *reason; /* why not, or why only partly; NULL when it ran */
	const char *unit;   /* of done and total */
	uint64_t done, total;
};

struct coverage {
	struct arena arena;
	ARRAY(struct cover) list;
	size_t lost;
};

void coverage_init(struct coverage *sink);
void coverage_release(struct coverage *sink);

/* Texts are copied. `reason` may be NULL; status follows from it and from done < total. */
void cover_ran(struct coverage *sink, const char *rule, const char *subject, const char *unit,
	uint64_t done, uint64_t total, const char *reason);
void cover_not_checked(struct coverage *sink, const char *rule, const char *subject,
	const char *format, ...) __attribute__((format(printf, 4, 5)));

const char *cover_status_name(enum cover_status s);

#endif
