/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <sys/stat.h>

#include "api/choose.h"
#include "api/overview.h"
#include "api/take_snapshot.h"
#include "audit/case.h"
#include "base/text.h"
#include "state/snapshot.h"

#define VALUE_BYTES 100u

/*
 * What the rules see now, without an earlier checkpoint. Findings of rules that look at elements
 * are kept, since these are not there later; all others come from the tables again whenever they
 * are read.
 */
static int look_now(struct subject *s, const struct byte_totals *bytes, const struct limits *limits,
	struct findings *kept, struct coverage *cover, struct error *e)
{
	struct audit_case c = {.current = &s->state,
		.current_place = subject_place(s),
		.bytes = bytes,
		.limits = limits,
		.no_previous = "a snapshot is of one checkpoint alone"};
	c.current_place.deadline = limits->deadline;
	struct findings ignored;

	findings_init(&ignored);
	for (size_t i = 0; rules[i]; i++)
		audit_rule(rules[i], &c, rules[i]->needs & NEEDS_ELEMENTS ? kept : &ignored, cover);
	bool lost = ignored.lost + kept->lost + cover->lost > 0;
	findings_release(&ignored);
	if (lost)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for its findings");
	return c.unread ? fail(e, RP_E_IO, ERROR_NO_OFFSET, "%s", c.unread) : RP_OK;
}

static void add_count(struct report *r, struct report_table *t, const char *name, uint64_t n)
{
	const struct quantity values[2] = {[1] = quantity_count((int64_t)n)};
	struct strbuf b;

	strbuf_init(&b, VALUE_BYTES);
	text_add_count(&b, n);
	const char *cells[] = {name, report_take(r, &b)};
	report_add_row_values(r, t, TONE_PLAIN, cells, values);
}

static int tell(
	struct report *r, const struct state *s, const char *name, const char *out, struct error *e)
{
	static const char *const columns[] = {"name", "value"};
	struct report_table *t = report_add_table(r, "snapshot", "snapshot", columns, 2);
	char root[SHA256_TEXT];
	uint64_t digests = 0;
	struct stat st;

	for (size_t i = 0; i < s->summaries.count; i++)
		digests += s->summaries.items[i].known;
	const char *cells[] = {"checkpoint", name};
	report_add_row(r, t, TONE_PLAIN, cells);
	const char *file[] = {"file", out};
	report_add_row(r, t, TONE_PLAIN, file);
	if (stat(out, &st) < 0)
		return fail_os(e, errno, "%s", out);
	add_count(r, t, "bytes", (uint64_t)st.st_size);
	add_count(r, t, "files", s->files.count);
	add_count(r, t, "facts", s->facts.count);
	add_count(r, t, "random streams", s->streams.count);
	add_count(r, t, "tensors", s->tensors.count);
	add_count(r, t, "tensor digests", digests);
	if (snapshot_root(s, root)) {
		const char *strong[] = {"root sha256", root};
		report_add_row(r, t, TONE_PLAIN, strong);
	}
	return RP_OK;
}

int snapshot_keep(struct subject *s, const struct findings *own, const struct byte_totals *bytes,
	const char *out, const struct verify_options *o, bool *unwritten, struct error *e)
{
	struct findings kept;
	struct coverage cover;

	findings_init(&kept);
	coverage_init(&cover);
	findings_append(&kept, own);
	int status = look_now(s, bytes, &o->limits, &kept, &cover, e);
	findings_sort(&kept);
	struct snapshot_about about = {
		.name = s->chosen->name, .findings = &kept, .coverage = &cover};
	if (status == RP_OK) {
		status = snapshot_write(&s->state, &about, out, e);
		*unwritten = status < 0;
	}
	findings_release(&kept);
	coverage_release(&cover);
	return status;
}

/* Take it of the checkpoint that was read; `own` has what was found as that was done. */
static int take(struct report *r, struct subject *s, struct findings *own, const char *out,
	const struct verify_options *o, bool *unwritten, struct error *e)
{
	struct byte_totals totals;
	bool known = false;
	int status = RP_OK;

	if (s->state.snapshot)
		return fail(e, RP_E_ARGUMENT, ERROR_NO_OFFSET, "it is a snapshot already: copy it");
	s->state.wants_strong = o->sha256;
	if (!o->quick)
		status = subject_read_bytes(s, o->threads, o->limits.deadline, &totals, &known, e);
	if (status == RP_OK && !o->quick)
		status = subject_digest_files(s, e);
	/* What the system would not read now may be there the next time: half a snapshot is none.
	 */
	const char *unread =
		status == RP_OK ? subject_unreadable(r, &s->state, known ? &totals : NULL) : NULL;
	if (unread)
		status = fail(e, RP_E_IO, ERROR_NO_OFFSET, "%s", unread);
	if (status == RP_OK)
		status = snapshot_keep(s, own, known ? &totals : NULL, out, o, unwritten, e);
	if (status == RP_OK) {
		overview_input(r, &s->state, "checkpoint");
		r->summary = overview_line(r, &s->state);
		status = tell(r, &s->state, s->chosen->name, out, e);
		if (o->quick)
			cover_not_checked(&r->coverage, "bytes", "the tensors' bytes",
				"the snapshot was taken without them (--quick): it can prove no copy");
	}
	return status;
}

int snapshot_path(struct report *r, const char *path, const char *out,
	const struct verify_options *o, bool *unwritten, struct error *e)
{
	struct subject s;
	struct choice choice = {.chosen = SIZE_MAX};
	struct findings own;
	int status = subject_open(&s, path, &o->limits, e);

	*unwritten = false;
	findings_init(&own);
	if (status == RP_OK)
		status = choose_checkpoint(&choice, r, &s, o, e);
	if (status == RP_OK && choice.chosen != SIZE_MAX) {
		status = subject_read(
			&s, &s.candidates.list.items[choice.chosen], &o->limits, &own, e);
		if (status == RP_OK)
			status = choice_of_step(&s, o, e);
		if (status == RP_OK)
			status = take(r, &s, &own, out, o, unwritten, e);
	}
	choice_release(&choice);
	findings_release(&own);
	subject_close(&s);
	report_finish(r);
	return status;
}
