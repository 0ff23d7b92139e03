/* SPDX-License-Identifier: MIT */
/*
 * Would loading this pickle run code? Judged by the names that it calls: a table of what is known, and
 * nothing is resolved or imported. pickle_classes.def is the table.
 */
#include "container/pickle.h"

#include "base/strbuf.h"
#include "base/text.h"

#define SHOWN_CLASSES 5u
#define TEXT_BYTES 600u

enum class_kind {
	CLASS_UNKNOWN,
	CLASS_SAFE,
	CLASS_GADGET,
	CLASS_DANGEROUS,
};

struct class_row {
	enum class_kind kind;
	const char *module, *name, *why;
};

static const struct class_row class_rows[] = {
#define CLASS(kind, module, name, why) {CLASS_##kind, module, name, why},
#include "container/pickle_classes.def"
#undef CLASS
};

/* Attributes by which getattr leads from an object to everything else. */
static const char *const reaching_attributes[] = {"__class__", "__bases__", "__subclasses__", "__globals__",
	"__builtins__", "__import__", "__dict__", "__getattribute__", "__code__", "__init__", "__reduce__", "__call__",
	"system", "popen", "exec", "eval", "open", "spawn", "load", "loads", "run", "call", "Popen", "import_module"};

static bool module_fits(struct slice module, const char *pattern)
{
	struct slice p = slice_of(pattern);

	if (p.n < 2 || !slice_ends(p, SLICE(".*")))
		return slice_eq(module, p);
	p.n -= 2;
	return slice_starts(module, p) && (module.n == p.n || module.p[p.n] == '.');
}

/* Protocols 0 to 2 write Python 3's builtins under their Python 2 name. */
static struct slice modern(struct slice module)
{
	return slice_is(module, "__builtin__") ? SLICE("builtins") : module;
}

static const struct class_row *row_of(const struct klass *k)
{
	struct slice module = modern(k->module), name = k->name;
	size_t dot = slice_find(name, SLICE("."));

	/* "Popen.__init__" of protocol 4 is judged by its first part. */
	if (dot != SIZE_MAX)
		name.n = dot;
	for (size_t i = 0; i < sizeof class_rows / sizeof *class_rows; i++) {
		const struct class_row *r = &class_rows[i];
		if (module_fits(module, r->module) && (strcmp(r->name, "*") == 0 || slice_is(name, r->name)))
			return r;
	}
	return NULL;
}

static void add_name(struct strbuf *b, const struct klass *k)
{
	text_add_escaped(b, k->module, 100);
	strbuf_add_char(b, '.');
	text_add_escaped(b, k->name, 100);
}

/* An argument, short: what a person needs to see what would be run. */
static void add_value(struct strbuf *b, struct val v)
{
	switch ((enum val_kind)v.kind) {
	case VAL_TEXT:
	case VAL_BYTES:
		strbuf_add_text(b, v.kind == VAL_BYTES ? "b'" : "'");
		text_add_escaped(b, val_slice(v), 120);
		strbuf_add_char(b, '\'');
		break;
	case VAL_INT:
		strbuf_printf(b, "%lld", (long long)v.i);
		break;
	case VAL_BOOL:
		strbuf_add_text(b, v.i ? "True" : "False");
		break;
	case VAL_CLASS:
		add_name(b, v.klass);
		break;
	case VAL_LIST:
	case VAL_TUPLE:
		strbuf_add_char(b, v.kind == VAL_LIST ? '[' : '(');
		for (uint64_t i = 0; i < val_count(v) && i < 4; i++) {
			struct val part = val_at(v, i);
			strbuf_add_text(b, i ? ", " : "");
			if (val_is_sequence(part))
				strbuf_add_text(b, "…");
			else
				add_value(b, part);
		}
		strbuf_add_text(b, val_count(v) > 4 ? ", …" : "");
		strbuf_add_char(b, v.kind == VAL_LIST ? ']' : ')');
		break;
	case VAL_OBJECT:
		if (v.object->callable.kind == VAL_CLASS)
			add_name(b, v.object->callable.klass);
		strbuf_add_text(b, "(…)");
		break;
	default:
		strbuf_add_text(b, val_kind_name((enum val_kind)v.kind));
		break;
	}
}

static void unsafe(const char *file, struct findings *sink, const struct klass *k, const struct object *call,
	uint64_t offset, const char *why)
{
	struct strbuf b;

	strbuf_init(&b, TEXT_BYTES);
	if (k)
		add_name(&b, k);
	else
		strbuf_add_text(&b, "the result of another call");
	if (call)
		add_value(&b, call->args);
	struct finding *f = finding_add(sink, FINDING_I112, "loading it would call %s", strbuf_text(&b));
	f->place.file = findings_text(sink, "%s", file);
	f->place.offset = offset;
	f->cause = why;
	strbuf_release(&b);
}

/* Whether a call hands a dangerous thing on: as an argument, or by reaching through an attribute. */
static const char *handed_on(const struct klass *k, const struct object *call)
{
	for (uint64_t i = 0; i < val_count(call->args); i++) {
		struct val arg = val_at(call->args, i);
		const struct class_row *row = arg.kind == VAL_CLASS ? row_of(arg.klass) : NULL;
		if (row && row->kind == CLASS_DANGEROUS)
			return row->why;
	}
	if (!slice_is(k->name, "getattr"))
		return NULL;
	/* getattr(EnumClass, 'MEMBER') is how Python 3.11 pickles enums under protocol 2. */
	struct val object = val_at(call->args, 0), name = val_at(call->args, 1);
	if (object.kind != VAL_CLASS)
		return "takes an attribute of what another call returned";
	for (size_t i = 0; i < sizeof reaching_attributes / sizeof *reaching_attributes; i++)
		if (val_is_text(name, reaching_attributes[i]))
			return "takes an attribute that leads to running code";
	return NULL;
}

void pickle_judge(const struct pickle *p, const char *file, struct findings *sink)
{
	struct strbuf unknown;
	size_t count = 0;

	strbuf_init(&unknown, TEXT_BYTES);
	for (size_t i = 0; i < p->classes.count; i++) {
		const struct klass *k = p->classes.items[i];
		const struct class_row *row = row_of(k);
		enum class_kind kind = row ? row->kind : CLASS_UNKNOWN;
		if (kind == CLASS_DANGEROUS && k->called) {
			unsafe(file, sink, k, k->call, k->offset, row->why);
		} else if (kind == CLASS_GADGET && k->call) {
			for (const struct object *o = k->call; o; o = o->next_call) {
				const char *why = handed_on(k, o);
				if (!why)
					continue;
				unsafe(file, sink, k, o, k->offset, why);
				break;
			}
		} else if (kind == CLASS_UNKNOWN) {
			if (count < SHOWN_CLASSES) {
				strbuf_add_text(&unknown, count ? ", " : "");
				add_name(&unknown, k);
			}
			count++;
		}
	}
	/* A callable that is no name was itself made by the pickle: getattr(…)(…), partial(…)(). */
	if (p->computed)
		unsafe(file, sink, NULL, p->computed, p->computed_offset, "what it calls is made while loading");
	if (count > 0) {
		struct finding *f = finding_add(sink, FINDING_I116, "%zu class%s that reprise does not know: %s%s", count,
			count == 1 ? "" : "es", strbuf_text(&unknown), count > SHOWN_CLASSES ? ", …" : "");
		f->place.file = findings_text(sink, "%s", file);
		f->observed = quantity_count((int64_t)count);
		f->unit = "classes";
	}
	strbuf_release(&unknown);
}
