/* SPDX-License-Identifier: MIT */
#include "container/pickle.h"

#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/text.h"

/* How deep a name is followed through getattr(getattr(…)), and an argument into its parts. */
#define CHAIN_MAX 8u
#define PARTS_DEPTH_MAX 6u
#define PARTS_MAX 500u

/* Attributes in one dotted name. Python's own classes nest two or three deep. */
#define DOTS_MAX 8u
#define NAME_MAX_BYTES 1000u

/* What is shown: of arguments, of one text in them, of a list of classes. */
#define SHOWN_MAX 160u
#define SHOWN_TEXT_MAX 60u
#define SHOWN_PARTS 4u
#define SHOWN_DEPTH 4u
#define SHOWN_CLASSES 5u

/* Findings are counted up to here; a file that goes on is dangerous enough. */
#define REPORTED_MAX 1000u

enum rank {
	HARMLESS,
	DANGEROUS,
	CARRIER,
	UNKNOWN,
};

struct row {
	enum rank rank;
	const char *module, *names, *why;
};

static const struct row rows[] = {
#define CLASS(rank, module, names, why) {rank, module, names, why},
#include "container/pickle_classes.def"
#undef CLASS
};

#define ROW_COUNT (sizeof rows / sizeof *rows)

_Static_assert(ROW_COUNT < UINT16_MAX, "struct klass.judged counts rows");

static const struct row unknown = {UNKNOWN, "", "", ""};

/* Attributes by which one gets from any function or class to everything else. */
static const struct row through_attributes = {
	DANGEROUS, "", "", "reaches the interpreter through attributes"};

/* A module inside a module: torch.serialization has an attribute os. */
static const struct row through_module = {
	DANGEROUS, "", "", "reaches a module through another one"};

/* The table --------------------------------------------------------------------------------- */

/* A pattern with * at either end, or with [A-Z]* at its end. */
static bool fits(struct slice pattern, struct slice name)
{
	if (slice_ends(pattern, SLICE("[A-Z]*"))) {
		size_t before = pattern.n - strlen("[A-Z]*");
		return name.n > before &&
		       slice_eq(
			       (struct slice){pattern.p, before}, (struct slice){name.p, before}) &&
		       name.p[before] >= 'A' && name.p[before] <= 'Z';
	}
	if (pattern.n > 0 && pattern.p[pattern.n - 1] == '*') {
		pattern.n--;
		if (pattern.n == 0)
			return true;
		if (pattern.p[0] != '*')
			return slice_starts(name, pattern);
		return slice_find(name, (struct slice){pattern.p + 1, pattern.n - 1}) != SIZE_MAX;
	}
	if (pattern.n > 0 && pattern.p[0] == '*')
		return slice_ends(name, (struct slice){pattern.p + 1, pattern.n - 1});
	return slice_eq(pattern, name);
}

static bool name_fits(const char *names, struct slice name)
{
	for (;;) {
		size_t n = strcspn(names, "|");
		if (fits((struct slice){names, n}, name))
			return true;
		if (!names[n])
			return false;
		names += n + 1;
	}
}

static bool module_fits(const char *pattern, struct slice module)
{
	/* Most rows fail here. */
	if (module.n == 0 || pattern[0] != module.p[0])
		return false;
	struct slice p = slice_of(pattern);
	if (!slice_ends(p, SLICE(".*")))
		return fits(p, module);
	p.n -= 2;
	return slice_starts(module, p) && (module.n == p.n || module.p[p.n] == '.');
}

static const struct row *find(struct slice module, struct slice name)
{
	for (size_t i = 0; i < ROW_COUNT; i++)
		if (module_fits(rows[i].module, module) && name_fits(rows[i].names, name))
			return &rows[i];
	return &unknown;
}

static bool is_watched(const struct row *row)
{
	return row->rank == DANGEROUS || row->rank == CARRIER;
}

