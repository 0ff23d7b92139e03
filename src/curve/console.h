/* SPDX-License-Identifier: MIT */
/*
 * What the reader of console logs is made of: finding the lines that say anything among chatter,
 * taking a line apart, and the lines that say what a process did. What lines look like is in
 * console.def.
 */
#ifndef CURVE_CONSOLE_H
#define CURVE_CONSOLE_H

#include "curve/read.h"

/* Keys ----------------------------------------------------------------------------------------- */

#define CONSOLE_KEYS_MAX 120u
#define CONSOLE_KEY_MIN 5u /* bytes of the shortest key */
#define CONSOLE_HITS_MAX 16u
#define CONSOLE_HASH_BITS 14

/* Four bytes of a key, and where in it they stand. */
struct console_gram {
	uint32_t bytes;
	uint8_t key, at;
	bool more; /* the next gram has the same hash */
};

/* A set of texts to be found at once. */
struct console_keys {
	uint8_t places[1 << CONSOLE_HASH_BITS]; /* by the hash of four bytes: 1 + the first gram */
	struct console_gram grams[2 * CONSOLE_KEYS_MAX + 1]; /* those of one hash together */
	const struct slice *keys;
	size_t count;
};

struct console_hit {
	uint32_t key, at;
};

/* `keys`: at most CONSOLE_KEYS_MAX of CONSOLE_KEY_MIN bytes and more; they must outlive the set. */
void console_keys_init(struct console_keys *k, const struct slice *keys, size_t n);

/*
 * The keys that occur in `text`, each where it occurs first, in the order of the text; at most
 * CONSOLE_HITS_MAX. Looks at every second position only: about 2 GB/s where nothing occurs.
 */
size_t console_keys_find(const struct console_keys *k, struct slice text, struct console_hit *hits);

/* A line ------------------------------------------------------------------------------------- */

/* A line, or the part of one between carriage returns, without escape sequences. */
struct console_line {
	struct slice text;
	size_t begin; /* of the text behind the label of the process that printed it */
	int32_t rank; /* as the label says it, or -1 */
};

/* Tell the label of the printing process: "[default7]:", "12: ", "[rank7]:", "[1,7]<stdout>:". */
void console_label(struct console_line *l);

/*
 * Copy `text` to `out` (as long as it) without escape sequences and backspaces; its new length.
 * `from`, unless NULL, gets for each byte where it stood.
 */
size_t console_plain(struct slice text, char *out, uint16_t *from);

/*
 * The first clock time in the first part of the text, in seconds since 1970, or NAN. A text without
 * a zone is taken for UTC. Of dates with two slashes the month comes first, unless it cannot be
 * one.
 */
#define CONSOLE_CLOCK_MIN 19u /* bytes of the shortest one */
double console_clock(struct slice text);

/*
 * Match `pattern` at text.p[at]: a space stands for any number of spaces, %x for the x that is
 * looked for, %e for an epoch, %n for a number or question marks, %f for a number with a point, ^
 * for where fields begin. The end of what matched, or SIZE_MAX.
 */
struct console_head {
	double x, epoch, total; /* NAN: not there; total: the %n behind %x */
	double done;            /* of a progress bar: the batches */
	size_t fields;
	size_t begin, x_at; /* where the pattern began, and where x stands */
};

size_t console_match(struct slice text, size_t at, const char *pattern, struct console_head *h);

/* How fields stand in a line. */
enum console_style {
	CONSOLE_COLON, /* "name: value", with anything between */
	CONSOLE_EQUAL, /* "name=value" */
	CONSOLE_WORDS, /* "name value" between commas or bars */
	CONSOLE_BARS,  /* "name: value" or "name value" between bars */
	CONSOLE_DICT,  /* 'name': value, as Python and JSON print dictionaries */
};

struct console_field {
	struct slice name, value;
	bool quoted; /* the value stood in quotes */
};

/* The next field from *at on; false at the end. Lists give their first element. O(n). */
bool console_next(
	struct slice text, enum console_style style, size_t *at, struct console_field *field);

/* The first whole number at or behind `at`, thousands apart by commas or not. */
bool console_whole(struct slice text, size_t at, double *value);

/* Shapes --------------------------------------------------------------------------------------- */

enum console_how {
	CONSOLE_ON_LINE,
	CONSOLE_X_IS_FIELD,
	CONSOLE_BELOW,
	CONSOLE_BAR,
	CONSOLE_KERAS,
	CONSOLE_TURN
};

