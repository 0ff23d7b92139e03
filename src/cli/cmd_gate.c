/* SPDX-License-Identifier: MIT */
/* verify for scripts: a policy, one line, an exit status; what passes is what was asked for and
 * checked. */
#include <string.h>
#include <time.h>

#include "api/curves.h"
#include "api/run_paths.h"
#include "base/replace.h"
#include "cli/answer.h"
#include "curve/own.h"

#define DAY_SECONDS 86400

/* What no longer holds is said each time, so that it is renewed or dropped. */
static void complain_expired(const struct policy *p)
{
	for (int code = 0; code < FINDING_COUNT; code++) {
		const struct policy_acceptance *a = &p->accepted[code];
		struct error e = ERROR_INIT;
		if (!a->expired)
			continue;
		fail(&e, RP_E_ARGUMENT, ERROR_NO_OFFSET,
			"line %u: the acceptance of %s ended with %s", a->line,
			finding_rows[code].code, a->until);
		answer_complain(p->name, &e);
	}
}

/* Nothing could be judged: that is an answer too, so that a report of an earlier run is not left
 * standing. */
static void take_error(
	struct report *r, const char *path, const struct policy *p, const struct error *e)
{
	r->has_verdict = true;
	r->word = VERDICT_UNKNOWN;
	r->evidence = report_text(r, "%s", e->text);
	r->exit = answer_status(e);
	r->policy = report_text(r, "%s", p->name);
	r->failing = p->failing;
	r->incomplete = true;
	if (r->inputs.count == 0)
		report_add_input(r, path, "root", "");
}

/* False after having complained. */
static bool write_report(const struct options *o, const struct report *r)
{
	struct error e = ERROR_INIT;
	struct strbuf out;

	if (!o->report)
		return true;
	answer_init(&out, o);
	report_render_json(r, &out);
	if (out.failed)
		fail(&e, RP_E_LIMIT, ERROR_NO_OFFSET,
			"the report is longer than memory or --limit text-bytes allows");
	else
		file_replace(o->report, strbuf_slice(&out), &e);
	strbuf_release(&out);
	if (e.status != RP_OK)
		answer_complain(o->report, &e);
	return e.status == RP_OK;
}

/* The path of what passed, or NULL where there is none that a launch could resume from. */
static const char *judged_path(const struct report *r, struct error *e)
{
	for (size_t i = 0; i < r->inputs.count; i++) {
		const struct report_input *input = &r->inputs.items[i];
		if (strcmp(input->role, "checkpoint") != 0)
			continue;
		if (!strchr(input->path, '\n'))
			return input->path;
		fail(e, RP_E_UNSUPPORTED, ERROR_NO_OFFSET,
			"--print-path: a newline is in the checkpoint's path");
	}
	fail(e, RP_E_UNSUPPORTED, ERROR_NO_OFFSET,
		"--print-path: a snapshot was judged, and no launch can resume from it");
	return NULL;
}

/* The path on stdout, and then only the line on stderr. */
static int print_path(const struct options *o, const struct report *r, const struct strbuf *line)
{
	int status = r->exit;
	struct strbuf out;

	if (status == EXIT_STATUS_FINE) {
		struct error e = ERROR_INIT;
		const char *path = judged_path(r, &e);
		if (!path)
			return answer_error(o, o->operands[0], &e);
		answer_init(&out, o);
		strbuf_printf(&out, "%s\n", path);
		status = answer_write(&out, status);
	}
	if (status == r->exit)
		fputs(strbuf_text(line), stderr);
	return status;
}

static int answer_gate(const struct options *o, struct report *r)
{
	struct render_options style = answer_style(o);
	struct strbuf out;
	int status = r->exit;

	if (!write_report(o, r))
		status = EXIT_STATUS_FAILED;
	/* Without the report that was asked for nothing passes, and no line says that it did. */
	if (status != r->exit && r->exit == EXIT_STATUS_FINE)
		return status;
	answer_init(&out, o);
	if (o->json) {
		report_render_json(r, &out);
	} else {
		report_render_gate(r, &style, &out);
		if (o->verbose) {
			strbuf_add_char(&out, '\n');
			report_render_text(r, &style, &out);
		}
	}
	if (!o->print_path || out.failed)
		return answer_write(&out, status);
	int printed = print_path(o, r, &out);
	strbuf_release(&out);
	return status == r->exit ? printed : status;
}

/*
 * A checkpoint is verified; the log of a run is audited, or a rehearsal held against it. Of a
 * folder that holds both, the checkpoint that a relaunch would use is judged where the sample log
 * passes; loss logs are audited where there is nothing else.
 */
static int fill_report(
	struct report *r, const struct options *o, const struct verify_options *v, struct error *e)
{
	struct audit_options audit = {.common = *v, .told = o->told, .told_count = o->told_count};
	const char *path = o->operands[0];
	struct error unseen = ERROR_INIT;
	struct paths_hold hold;

	if (o->confirm) {
		struct curves_options curves = {
			.common = *v, .first = INT64_MIN, .last = INT64_MAX};
		return curves_confirm(r, path, o->confirm, &curves, e);
	}
	if (o->rehearsal)
		return audit_rehearsal(r, path, o->rehearsal, &audit, e);
	/* What cannot be looked into is verify's to say. */
	if (run_paths_look(path, &v->limits, &hold, &unseen) < 0)
		return verify_path(r, path, v, e);
	int checkpoint = run_paths_has_checkpoint(path, &v->limits, &unseen);
	if (checkpoint < 0 || (!hold.samples && (checkpoint || !hold.losses)))
		return verify_path(r, path, v, e);
	int status = audit_paths(r, &path, 1, &audit, e);
	if (status < 0 || r->exit != EXIT_STATUS_FINE || !checkpoint)
		return status;
	report_release(r);
	report_init(r, o->command->name);
	return verify_path(r, path, v, e);
}

static int judge(const struct options *o, const struct policy *p)
{
	struct verify_options verify = o->verify;
	struct report r;
	struct error e = ERROR_INIT;

	verify.policy = p;
	verify.quick = !p->bytes;
	report_init(&r, o->command->name);
	if (fill_report(&r, o, &verify, &e) < 0)
		take_error(&r, o->operands[0], p, &e);
	answer_unkept(&r);
	int status = answer_gate(o, &r);
	report_release(&r);
	return status;
}

int cmd_gate(const struct options *o)
{
	const char *name = o->policy ? o->policy : "full";
	struct policy p;
	struct error e = ERROR_INIT;
	int status;

	if (o->print_path && o->json)
		return answer_usage(o, "--print-path and --format json contradict each other");
	/* Before hours of reading. */
	if (o->report && replace_allowed(o->report, own_report, &e) < 0)
		return answer_unwritten(o, o->report, &e);
	if (policy_load(&p, name, (int64_t)time(NULL) / DAY_SECONDS, &e) < 0) {
		fail_wrap(&e, "%s", name);
		status = answer_error(o, "--policy", &e);
	} else {
		complain_expired(&p);
		status = judge(o, &p);
	}
	policy_release(&p);
	return status;
}