/* Whether an attribute of this name leads out of where one is. */
static const struct row *find_attribute(struct slice part)
{
	static const char *const reaching[] =
		{
			"__globals__",
			"__builtins__",
			"__subclasses__",
			"__code__",
			"__loader__",
			"__spec__",
			"__base__",
			"__bases__",
			"__mro__",
			"mro",
			"__closure__",
			"__import__",
			"__getattribute__",
			"f_globals",
			"f_builtins",
			"func_globals",
			"func_code",
			"gi_frame",
			"tb_frame",
		},
				 *const modules[] = {
					 "os",
					 "sys",
					 "subprocess",
					 "posix",
					 "nt",
					 "builtins",
					 "__builtin__",
					 "importlib",
					 "shutil",
					 "socket",
					 "ctypes",
					 "pty",
					 "runpy",
					 "pickle",
					 "_pickle",
					 "marshal",
					 "_os",
					 "_sys",
				 };

	for (size_t i = 0; i < sizeof reaching / sizeof *reaching; i++)
		if (slice_is(part, reaching[i]))
			return &through_attributes;
	for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
		if (slice_is(part, modules[i]))
			return &through_module;
	return NULL;
}

static struct slice joined(struct slice from, struct slice to)
{
	return (struct slice){from.p, (size_t)(to.p - from.p) + to.n};
}

/*
 * A name with dots is looked up attribute by attribute, so serialization.os.system of the module
 * torch is os.system. `full` is "module.name".
 */
static const struct row *find_dotted(struct slice module, struct slice full, struct slice name)
{
	struct slice parts[DOTS_MAX];
	size_t count = 0;

	for (size_t at = 0; at <= name.n;) {
		struct slice rest = {name.p + at, name.n - at};
		size_t n = slice_find(rest, SLICE("."));
		if (n == SIZE_MAX)
			n = rest.n;
		if (count == DOTS_MAX)
			return &through_attributes;
		parts[count++] = (struct slice){rest.p, n};
		at += n + 1;
	}
	for (size_t i = 0; i + 1 < count; i++) {
		/* An attribute of what is dangerous is so too: eval.__call__. */
		const struct row *row = find(module, joined(parts[0], parts[i]));
		struct slice rest = joined(parts[i + 1], parts[count - 1]);
		if (!is_watched(row))
			row = find(joined(full, parts[i]), rest);
		for (size_t from = 0; from <= i && !is_watched(row); from++)
			row = find(joined(parts[from], parts[i]), rest);
		if (is_watched(row))
			return row;
	}
	for (size_t i = 0; i < count; i++) {
		const struct row *row = find_attribute(parts[i]);
		if (row)
			return row;
	}
	return &unknown;
}

static const struct row *look_up(struct slice module, struct slice name)
{
	const struct row *row = find(module, name), *deeper = &unknown;
	char memory[NAME_MAX_BYTES];
	struct strbuf full;

	if (row->rank == DANGEROUS)
		return row;
	strbuf_over(&full, memory, sizeof memory);
	strbuf_add_slice(&full, module);
	strbuf_add_char(&full, '.');
	strbuf_add_slice(&full, name);
	if (full.failed) {
		/* Python has no such names. Look at what can be seen of it. */
		deeper = find_dotted(module, name, name);
	} else {
		struct slice all = strbuf_slice(&full);
		deeper = find_dotted(module, all, (struct slice){all.p + module.n + 1, name.n});
	}
	return deeper->rank == UNKNOWN ? row : deeper;
}

static const struct row *row_of(const struct klass *k)
{
	if (k->judged == 0)
		return look_up(k->module, k->name);
	/* Rows that stand for no class come behind the table. */
	size_t i = k->judged - 1u;
	if (i < ROW_COUNT)
		return &rows[i];
	return i == ROW_COUNT       ? &unknown
	       : i == ROW_COUNT + 1 ? &through_attributes
				    : &through_module;
}

void pickle_know(struct klass *k)
{
	const struct row *row = look_up(k->module, k->name);
	size_t i = row == &unknown              ? ROW_COUNT
		   : row == &through_attributes ? ROW_COUNT + 1
		   : row == &through_module     ? ROW_COUNT + 2
						: (size_t)(row - rows);

	k->judged = (uint16_t)(i + 1);
	k->watched = is_watched(row);
}

