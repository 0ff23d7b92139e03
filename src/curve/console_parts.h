/* SPDX-License-Identifier: MIT */
/*
 * What read_console.c is made of: points out of fields, progress bars, rows that say epochs only,
 * and patterns of the user. All of them work on the state of one file that is being read.
 */
#ifndef CURVE_CONSOLE_PARTS_H
#define CURVE_CONSOLE_PARTS_H

#include <regex.h>

#include "curve/console.h"

#define CONSOLE_BELOW_MAX 16u     /* points that wait for their lines, of different ranks */
#define CONSOLE_PATTERNS_MAX 16u  /* patterns of the user */
#define CONSOLE_TRAINERS_MAX 4u   /* named in a file's writer */
#define CONSOLE_NAME_MAX 128u     /* bytes of the name of a series that is put together here */
#define CONSOLE_KNOWN_SERIES 256u /* that are found at once */
#define CONSOLE_KNOWN_NAMES 64u
#define CONSOLE_SHOWN_VALUES 32u /* of a progress bar, to tell new ones from old ones */
#define CONSOLE_HELD_FIELDS 16u  /* of a progress bar */
#define CONSOLE_TAKEN_MAX 64u    /* fields of a line whose form is learned */
#define CONSOLE_NO_SERIES (CURVE_NONE - 1)

/* A point whose fields are on the lines that follow. */
struct console_below {
	int32_t rank;
	const struct console_shape *shape;
	double x, wall;
	enum curve_unit unit;
	uint64_t until;   /* the last line that may belong to it */
	bool from_epochs; /* x was worked out from an epoch and a batch of it */
};

/* What a progress bar shows at its place. */
struct console_held_field {
	char text[120]; /* the name, then the value */
	uint8_t name_n, value_n;
	bool running; /* a mean that runs over steps */
};

struct console_held_bar {
	const struct console_shape *shape;
	double x;
	uint64_t at;
	bool said; /* a bar that is drawn again later says nothing new */
	size_t count;
	struct console_held_field fields[CONSOLE_HELD_FIELDS];
};

struct console_shown_value {
	uint64_t name; /* hashed */
	double value;
};

/* What a name says, which is asked for with each drawing of a bar and each line of no trainer. */
struct console_known_name {
	uint64_t hash;
	enum curve_role role;
	bool of_epoch; /* a mean of an epoch */
};

/* A series by what it was asked for with: rows ask for the same ones again and again. */
struct console_known_series {
	uint64_t hash;
	uint32_t series;
};

/*
 * A row of Transformers', which says an epoch only, and the points that it made. The progress bar
 * that is printed again behind it says the step.
 */
struct console_epoch_row {
	size_t first, count; /* in the log's points */
	double epoch, step;  /* step NAN: no bar */
	float resolution;    /* of the epoch */
	bool launched;       /* it may be the first one of a launch */
};

struct console_pattern {
	const struct curve_pattern *said;
	regex_t compiled;
	bool with_x, by_word;
	double calls;
};

/* A field of the row at hand, and the series that it was added to or CONSOLE_NO_SERIES. */
struct console_taken {
	struct console_field field;
	uint32_t series;
	bool is_x;
};

struct console_forms;

struct console {
	struct curve_reading *r;
	struct lines lines;
	struct console_index index;
	struct console_marks marks;
	struct console_known_series known[CONSOLE_KNOWN_SERIES];
	struct console_known_name names[CONSOLE_KNOWN_NAMES];
	char *plain;
	struct console_below below[CONSOLE_BELOW_MAX];
	size_t below_count;
	/* The newest row's fields; their number may be larger than the array. */
	struct console_taken taken[CONSOLE_TAKEN_MAX];
	size_t taken_count;
	struct console_field x_field; /* the first one that says x, of rows whose x is a field */
	struct console_forms *forms;
	/* Megatron: what the loss is called, and where the row before was. */
	char loss_name[CONSOLE_NAME_MAX];
	size_t loss_name_n;
	double before;
	/* Of a line without an end: where it ends, since what touches that may be cut off. */
	const char *cut;
	bool torn;
	bool chatter; /* the line at hand is looked at for patterns only */
	/* Progress bars. */
	double epoch; /* Keras: the one at hand; NAN: not known */
	double version;
	double batches; /* of an epoch, as Lightning's bar says; NAN: not known */
	struct console_held_bar bar;
	struct console_shown_value shown[CONSOLE_SHOWN_VALUES];
	ARRAY(struct console_epoch_row) epoch_rows;
	bool bar_follows; /* if what follows the newest of them is one */
	bool launched;    /* since then */
	/* What else was asked for. */
	struct console_pattern patterns[CONSOLE_PATTERNS_MAX];
	size_t pattern_count;
	unsigned asked;     /* roles, by bits, that patterns give */
	bool within_epochs; /* some of those lines say how much of an epoch is done */
	bool anything;      /* lines of no known trainer are taken, as long as no other was seen */
	const char *trainers[CONSOLE_TRAINERS_MAX];
	size_t trainer_count;
	const char *note;
};

