/* SPDX-License-Identifier: MIT */
/* The public library over the functions that the tool uses. */
#include <reprise.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/verify.h"

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
 * fields past what is known here must be zero.
 */
static bool take_options(const struct rp_verify_options *given, struct rp_verify_options *known)
{
	*known = (struct rp_verify_options){.size = sizeof *known};
	if (!given)
		return true;
	if (given->size < sizeof given->size)
		return false;
	const unsigned char *bytes = (const unsigned char *)given;
	for (size_t i = sizeof *known; i < given->size; i++)
		if (bytes[i] != 0)
			return false;
	memcpy(known, given, given->size < sizeof *known ? given->size : sizeof *known);
	return known->threads >= 0 && known->max_seconds >= 0;
}

int rp_verify(const char *path, const struct rp_verify_options *options, struct rp_report **report,
	char *error, size_t error_size)
{
	struct rp_verify_options known;
	struct error e = ERROR_INIT;
	int saved_errno = errno, status = RP_OK;
	struct rp_report *r = NULL;

	if (!report)
		return RP_E_ARGUMENT;
	*report = NULL;
	if (!path || !take_options(options, &known))
		status = fail(&e, RP_E_ARGUMENT, ERROR_NO_OFFSET,
			"no path, or options of an unknown release");
	if (status == RP_OK && !(r = calloc(1, sizeof *r)))
		status = fail(&e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for a report");
	if (status == RP_OK) {
		struct verify_options o = verify_defaults();
		o.against = known.against;
		o.env = known.env;
		o.with = known.with;
		while (known.with && known.with[o.with_count])
			o.with_count++;
		o.quick = known.quick != 0;
		o.threads = (unsigned)known.threads;
		o.run = known.run;
		o.max_seconds = known.max_seconds > 0 ? known.max_seconds : -1;
		if (known.rng_search)
			o.limits.rng_search = known.rng_search;
		if (known.memory_limit)
			o.limits.memory = known.memory_limit;
		report_init(&r->report, "verify");
		strbuf_init(&r->json, JSON_BYTES_MAX);
		status = verify_path(&r->report, path, &o, &e);
		if (status == RP_OK)
			report_render_json(&r->report, &r->json);
		if (status == RP_OK && r->json.failed)
			status = fail(&e, RP_E_MEMORY, ERROR_NO_OFFSET,
				"no memory for the report as JSON");
	}
	if (status < 0) {
		rp_report_free(r);
		r = NULL;
	}
	if (error && error_size > 0)
		snprintf(error, error_size, "%s", status < 0 ? e.text : "");
	*report = r;
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