/* What a value stands for ------------------------------------------------------------------- */

static bool is_function(struct val v, const char *a, const char *b, const char *name)
{
	return val_is_class(v, a, name) || val_is_class(v, b, name);
}

static bool is_getattr(struct val callable)
{
	return is_function(callable, "builtins", "__builtin__", "getattr");
}

static bool is_partial(struct val callable)
{
	return is_function(callable, "functools", "_functools", "partial") ||
	       is_function(callable, "functools", "_functools", "partialmethod");
}

/* What calls of attrgetter('a.b') and methodcaller('m') make: they wait for the object. */
static bool is_reaching(struct val v)
{
	return v.kind == VAL_OBJECT &&
	       (is_function(v.object->callable, "operator", "_operator", "attrgetter") ||
		       is_function(v.object->callable, "operator", "_operator", "methodcaller"));
}

enum resolved {
	RESOLVED,
	NAMELESS,
	TOO_LONG, /* a chain that no class of good intent needs */
};

/*
 * The name of what `v` is: of a class its own; of getattr(X, 'a') that of X and .a; of a partial
 * that of the function; of any other object that of its class. `name` gets the part behind the
 * module.
 */
static enum resolved resolve(
	struct val v, unsigned depth, struct slice *module, struct strbuf *name)
{
	if (depth > CHAIN_MAX)
		return TOO_LONG;
	if (v.kind == VAL_CLASS) {
		*module = v.klass->module;
		strbuf_add_slice(name, v.klass->name);
		return RESOLVED;
	}
	if (v.kind != VAL_OBJECT)
		return NAMELESS;
	const struct object *o = v.object;
	if (is_partial(o->callable)) {
		struct val inner = val_at(o->state, 0);
		if (inner.kind == VAL_ABSENT)
			inner = val_at(o->args, 0);
		return resolve(inner, depth + 1, module, name);
	}
	if (is_getattr(o->callable)) {
		struct val attribute = val_at(o->args, 1);
		enum resolved outer = resolve(val_at(o->args, 0), depth + 1, module, name);
		if (outer == RESOLVED) {
			strbuf_add_char(name, '.');
			strbuf_add_slice(name, val_slice(attribute));
		}
		return outer;
	}
	return resolve(o->callable, depth + 1, module, name);
}

static const struct row *row_of_value(struct val v)
{
	struct slice module = {0};
	char memory[NAME_MAX_BYTES];
	struct strbuf name;
	const struct row *row = &unknown;

	if (v.kind == VAL_CLASS)
		return row_of(v.klass);
	strbuf_over(&name, memory, sizeof memory);
	enum resolved resolved = resolve(v, 0, &module, &name);
	if (resolved == RESOLVED)
		row = look_up(module, strbuf_slice(&name));
	else if (resolved == TOO_LONG)
		row = &through_attributes;
	return row;
}

/* Carriers that only keep what they are given, to call it some time later. */
static bool is_keeping(struct val v)
{
	return is_partial(v) || val_is_class(v, "collections", "defaultdict");
}

struct danger {
	const struct row *row;
	struct val what;
	unsigned budget;
	bool calls; /* it is called at once, so what reaches attributes counts too */
};

static const struct row *danger_of(const struct danger *d, struct val v)
{
	const struct row *row = &unknown;

	if (v.kind == VAL_CLASS || v.kind == VAL_OBJECT)
		row = row_of_value(v);
	if (row->rank == DANGEROUS)
		return row;
	if (d->calls && (is_getattr(v) || is_reaching(v)))
		return &through_attributes;
	if (v.kind == VAL_TEXT && v.n > 2 && v.s[0] == '_' &&
		find_attribute(val_slice(v)) == &through_attributes)
		return &through_attributes;
	return NULL;
}

