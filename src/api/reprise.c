/* SPDX-License-Identifier: MIT */
/* The public library over the functions that the tool uses. */
#include <reprise.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/runs.h"

#define JSON_BYTES_MAX ((size_t)256 << 20)

struct rp_report {
	struct report report;
	struct strbuf json;
};

const char *rp_version(void)
{
	return RP_VERSION;
}

/*
 * Options of another release: a shorter struct lacks fields, which are zero; in a longer one the
 * fields past what is known here must be zero. The first field of both is the size.
 */
static bool take_options(const void *given, void *known, size_t known_size)
{
	size_t size;

	memset(known, 0, known_size);
	if (!given)
		return true;
	memcpy(&size, given, sizeof size);
	if (size < sizeof size)
		return false;
	const unsigned char *bytes = given;
	for (size_t i = known_size; i < size; i++)
		if (bytes[i] != 0)
			return false;
	memcpy(known, given, size < known_size ? size : known_size);
	return true;
}

/* A report to fill, or NULL with the error. */
static struct rp_report *begin_report(const char *command, struct error *e)
{
	struct rp_report *r = calloc(1, sizeof *r);

	if (!r) {
		fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for a report");
		return NULL;
	}
	report_init(&r->report, command);
	strbuf_init(&r->json, JSON_BYTES_MAX);
	return r;
}

/* Hand out the report or the error, whichever it came to. */
static int end_report(struct rp_report *r, int status, struct rp_report **report, char *error,
	size_t error_size, struct error *e)
{
	if (status == RP_OK)
		report_render_json(&r->report, &r->json);
	if (status == RP_OK && r->json.failed)
		status = fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for the report as JSON");
	if (status < 0) {
		rp_report_free(r);
		r = NULL;
	}
	if (error && error_size > 0)
		snprintf(error, error_size, "%s", status < 0 ? e->text : "");
	*report = r;
	return status;
}

static struct verify_options verify_options_of(const struct rp_verify_options *known)
{
	struct verify_options o = verify_defaults();

	o.against = known->against;
	o.env = known->env;
	o.with = known->with;
	while (known->with && known->with[o.with_count])
		o.with_count++;
	o.quick = known->quick != 0;
	o.threads = (unsigned)known->threads;
	o.run = known->run;
	o.max_seconds = known->max_seconds > 0 ? known->max_seconds : -1;
	if (known->rng_search)
		o.limits.rng_search = known->rng_search;
	if (known->memory_limit)
		o.limits.memory = known->memory_limit;
	return o;
}

int rp_verify(const char *path, const struct rp_verify_options *options, struct rp_report **report,
	char *error, size_t error_size)
{
	struct rp_verify_options known;
	struct error e = ERROR_INIT;
	struct rp_report *r = NULL;
	int saved_errno = errno, status = RP_OK;

	if (!report)
		return RP_E_ARGUMENT;
	if (!path || !take_options(options, &known, sizeof known) || known.threads < 0 ||
		known.max_seconds < 0)
		status = fail(&e, RP_E_ARGUMENT, ERROR_NO_OFFSET,
			"no path, or options of an unknown release");
	if (status == RP_OK && !(r = begin_report("verify", &e)))
		status = e.status;
	if (status == RP_OK) {
		struct verify_options o = verify_options_of(&known);
		status = verify_path(&r->report, path, &o, &e);
	}
	status = end_report(r, status, report, error, error_size, &e);
	errno = saved_errno;
	return status;
}

/* What the user tells of resumes, as an array of our own; NULL with the error. */
static struct lineage_told *told_of(const struct rp_audit_options *known, struct error *e)
{
	struct lineage_told *told = calloc(known->resumes + 1, sizeof *told);

	if (!told)
		fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for %zu resumes", known->resumes);
	for (size_t i = 0; told && i < known->resumes; i++)
		told[i] = (struct lineage_told){known->resumed[2 * i], known->resumed[2 * i + 1]};
	return told;
}

int rp_audit(const char *const *paths, size_t count, const struct rp_audit_options *options,
	struct rp_report **report, char *error, size_t error_size)
{
	struct rp_audit_options known;
	struct error e = ERROR_INIT;
	struct rp_report *r = NULL;
	struct lineage_told *told = NULL;
	int saved_errno = errno, status = RP_OK;

	if (!report)
		return RP_E_ARGUMENT;
	if (!paths || count == 0 || !take_options(options, &known, sizeof known) ||
		known.threads < 0 || (known.resumes > 0 && !known.resumed))
		status = fail(&e, RP_E_ARGUMENT, ERROR_NO_OFFSET,
			"no path, or options of an unknown release");
	for (size_t i = 0; status == RP_OK && i < count; i++)
		if (!paths[i])
			status = fail(&e, RP_E_ARGUMENT, ERROR_NO_OFFSET, "path %zu is none", i);
	if (status == RP_OK && (!(told = told_of(&known, &e)) || !(r = begin_report("audit", &e))))
		status = e.status;
	if (status == RP_OK) {
		struct audit_options o = {
			.common = verify_defaults(), .told = told, .told_count = known.resumes};
		o.common.threads = (unsigned)known.threads;
		if (known.memory_limit)
			o.common.limits.memory = known.memory_limit;
		status = audit_paths(&r->report, paths, count, &o, &e);
	}
	free(told);
	status = end_report(r, status, report, error, error_size, &e);
	errno = saved_errno;
	return status;
}

const char *rp_report_verdict(const struct rp_report *report)
{
	return report_word(&report->report);
}

const char *rp_report_evidence(const struct rp_report *report)
{
	return report->report.evidence ? report->report.evidence : "";
}

int rp_report_exit(const struct rp_report *report)
{
	return report->report.exit;
}

size_t rp_report_findings(const struct rp_report *report)
{
	size_t count = 0;

	for (int i = 0; i < FINDING_COUNT; i++)
		count += report->report.findings.of_code[i];
	return count;
}

const char *rp_report_json(const struct rp_report *report)
{
	return strbuf_text(&report->json);
}

void rp_report_free(struct rp_report *report)
{
	if (!report)
		return;
	report_release(&report->report);
	strbuf_release(&report->json);
	free(report);
}
