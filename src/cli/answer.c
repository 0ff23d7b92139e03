/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "cli/answer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/replace.h"
#include "base/text.h"

#define COMPLAINT_MAX 8192u
#define FLUSH_BYTES 65536u
#define WIDTH_MIN 40u
#define WIDTH_MAX 160u /* longer lines are hard to read */

void answer_init(struct strbuf *out, const struct options *o)
{
	uint64_t max = o->verify.limits.text_bytes;

	strbuf_init(out, max < SIZE_MAX ? (size_t)max : SIZE_MAX);
}

/* False with errno set. */
static bool write_all(int fd, const char *p, size_t n)
{
	while (n > 0) {
		ssize_t written = write(fd, p, n);
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return false;
		p += written;
		n -= (size_t)written;
	}
	return true;
}

static bool write_stdout(const struct strbuf *out)
{
	if (write_all(STDOUT_FILENO, strbuf_text(out), out->n))
		return true;
	/* Whoever read us has seen enough: `reprise … | head`. */
	if (errno != EPIPE)
		fprintf(stderr, "reprise: cannot write to stdout: %s\n", strerrordesc_np(errno));
	return false;
}

int answer_write(struct strbuf *out, int status)
{
	if (out->failed) {
		fputs("reprise: the answer is longer than memory or --limit text-bytes allows\n",
			stderr);
		status = EXIT_STATUS_FAILED;
	} else if (!write_stdout(out)) {
		status = EXIT_STATUS_FAILED;
	}
	strbuf_release(out);
	return status;
}

bool answer_flush(struct strbuf *out, bool all)
{
	if (out->failed || (out->n < FLUSH_BYTES && !all))
		return !out->failed;
	bool ok = write_stdout(out);
	strbuf_clear(out);
	return ok;
}

/* The columns of the terminal; COLUMNS only where the terminal does not say. */
static unsigned terminal_width(void)
{
	struct winsize size;
	const char *columns = getenv("COLUMNS");
	uint64_t n = WIDTH_PIPED;

	if (!isatty(STDOUT_FILENO))
		return WIDTH_PIPED;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		n = size.ws_col;
	else if (columns)
		text_parse_u64(slice_of(columns), WIDTH_MAX, &n);
	return n < WIDTH_MIN ? WIDTH_MIN : n > WIDTH_MAX ? WIDTH_MAX : (unsigned)n;
}

static bool wants_color(enum when when)
{
	const char *no_color = getenv("NO_COLOR"), *terminal = getenv("TERM");

	if (when != WHEN_AUTO)
		return when == WHEN_ALWAYS;
	return isatty(STDOUT_FILENO) && !(no_color && *no_color) &&
	       !(terminal && strcmp(terminal, "dumb") == 0);
}

struct render_options answer_style(const struct options *o)
{
	return (struct render_options){
		.color = wants_color(o->color),
		.verbose = o->verbose,
		.quiet = o->quiet,
		.width = terminal_width(),
	};
}

int answer_report(const struct options *o, struct report *r)
{
	struct render_options style = answer_style(o);
	struct strbuf out;
	int status = r->exit;

	answer_init(&out, o);
	if (o->json)
		report_render_json(r, &out);
	else
		report_render_text(r, &style, &out);
	report_release(r);
	return answer_write(&out, status);
}

void answer_open_json(struct json_writer *w, struct strbuf *out, const char *command)
{
	json_writer_init(w, out, true);
	json_open_object(w);
	json_key(w, "schema");
	json_text(w, "reprise/1");
	json_key(w, "command");
	json_text(w, command);
}

static int write_json_error(const struct options *o, const char *kind, const char *path,
	const char *text, uint64_t offset, int status)
{
	struct json_writer w;
	struct strbuf out;

	if (!o->json)
		return status;
	answer_init(&out, o);
	answer_open_json(&w, &out, o->command ? o->command->name : NULL);
	json_key(&w, "error");
	json_open_object(&w);
	json_key(&w, "kind");
	json_text(&w, kind);
	json_key(&w, "path");
	json_text(&w, path);
	json_key(&w, "message");
	json_text(&w, text);
	json_key(&w, "offset");
	if (offset == ERROR_NO_OFFSET)
		json_null(&w);
	else
		json_u64(&w, offset);
	json_close_object(&w);
	json_key(&w, "exit");
	json_i64(&w, status);
	json_close_object(&w);
	strbuf_add_char(&out, '\n');
	return answer_write(&out, status);
}

