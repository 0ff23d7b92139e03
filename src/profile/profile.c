/* SPDX-License-Identifier: MIT */
/* The table of profiles, and reading a checkpoint's files one after the other into its state. */
#include "profile/profile.h"

#include <stdlib.h>

#include "profile/collect.h"
#include "state/snapshot.h"

#define ROWS_MAX ((size_t)1 << 28)
#define WALK_BUDGET 20000000u
#define PATH_MAX_BYTES 4096u

#define PROFILE(id) extern const struct profile profile_##id;
#include "profile/profiles.def"
#undef PROFILE

const struct profile *const profiles[] = {
#define PROFILE(id) &profile_##id,
#include "profile/profiles.def"
#undef PROFILE
	NULL,
};

unsigned profile_bits(
	const struct candidate *c, const struct listing *l, const struct profile **best)
{
	unsigned most = 0;

	*best = NULL;
	for (size_t i = 0; profiles[i]; i++) {
		unsigned bits = profiles[i]->recognise(c, l);
		if (bits > most) {
			most = bits;
			*best = profiles[i];
		}
	}
	return most;
}

/* A file that could not be decoded: it stays in the table, so that rules can say what is missing.
 */
static void mark_broken(struct state *s, struct state_file *f, const struct error *e)
{
	f->status = FILE_BROKEN;
	f->error = state_text(s, slice_of(e->text));
	f->error_status = e->status;
	f->error_offset = e->offset;
}

/* What each file is for, as this profile sees it. A file that was named is opened whatever it is
 * called. */
static void take_profile(struct state *s, const struct profile *profile, bool named)
{
	s->profile = profile;
	s->kind = profile->name;
	for (size_t i = 0; i < s->files.count; i++) {
		struct state_file *f = &s->files.items[i];
		int32_t rank = NO_RANK;
		f->role = (uint8_t)profile->classify(f->path, &rank);
		f->rank = rank;
		if (named && f->role == FILE_OTHER)
			f->role = FILE_WHOLE;
	}
}

/* Names that any script could have given: what is in the first file decides. */
static void recognise_content(struct state *s, const struct document *d, bool named)
{
	const struct profile *best = NULL;
	unsigned most = 0;

	for (size_t i = 0; profiles[i]; i++) {
		unsigned bits = profiles[i]->recognise_tree ? profiles[i]->recognise_tree(d) : 0;
		if (bits > most) {
			most = bits;
			best = profiles[i];
		}
	}
	if (best)
		take_profile(s, best, named);
}

static void read_file(struct collector *c, const struct listing *l, const struct listed *listed,
	uint32_t index, bool first)
{
	struct state *s = c->state;
	struct state_file *f = &s->files.items[index];
	const char *name = state_whole_path(s, index);
	struct document doc;
	struct error e = ERROR_INIT;

	if (!listed->regular) {
		fail(&e, RP_E_UNSUPPORTED, ERROR_NO_OFFSET, "not a regular file");
		mark_broken(s, f, &e);
		return;
	}
	if (document_open(&doc, l->dirfd, listed->path, name, c->limits, c->sink, &e) < 0) {
		mark_broken(s, f, &e);
		return;
	}
	f->container = doc.container;
	f->status = FILE_READ;
	if (first && s->profile->fallback)
		recognise_content(s, &doc, l->single);
	c->doc = &doc;
	c->file = index;
	c->rank = f->rank;
	c->budget = WALK_BUDGET;
	c->storages.count = 0;
	strbuf_clear(&c->path);
	s->profile->read(c, (enum file_role)f->role);
	c->doc = NULL;
	/* What could not be read of it looks as if it were not there. */
	if (doc.trouble->status < 0)
		mark_broken(s, f, doc.trouble);
	document_close(&doc);
}

/* The state from a snapshot: its profile is known by name. */
static int load_snapshot(struct state *s, const struct candidate *candidate,
	const struct listing *l, const struct limits *limits, struct findings *sink,
	struct error *e)
{
	int status = snapshot_read(s, l->dirfd, l->files.items[candidate->files[0]].path,
		candidate->path, limits, sink, e);

	for (size_t i = 0; status == RP_OK && profiles[i] && !s->profile; i++)
		if (strcmp(profiles[i]->name, s->kind) == 0)
			s->profile = profiles[i];
	if (status == RP_OK && !s->profile)
		return fail(e, RP_E_UNSUPPORTED, ERROR_NO_OFFSET,
			"it was taken of a checkpoint of %.60s, which this reprise does not know",
			s->kind);
	return status;
}

