/* SPDX-License-Identifier: MIT */
#include "api/subject.h"

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