/* The first dangerous thing among `v` and its parts: what a carrier might call. */
static bool find_danger(struct danger *d, struct val v, unsigned depth)
{
	if (d->budget == 0 || depth > PARTS_DEPTH_MAX)
		return false;
	d->budget--;
	d->row = danger_of(d, v);
	if (d->row) {
		d->what = v;
		return true;
	}
	if (v.kind == VAL_OBJECT) {
		const struct object *o = v.object;
		/* getattr(X, 'a') itself was asked above, by name. */
		return (!is_getattr(o->callable) && find_danger(d, o->callable, depth + 1)) ||
		       find_danger(d, o->args, depth + 1) || find_danger(d, o->kwargs, depth + 1) ||
		       find_danger(d, o->state, depth + 1);
	}
	if (!val_is_container(v))
		return false;
	for (uint32_t i = 0; i < v.node->count; i++)
		if (find_danger(d, v.node->kids[i], depth + 1))
			return true;
	return false;
}

bool pickle_is_idle(struct klass *k, struct val args)
{
	struct val callable = {.kind = VAL_CLASS, .klass = k};

	if (row_of(k)->rank != CARRIER || is_getattr(callable) || is_partial(callable) ||
		args.kind != VAL_TUPLE || args.node->count > 4)
		return false;
	for (uint32_t i = 0; i < args.node->count; i++) {
		struct val v = args.node->kids[i];
		if (v.kind >= VAL_LIST && (v.kind != VAL_CLASS || v.klass->watched))
			return false;
	}
	return true;
}

/* Showing values ---------------------------------------------------------------------------- */

static void show(struct strbuf *b, struct val v, unsigned depth);

static void show_name(struct strbuf *b, const struct klass *k)
{
	text_add_escaped(b, k->module, SHOWN_TEXT_MAX);
	strbuf_add_char(b, '.');
	text_add_escaped(b, k->name, SHOWN_TEXT_MAX);
}

static void show_kids(struct strbuf *b, struct val v, unsigned depth)
{
	for (uint32_t i = 0; i < v.node->count; i++) {
		if (i > 0)
			strbuf_add_text(b, v.kind == VAL_DICT && i % 2 ? ": " : ", ");
		if (i >= SHOWN_PARTS || depth > SHOWN_DEPTH) {
			strbuf_add_text(b, "…");
			return;
		}
		show(b, v.node->kids[i], depth + 1);
	}
}

static void show_call(struct strbuf *b, struct val callable, struct val args, unsigned depth)
{
	show(b, callable, depth + 1);
	strbuf_add_char(b, '(');
	if (args.kind == VAL_TUPLE)
		show_kids(b, args, depth);
	else if (args.kind != VAL_ABSENT)
		strbuf_add_text(b, "…");
	strbuf_add_char(b, ')');
}

static void show_quoted(struct strbuf *b, struct val v)
{
	if (v.kind == VAL_BYTES)
		strbuf_add_char(b, 'b');
	strbuf_add_char(b, '"');
	text_add_escaped(b, val_slice(v), SHOWN_TEXT_MAX);
	strbuf_add_char(b, '"');
}

static void show(struct strbuf *b, struct val v, unsigned depth)
{
	static const char brackets[] = "[](){}{}{}";

	if (depth > SHOWN_DEPTH + 1) {
		strbuf_add_text(b, "…");
		return;
	}
	switch ((enum val_kind)v.kind) {
	case VAL_NONE:
		strbuf_add_text(b, "None");
		break;
	case VAL_BOOL:
		strbuf_add_text(b, v.i ? "True" : "False");
		break;
	case VAL_INT:
		strbuf_printf(b, "%lld", (long long)v.i);
		break;
	case VAL_FLOAT:
		text_add_double(b, v.f);
		break;
	case VAL_TEXT:
	case VAL_BYTES:
		show_quoted(b, v);
		break;
	case VAL_LIST:
	case VAL_TUPLE:
	case VAL_DICT:
	case VAL_SET:
	case VAL_FROZENSET:
		strbuf_add_char(b, brackets[(v.kind - VAL_LIST) * 2]);
		show_kids(b, v, depth);
		strbuf_add_char(b, brackets[(v.kind - VAL_LIST) * 2 + 1]);
		break;
	case VAL_CLASS:
		show_name(b, v.klass);
		break;
	case VAL_OBJECT:
		show_call(b, v.object->callable, v.object->args, depth);
		break;
	case VAL_ABSENT:
	case VAL_BIGINT:
	case VAL_PERSISTENT:
	case VAL_TENSOR:
		strbuf_printf(b, "<%s>", val_kind_name((enum val_kind)v.kind));
		break;
	}
}