void answer_complain(const char *path, const struct error *e)
{
	struct strbuf b;

	strbuf_init(&b, COMPLAINT_MAX);
	strbuf_add_text(&b, "reprise: ");
	if (path) {
		text_add_escaped(&b, slice_of(path), COMPLAINT_MAX / 4);
		strbuf_add_text(&b, ": ");
	}
	text_add_escaped(&b, slice_of(e->text), COMPLAINT_MAX / 4);
	if (e->offset != ERROR_NO_OFFSET)
		strbuf_printf(&b, " (offset %llu)", (unsigned long long)e->offset);
	strbuf_add_char(&b, '\n');
	/* Before the answer on stdout and behind it: nothing is buffered. */
	if (b.no_memory)
		fputs("reprise: no memory to say what went wrong\n", stderr);
	else
		write_all(STDERR_FILENO, strbuf_text(&b), b.n);
	strbuf_release(&b);
}

void answer_unkept(const struct report *r)
{
	struct error e = ERROR_INIT;

	if (!r->unkept)
		return;
	fail(&e, RP_E_IO, ERROR_NO_OFFSET, "%s", r->unkept);
	answer_complain(r->inputs.count ? r->inputs.items[0].path : NULL, &e);
}

int answer_status(const struct error *e)
{
	if (e->output)
		return EXIT_STATUS_FAILED;
	switch (e->status) {
	case RP_E_ARGUMENT:
		return EXIT_STATUS_USAGE;
	case RP_E_MEMORY:
	case RP_E_INTERNAL:
		return EXIT_STATUS_FAILED;
	default:
		return EXIT_STATUS_UNDECIDED;
	}
}

static int answer_why(const struct options *o, const char *path, const struct error *e, int status)
{
	answer_complain(path, e);
	return write_json_error(o, status_name(e->status), path, e->text, e->offset, status);
}

int answer_error(const struct options *o, const char *path, const struct error *e)
{
	return answer_why(o, path, e, answer_status(e));
}

int answer_unwritten(const struct options *o, const char *path, const struct error *e)
{
	return answer_why(
		o, path, e, e->status == RP_E_ARGUMENT ? EXIT_STATUS_USAGE : EXIT_STATUS_FAILED);
}

int answer_usage(const struct options *o, const char *complaint)
{
	const char *command = o->command ? o->command->name : "", *space = o->command ? " " : "";

	fprintf(stderr, "reprise: %s\n", complaint);
	fprintf(stderr, "reprise %s%s--help says what there is\n", command, space);
	return write_json_error(o, "usage", NULL, complaint, ERROR_NO_OFFSET, EXIT_STATUS_USAGE);
}

/* To stdout as it comes, or to a file that gets its name when it is whole. */
struct output {
	struct replacement file;
	struct strbuf out;
	const char *path;
	bool gone; /* whoever reads stdout has gone, or it cannot be written */
};

static int write_piece(void *context, struct slice text, struct error *e)
{
	struct output *out = context;

	if (out->path)
		return replacement_write(&out->file, text, e);
	strbuf_add_slice(&out->out, text);
	if (out->out.failed)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for a piece of the text");
	if (answer_flush(&out->out, true))
		return RP_OK;
	out->gone = true;
	return fail(e, RP_E_IO, ERROR_NO_OFFSET, "cannot write to stdout");
}

/* What reading left out, on stderr: the text itself goes to stdout. */
static void complain_losses(const struct report *r, const char *lister)
{
	struct error e = ERROR_INIT;

	for (size_t i = 0; i < r->coverage.list.count; i++) {
		if (!r->coverage.list.items[i].reason)
			continue;
		fail(&e, RP_E_FORMAT, ERROR_NO_OFFSET, "%s; `%s` lists them",
			r->coverage.list.items[i].reason, lister);
		answer_complain(NULL, &e);
	}
}

int answer_text(const struct options *o, const char *subject, const char *lister,
	answer_make_fn *make, const void *context)
{
	struct output out = {.path = o->output};
	struct error e = ERROR_INIT;
	struct report r;

	if (out.path && replacement_open(&out.file, out.path, &e) < 0)
		return answer_error(o, out.path, &e);
	report_init(&r, o->command->name);
	answer_init(&out.out, o);
	int status = make(&r, write_piece, &out, context, &e);
	if (out.path && status == RP_OK)
		status = replacement_commit(&out.file, &e);
	else if (out.path)
		replacement_abandon(&out.file);
	strbuf_release(&out.out);
	if (status == RP_OK && r.exit == EXIT_STATUS_FAILED)
		status = fail(
			&e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory to say what was left out");
	if (status == RP_OK)
		complain_losses(&r, lister);
	report_release(&r);
	if (status == RP_OK)
		return EXIT_STATUS_FINE;
	return out.gone ? EXIT_STATUS_FAILED : answer_error(o, subject, &e);
}