/* The points of the file so far. */
static inline uint64_t console_points_of(const struct curve_reading *r)
{
	return r->log->files.items[r->file].points;
}

/* Points (console_points.c) -------------------------------------------------------------------- */

/* Where a value stands, and what is known of its line. */
struct console_place {
	const struct console_shape *shape;
	double x;
	enum curve_unit unit;
	int32_t rank;
	struct slice held_out; /* what the line calls its data: "validation", "validation-1" */
	/* Of what was added last. */
	enum curve_role role;
	uint32_t series;
};

/*
 * One unit in the last place where a program prints so many significant digits and leaves zeros at
 * the end out.
 */
float console_unit_of_digits(double value, int digits);

/* curve_meaning_of(), found at once for names that were asked for before. */
struct console_known_name console_name(struct console *c, struct slice name);

/* Whether a value may go on behind the end of the file. */
bool console_is_cut(const struct console *c, struct slice value);

/* A point of a series that is called so, unless a pattern of the user gives its role. */
int console_add_number(struct console *c, struct console_place *at, struct slice name,
	enum curve_role role, enum curve_mean mean, double value, float resolution,
	struct error *e);

/* A point of a series. */
int console_put(struct console *c, struct console_place *at, uint32_t series, double value,
	float resolution, struct error *e);

/* The resolution of a value, from that of the text and from what the trainer leaves out. */
float console_resolution_of(
	const struct console_shape *s, bool quoted, double value, float printed);

/* A field, if it is a number. */
int console_add_field(struct console *c, struct console_place *at, const struct console_field *f,
	struct error *e);

/* What a row of Megatron's says beside its points: notice each field that was added, then end. */
struct console_row {
	bool has_loss;
	double skipped; /* NAN: not said */
};

void console_notice(struct console *c, const struct console_place *at,
	const struct console_field *f, struct console_row *row);
int console_end_row(struct console *c, struct console_place *at, const struct console_row *row,
	struct error *e);

/* The fields from `from` on of a line whose x is known. */
int console_take_fields(struct console *c, struct console_place *at, struct slice text, size_t from,
	struct error *e);

/* What stands before "loss at iteration": the name of the data. */
struct slice console_held_out_of(const struct console_line *l, const struct console_found *m);

/* Progress bars (console_bars.c) --------------------------------------------------------------- */

/*
 * Say what the bar showed last at its place: it is drawn again and again, at a new place with the
 * old values first.
 */
int console_flush_bar(struct console *c, struct error *e);

int console_take_bar(struct console *c, struct console_place *at, const struct console_line *l,
	const struct console_found *m, struct error *e);
int console_take_keras(struct console *c, struct console_place *at, const struct console_line *l,
	const struct console_found *m, struct error *e);

/* At the end: the file's marks, from `first` on, whose names say steps, where bars say epochs. */
void console_put_marks_at_epochs(struct console *c, size_t first);

/* Keep the row of `at`, whose points begin at `first`, for the bar that says its step. */
int console_keep_epoch_row(struct console *c, const struct console_place *at,
	const struct console_field *epoch, size_t first, struct error *e);

/* At the end: put the points of all such rows at steps, if they can be known of all. */
void console_put_at_steps(struct console *c);

/* Forms of rows (console_form.c) --------------------------------------------------------------- */

#define CONSOLE_NOTE_BITS "the losses are in bits, to the base 2"

/* NULL: no memory. */
struct console_forms *console_forms_new(void);
void console_forms_free(struct console_forms *forms);

/*
 * Take a line that has the form of an earlier row: about 1 ns a byte. False where it has none. A
 * line end or carriage return stands behind the line, and LINES_PADDING bytes behind that can be
 * read.
 */
bool console_take_form(struct console *c, struct slice line, int *status, struct error *e);

/*
 * Keep the form of the row that was taken last: `raw` as it stands in the file, `l` without escape
 * sequences, whose keys are `hits`.
 */
void console_learn_form(struct console *c, struct slice raw, const struct console_line *l,
	const struct console_found *m, const struct console_hit *hits, size_t n);

/* Patterns of the user (console_patterns.c) ---------------------------------------------------- */

/* A pattern without a group is a name for other readers. */
void console_compile_patterns(struct console *c);
void console_release_patterns(struct console *c);

/* O(patterns * bytes) on at most 4 KiB of the line, as fast as regexec(3) is. */
int console_take_patterns(struct console *c, const struct console_line *l, struct error *e);

#endif