/* Judging ----------------------------------------------------------------------------------- */

struct judge {
	const struct pickle *p;
	const char *file;
	struct findings *sink;
	size_t reported;
	const struct object **used; /* what other calls use, by address */
	size_t used_count;
};

static void report(struct judge *j, const struct pickle_deed *deed, const char *verb,
	const char *shown, const char *link, const char *why)
{
	struct finding *f =
		finding_add(j->sink, FINDING_I112, "loading it %s %s%s%s", verb, shown, link, why);

	finding_place(j->sink, f, j->file, (struct slice){0}, deed->offset);
	j->reported++;
}

/* As shown in a message: escaped a second time, which changes nothing, and cut. */
static void cut(struct strbuf *b, struct strbuf *from)
{
	if (from->failed)
		strbuf_add_text(b, "…");
	else
		text_add_escaped(b, strbuf_slice(from), SHOWN_MAX);
}

/* The object that a call calls, or that a getattr looks into; NULL: it does neither. */
static const struct object *used_by(const struct pickle_deed *deed)
{
	struct val used = is_getattr(deed->what) ? val_at(deed->with, 0) : deed->what;

	return used.kind == VAL_OBJECT ? used.object : NULL;
}

static int compare_addresses(const void *pa, const void *pb)
{
	uintptr_t a = (uintptr_t) * (const struct object *const *)pa;
	uintptr_t b = (uintptr_t) * (const struct object *const *)pb;

	return (a > b) - (a < b);
}

static void find_used(struct judge *j)
{
	size_t count = 0;

	j->used = calloc(j->p->deeds.count, sizeof *j->used);
	for (size_t i = 0; j->used && i < j->p->deeds.count; i++) {
		const struct object *used = used_by(&j->p->deeds.items[i]);
		if (used)
			j->used[count++] = used;
	}
	j->used_count = count;
	if (count > 1)
		qsort(j->used, count, sizeof *j->used, compare_addresses);
}

/*
 * Whether another call calls what this one makes, or reaches through it: then that one says it all.
 * Where memory ran out both are told.
 */
static bool is_used(const struct judge *j, const struct pickle_deed *deed)
{
	const struct object *made = deed->made;

	return j->used_count > 0 &&
	       bsearch(&made, j->used, j->used_count, sizeof *j->used, compare_addresses);
}

/* What is called or handed on is not only named. */
static void mark_called(struct val v)
{
	if (v.kind == VAL_CLASS)
		v.klass->called = true;
	else if (v.kind == VAL_OBJECT && v.object->callable.kind == VAL_CLASS)
		v.object->callable.klass->called = true;
}