/* A row for each of the checkpoint's files, before any is read. */
static int list_files(struct state *s, const struct candidate *candidate, const struct listing *l,
	struct error *e)
{
	for (size_t i = 0; i < candidate->file_count; i++) {
		const struct listed *listed = &l->files.items[candidate->files[i]];
		struct state_file *f = array_push(&s->files, ROWS_MAX);
		if (!f)
			return fail(
				e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for a table of files");
		const char *member = candidate_member(candidate, listed);
		*f = (struct state_file){
			.path = state_text(s, slice_of(member)),
			.size = listed->size,
			.mtime_ns = listed->mtime_ns,
			.error_offset = ERROR_NO_OFFSET,
		};
	}
	return RP_OK;
}

/* Read all files that are resume state. An error where none could be, and where some were not for
 * want of time: what was not read would look as if it were missing. */
static int read_files(struct collector *c, const struct candidate *candidate,
	const struct listing *l, struct error *e)
{
	struct state *s = c->state;
	const struct state_file *failed = NULL;
	size_t wanted = 0, read = 0;

	for (uint32_t i = 0; i < s->files.count; i++) {
		const struct state_file *f = &s->files.items[i];
		if (f->role == FILE_OTHER || f->role == FILE_LEFTOVER)
			continue;
		wanted++;
		if (deadline_passed(c->limits->deadline))
			return fail(e, RP_E_LIMIT, ERROR_NO_OFFSET,
				"time ran out (--max-seconds) when %zu of its files had been read",
				read);
		read_file(c, l, &l->files.items[candidate->files[i]], i, read == 0);
		if (f->status == FILE_READ)
			read++;
		else if (!failed)
			failed = f;
	}
	if (s->no_memory || c->path.no_memory)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET,
			"no memory, or the limit of it, while reading it");
	if (wanted == 0)
		return fail(e, RP_E_NOT_FOUND, ERROR_NO_OFFSET,
			"none of its %zu files is one that reprise reads", candidate->file_count);
	if (read == 0)
		return fail(e, failed->error_status, failed->error_offset, "%s", failed->error);
	return RP_OK;
}

/* What is known once all files are in. */
static int conclude(struct collector *c, const struct candidate *candidate, struct error *e)
{
	struct state *s = c->state;
	/* What is in the files may have told another than their names. */
	const struct profile *profile = s->profile;

	c->file = NO_FILE;
	c->rank = NO_RANK;
	strbuf_clear(&c->path);
	if (candidate->step >= 0 && (!profile->names_step || profile->names_step(candidate->name)))
		state_add_int(s, FACT_NAME_STEP, NO_GROUP, candidate->step,
			(struct origin){.file = NO_FILE, .rank = NO_RANK, .how = HOW_NAMED});
	if (profile->finish)
		profile->finish(c);
	if (s->world < s->rank_folders)
		s->world = s->rank_folders;
	state_finish(s);
	if (s->no_memory)
		return fail(e, RP_E_MEMORY, ERROR_NO_OFFSET,
			"the memory limit was reached while reading it");
	return RP_OK;
}

int checkpoint_load(struct state *s, const struct candidate *candidate, const struct listing *l,
	const struct limits *limits, struct findings *sink, struct error *e)
{
	if (candidate->snapshot)
		return load_snapshot(s, candidate, l, limits, sink, e);
	if (!candidate->profile)
		return fail(e, RP_E_NOT_FOUND, ERROR_NO_OFFSET,
			"no file of a format that reprise reads");
	s->path = state_text(s, slice_of(candidate->path));
	/* Of what lies in folders of ranks, one file is a part. */
	s->single = l->single || (candidate->file_count == 1 && candidate->ranks == 0);
	s->folder = state_text(s, slice_of(candidate->holder));
	s->rank_folders = (int32_t)candidate->ranks;
	s->mtime_ns = candidate->mtime_ns;
	int status = list_files(s, candidate, l, e);
	if (status < 0)
		return status;
	take_profile(s, candidate->profile, l->single);
	struct collector c = {
		.state = s, .sink = sink, .limits = limits, .file = NO_FILE, .rank = NO_RANK};
	strbuf_init(&c.path, PATH_MAX_BYTES);
	status = read_files(&c, candidate, l, e);
	if (status == RP_OK)
		status = conclude(&c, candidate, e);
	strbuf_release(&c.path);
	array_release(&c.storages);
	return status;
}