/* What console.def says of the flags. */
enum console_flag {
	CONSOLE_FROM_0 = 1,
	CONSOLE_SHORT = 2,
	CONSOLE_MEGATRON = 4,
	CONSOLE_HELD_OUT = 8,
	CONSOLE_EACH_RANK = 16,
	CONSOLE_FIRST = 32,
	CONSOLE_ONE_WORD = 64,
	CONSOLE_AT_LAST = 128,
	CONSOLE_DATA_BEFORE = 256,
	CONSOLE_AS_STEPS = 512,
	CONSOLE_BITS = 1024,
	CONSOLE_LOSS_FROM_0 = 2048,
	CONSOLE_AT_LAUNCH = 4096,
	CONSOLE_WHOLE = 8192,
};

#define CONSOLE_SHAPES_MAX 64u
#define CURVE_ANY 0xff /* the mean is the row's */

struct console_field_row {
	struct slice name;
	uint8_t role, mean;
	const char *other;
};

/* A row of console.def. */
struct console_shape {
	const char *trainer;
	enum console_how how;
	struct slice key;
	const char *head;
	enum console_style style;
	enum curve_unit unit;
	enum curve_mean mean;
	unsigned flags;
	const struct console_field_row *fields; /* up to one without a name */
};

/* The keys of marks, which come first, and of shapes, and what follows from a key. */
struct console_index {
	struct console_keys keys;
	struct slice texts[CONSOLE_KEYS_MAX];
	uint64_t rows[CONSOLE_KEYS_MAX];   /* bits of the shapes that have the key */
	size_t within[CONSOLE_SHAPES_MAX]; /* where the key stands in the head, or SIZE_MAX */
	/* No other keys stand in a line where only digits and the spaces before them differ. */
	bool steady_keys;
};

void console_index_init(struct console_index *x);

/* What was recognised in a line. */
struct console_found {
	const struct console_shape *shape;
	struct console_head head;
	size_t key; /* where it stands */
};

/* The first row of the table that fits the line, whose keys are `hits`. False where none does. */
bool console_recognise(const struct console_index *x, const struct console_line *l,
	const struct console_hit *hits, size_t n, struct console_found *m);

/*
 * Whether another line would be recognised likewise that differs in its numbers only, and in those
 * only by their digits: nothing else may be said by its keys.
 */
bool console_is_alone(const struct console_index *x, const struct console_hit *hits, size_t n,
	const struct console_found *m);

/* The row's field of a name, or NULL. */
const struct console_field_row *console_field_of(const struct console_shape *s, struct slice name);

/* console_next() in the way of the row. */
bool console_shape_field(
	const struct console_shape *s, struct slice text, size_t *at, struct console_field *f);

struct slice console_last_word(struct slice text);

/* Where the counts of a bar of tqdm are: "| 210/500 [". */
bool console_bar(struct slice text, double *n, double *total);

/* Whether nothing but a percentage is before it, as in a trainer's: no "Writing model shards:". */
bool console_bar_is_plain(struct slice text);

/* x of a line of no known trainer: a step, or an epoch as it is called with the part of it that is
 * done, where *within says that this part is known. */
bool console_guess_x(struct slice text, double *x, enum curve_unit *unit, bool *within);

/* The next name and number of such a line, with a sign or only space between them. */
bool console_next_guess(struct slice text, size_t *at, struct console_field *f);

/* Marks ---------------------------------------------------------------------------------------- */

/* What the reader knows of the file so far, as far as marks need it. */
struct console_marks {
	struct curve_reading *r;
	struct slice line; /* at hand, in which its time stands */
	double last_x;     /* of the newest point, or NAN */
	enum curve_unit unit;
	uint64_t points; /* of the file's series so far */
	/* The newest mark, so that what several processes say is said once. */
	uint64_t mark_points;
	double mark_x;
	int mark_kind;       /* -1: none */
	bool launched;       /* and no point since */
	int32_t overflow_of; /* the rank whose overflows are told; -1: none yet */
	uint64_t settings;   /* hashes of those of this launch */
	uint64_t setting_hashes[64];
};

/* The keys of the table's marks, and their number. */
extern const struct slice console_mark_keys[];
extern const size_t console_mark_count;

/* Whether mark `row` tells that a known trainer wrote the file. */
bool console_mark_is_banner(size_t row);

/* Say that a process started, unless that was said and nothing came since. */
int console_launch(struct console_marks *m, struct error *e);

/* Say what the line says, if it does; `at` is where the key stands. */
int console_mark(struct console_marks *m, size_t row, const struct console_line *line, size_t at,
	struct error *e);

#endif