static void judge_call(struct judge *j, const struct pickle_deed *deed)
{
	const struct row *row = row_of_value(deed->what);
	struct danger danger = {.budget = PARTS_MAX, .calls = !is_keeping(deed->what)};
	struct strbuf all, shown;
	const char *why = NULL, *verb = "calls", *link = ", which ";

	if (is_reaching(deed->what)) {
		why = "reaches any attribute or method";
	} else if (row->rank == DANGEROUS) {
		why = row->why;
	} else if (row->rank == CARRIER) {
		if (is_getattr(deed->what)) {
			/* getattr(X, 'name'): what counts is what comes out. */
			row = row_of_value((struct val){.kind = VAL_OBJECT, .object = deed->made});
			if (row->rank != DANGEROUS || is_used(j, deed))
				return;
			why = row->why;
			verb = "gets";
		} else if (find_danger(&danger, deed->with, 0) ||
			   (deed->what.kind == VAL_OBJECT && find_danger(&danger, deed->what, 0)) ||
			   (deed->made && find_danger(&danger, deed->made->state, 0))) {
			if (is_partial(deed->what) && is_used(j, deed))
				return;
			why = danger.row->why;
			link = " with something that ";
			mark_called(danger.what);
		}
	}
	if (!why)
		return;
	mark_called(deed->what);
	strbuf_init(&all, 20000);
	strbuf_init(&shown, 2 * SHOWN_MAX);
	show_call(&all, deed->what, deed->with, 0);
	cut(&shown, &all);
	report(j, deed, verb, strbuf_text(&shown), link, why);
	j->sink->lost += all.no_memory || shown.no_memory;
	strbuf_release(&all);
	strbuf_release(&shown);
}

static void judge_change(struct judge *j, const struct pickle_deed *deed)
{
	struct strbuf all, shown;

	strbuf_init(&all, 20000);
	strbuf_init(&shown, 2 * SHOWN_MAX);
	show(&all, deed->what, 0);
	cut(&shown, &all);
	strbuf_clear(&all);
	show(&all, deed->with, 0);
	mark_called(deed->what);
	if (deed->kind == PICKLE_PLANTS) {
		report(j, deed, "calls", strbuf_text(&shown), ", ",
			"which an object's own state names as its __setstate__");
	} else {
		strbuf_add_text(&shown, ": ");
		cut(&shown, &all);
		report(j, deed, "changes", strbuf_text(&shown), ", ", "which is not its own");
	}
	j->sink->lost += all.no_memory || shown.no_memory;
	strbuf_release(&all);
	strbuf_release(&shown);
}

/* One finding for all classes that belong to it; the first few by name. */
static void report_classes(struct judge *j, bool (*belongs)(const struct klass *),
	const char *before, const char *behind)
{
	struct strbuf b;
	size_t count = 0;

	strbuf_init(&b, 4000);
	for (size_t i = 0; i < j->p->classes.count; i++) {
		const struct klass *k = j->p->classes.items[i];
		if (!belongs(k))
			continue;
		if (count < SHOWN_CLASSES) {
			if (count > 0)
				strbuf_add_text(&b, ", ");
			show_name(&b, k);
		}
		count++;
	}
	if (count > SHOWN_CLASSES)
		strbuf_printf(&b, " and %zu more", count - SHOWN_CLASSES);
	if (count > 0) {
		struct finding *f = finding_add(
			j->sink, FINDING_I116, "it names %s%s%s", before, strbuf_text(&b), behind);
		finding_place(j->sink, f, j->file, (struct slice){0}, PLACE_NO_OFFSET);
		f->observed = quantity_count((int64_t)count);
		f->unit = "classes";
	}
	j->sink->lost += b.no_memory;
	strbuf_release(&b);
}

static bool is_unknown(const struct klass *k)
{
	return row_of(k)->rank == UNKNOWN;
}

static bool is_only_named(const struct klass *k)
{
	return row_of(k)->rank == DANGEROUS && !k->called;
}

void pickle_judge(const struct pickle *p, const char *file, struct findings *sink)
{
	struct judge j = {.p = p, .file = file, .sink = sink};

	if (p->deeds.count > 0)
		find_used(&j);
	for (size_t i = 0; i < p->deeds.count && j.reported < REPORTED_MAX; i++) {
		const struct pickle_deed *deed = &p->deeds.items[i];
		if (deed->kind == PICKLE_CALLS)
			judge_call(&j, deed);
		else
			judge_change(&j, deed);
	}
	free(j.used);
	report_classes(&j, is_unknown,
		"classes that are not known here, so a weights-only loader would refuse it: ", "");
	report_classes(
		&j, is_only_named, "", ", dangerous if it were called, but does not call it");
}
