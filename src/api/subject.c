/* SPDX-License-Identifier: MIT */
#include "api/subject.h"

#include "report/report.h"
#include "state/file_digests.h"

int subject_open(struct subject *s, const char *path, const struct limits *limits, struct error *e)
{
	*s = (struct subject){0};
	state_init(&s->state, limits);
	int status = listing_open(&s->listing, path, (unsigned)limits->dir_depth, limits, e);
	if (status < 0)
		return status;
	return candidates_find(&s->candidates, &s->listing, e);
}

const struct listing *subject_listing(const struct subject *s, const struct candidate *c)
{
	return c->kept ? &s->kept : &s->listing;
}

int subject_read(struct subject *s, const struct candidate *which, const struct limits *limits,
	struct findings *sink, struct error *e)
{
	if (s->chosen) {
		state_release(&s->state);
		state_init(&s->state, limits);
	}
	s->chosen = which;
	return checkpoint_load(&s->state, which, subject_listing(s, which), limits, sink, e);
}

int subject_open_one(struct subject *s, const char *path, const struct limits *limits,
	struct findings *sink, struct error *e)
{
	int status = subject_open(s, path, limits, e);

	if (status < 0)
		return status;
	if (s->candidates.list.count > 1)
		return fail(e, RP_E_ARGUMENT, ERROR_NO_OFFSET,
			"holds %zu checkpoints; name one of them, such as %s",
			s->candidates.list.count,
			s->candidates.list.items[s->candidates.list.count - 1].path);
	return subject_read(s, &s->candidates.list.items[0], limits, sink, e);
}

int subject_read_bytes(struct subject *s, unsigned threads, const struct deadline *deadline,
	struct byte_totals *totals, bool *known, struct error *e)
{
	*known = !s->state.snapshot || s->state.bytes_read;
	if (!s->state.snapshot)
		return bytes_read(&s->state, s->listing.dirfd, s->chosen->base, team_size(threads),
			deadline, totals, e);
	bytes_recount(&s->state, totals);
	return RP_OK;
}

const char *subject_unreadable(
	struct report *r, const struct state *s, const struct byte_totals *totals)
{
	for (size_t i = 0; i < s->files.count; i++) {
		const struct state_file *f = &s->files.items[i];
		if (f->status != FILE_BROKEN || f->error_status == RP_E_FORMAT)
			continue;
		/* In a folder of a script's own, a file in a foreign format need not be part of the
		 * checkpoint. */
		if (f->error_status == RP_E_UNSUPPORTED && !s->single && !s->profile->parts)
			continue;
		return report_text(r, "%s could not be read: %s", f->path, f->error);
	}
	if (totals && totals->unreadable > 0)
		return report_text(r,
			"the bytes of %llu of %llu storages could not be read, or changed meanwhile",
			(unsigned long long)totals->unreadable,
			(unsigned long long)totals->storages_all);
	return NULL;
}

int subject_digest_files(struct subject *s, struct error *e)
{
	if (s->state.snapshot)
		return RP_OK;
	return file_digests(&s->state, s->listing.dirfd, s->chosen->base, e);
}

struct state_place subject_place(const struct subject *s)
{
	return (struct state_place){.state = &s->state,
		.dirfd = s->state.snapshot ? -1 : s->listing.dirfd,
		.prefix = s->chosen->base};
}

void subject_close(struct subject *s)
{
	state_release(&s->state);
	candidates_release(&s->candidates);
	listing_close(&s->listing);
	listing_close(&s->kept);
}
