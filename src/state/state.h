/* SPDX-License-Identifier: MIT */
/*
 * The resume state of one checkpoint as tables: files, facts, random streams, optimizers, tensors,
 * storages. Profiles fill it; rules, `show`, `compare` and reports only read it. It owns all its
 * text and keeps no file open, so that 10^4 shard files cost table rows, not descriptors or graphs.
 */
#ifndef STATE_STATE_H
#define STATE_STATE_H

#include "base/arena.h"
#include "base/array.h"
#include "base/sha256.h"
#include "base/strbuf.h"
#include "container/document.h"
#include "rng/rng.h"
#include "state/listing.h"
#include "value/tensor.h"

enum fact_key {
#define FACT(id, name, unit, flags, summary) FACT_##id,
#include "state/facts.def"
#undef FACT
	FACT_COUNT
};

struct fact_row {
	const char *id, *name, *unit;
	char flags; /* see facts.def */
	const char *summary;
};

extern const struct fact_row fact_rows[FACT_COUNT];

enum fact_type {
	FACT_INT,
	FACT_REAL,
	FACT_TEXT,
	FACT_BOOL,
};

/* How a fact is known. */
enum fact_how {
	HOW_READ,    /* it stands in a file */
	HOW_NAMED,   /* a file or folder name says so */
	HOW_DERIVED, /* computed from facts that were read */
	HOW_TOLD,    /* by the user, in a run file */
	HOW_ASSUMED, /* the framework's default */
};

#define NO_RANK (-1)
#define NO_GROUP (-1)
#define NO_FILE UINT32_MAX

struct fact {
	uint16_t key;  /* enum fact_key */
	uint8_t type;  /* enum fact_type */
	uint8_t how;   /* enum fact_how */
	int32_t rank;  /* NO_RANK: of the whole checkpoint */
	int32_t group; /* parameter group, or NO_GROUP */
	uint32_t file; /* index in files, or NO_FILE */
	union {
		int64_t i; /* INT, BOOL */
		double f;
		const char *text;
	};
	const char *path; /* inside the file, typed back by `get`; "" where there is none */
};

/* What a file is for, as its profile sees it. */
enum file_role {
	FILE_OTHER, /* not resume state: tokenizer, README, … */
	FILE_WEIGHTS,
	FILE_OPTIMIZER,
	FILE_SCHEDULER,
	FILE_SCALER,
	FILE_RNG,
	FILE_LOADER,   /* data loader or sampler state */
	FILE_COUNTERS, /* steps, epochs, log: trainer_state.json */
	FILE_CONFIG,
	FILE_INDEX,    /* which shard holds what */
	FILE_WHOLE,    /* everything in one */
	FILE_LEFTOVER, /* temporary file of an interrupted save */
	FILE_ROLE_COUNT
};

const char *file_role_name(enum file_role role);

enum file_status {
	FILE_LISTED, /* known by name only */
	FILE_READ,
	FILE_BROKEN, /* could not be read; see error */
};

struct state_file {
	const char *path; /* relative to the checkpoint's folder */
	uint64_t size;
	int64_t mtime_ns;
	int32_t rank; /* from the name, or NO_RANK */
	uint8_t role, status;
	const struct container *container; /* NULL until read */
	const char *error;                 /* of a broken file, with its status and offset */
	int error_status;
	uint64_t error_offset;
	bool digested;
	uint64_t digest[2]; /* XXH3-128 of the whole file, where digested: low word, high word */
};

/* One random number generator's state. Equal bodies are interned: compare the pointers. */
struct stream {
	int32_t rank;      /* NO_RANK where the checkpoint has one set for all */
	int32_t device;    /* index of the device, or -1 */
	const char *owner; /* "python", "numpy", "torch cpu", "cuda", or the key that names another
			      generator */
	const struct rng_state *body;
	uint32_t file;
	const char *path;
};

enum tensor_role {
	TENSOR_WEIGHT,
	TENSOR_BUFFER,    /* of the model, not trained */
	TENSOR_MOMENT1,   /* exp_avg, momentum_buffer */
	TENSOR_MOMENT2,   /* exp_avg_sq */
	TENSOR_OPTIMIZER, /* other optimizer state */
	TENSOR_EMA,
	TENSOR_RNG,
	TENSOR_OTHER,
};

struct state_storage {
	uint32_t file;
	uint64_t offset, length; /* in the file; offset UINT64_MAX: bytes stood inline */
	uint32_t crc;            /* as stored */
	bool crc_known, big_endian;
	bool read;          /* all that its tensors and its checksum need was read */
	uint32_t crc_found; /* CRC-32 of the bytes, where both are true */
};

struct state_tensor {
	const char *name; /* as the framework calls it: "layers.0.weight", "state[3].exp_avg" */
	const int64_t *shape;
	const int64_t *stride;  /* in elements; NULL: they lie in C order without gaps */
	uint32_t file, storage; /* storage: index in storages, or NO_FILE for meta tensors */
	uint64_t first, numel;
	int32_t rank;
	uint8_t ndim, dtype, role;
	bool whole; /* covers its storage exactly, so that the storage's checksum is its own */
	bool lazy;  /* its elements are the negatives or conjugates of those that are stored */
};

/*
 * What one pass over a tensor's elements told. The canonical bytes are its elements in C order,
 * little-endian and packed, so that digests are the same however a framework stored the tensor.
 * `digest` is XXH3-128 of them up to LEAF_BYTES; above, XXH3-128 over the digests of its leaves,
 * each as two little-endian words, low word first. Statistics count elements and are taken over
 * finite ones; min, max, mean and rms are NaN where there are none.
 */
struct tensor_summary {
	uint64_t digest[2];  /* low word, high word */
	uint64_t first_leaf; /* index in leaves */
	uint32_t leaves;     /* 0 where the tensor is no larger than one */
	bool known;          /* digest and leaves hold */
	bool valued;         /* so does what follows: its elements are real numbers */
	double min, max, mean, rms;
	uint64_t zeros, nans;
	uint64_t infinities;          /* of either sign */
	uint64_t negative_infinities; /* of those */
	uint64_t denormals;           /* subnormal ones, not zero */
};

#define LEAF_BYTES ((uint64_t)1 << 20)

/* XXH3-128 of LEAF_BYTES canonical bytes of a tensor, or of what is left in its last leaf. */
struct leaf_digest {
	uint64_t digest[2]; /* low word, high word */
};

/*
 * The same by SHA-256, where that was asked for: of the canonical bytes of a tensor, or, where it
 * has leaves, of the digests of its leaves one after the other. XXH3 finds accidents; this one
 * holds against whoever wants another tensor to have the digest.
 */
struct strong_digest {
	uint8_t bytes[SHA256_BYTES];
};

/* One parameter's entry in an optimizer's state. */
struct opt_param {
	int64_t id;                       /* key in `state`: index of the parameter */
	int32_t group;                    /* or NO_GROUP */
	bool has_step, has_moments, cold; /* cold: every moment is zero, as far as was looked */
	double step;
	uint32_t moment1, moment2; /* tensor indices, or NO_FILE */
};

struct optimizer {
	const char *name; /* "AdamW", "Adam", "SGD", "" unknown: from its keys */
	bool adam;        /* keeps exp_avg and exp_avg_sq */
	uint32_t file;
	int32_t rank;
	const char *path;
	uint64_t listed;                /* parameters that its groups list */
	ARRAY(struct opt_param) params; /* those with state */
};

/* What an index promises: a tensor in a file. */
struct placement {
	const char *tensor, *file; /* file: relative to the index's own folder */
	uint32_t index;            /* the index file that says so */
};

/* A point of the log that the checkpoint carries: the loss that was logged at a step. */
struct log_point {
	int64_t step;
	double value;
};

struct profile;

struct state {
	struct arena arena;
	const char *path;   /* the checkpoint as a person would name it */
	const char *folder; /* that its files' paths are relative to, where that is not `path` */
	const struct profile *profile;
	const char *kind; /* the profile's name */
	ARRAY(struct state_file) files;
	ARRAY(struct fact) facts;
	size_t facts_sorted; /* as many as that were sorted; all of them after state_finish() */
	ARRAY(struct stream) streams;
	ARRAY(struct optimizer) optimizers;
	ARRAY(struct state_tensor) tensors;
	ARRAY(struct state_storage) storages;
	ARRAY(struct tensor_summary) summaries; /* of each tensor; empty where no bytes were read */
	ARRAY(struct leaf_digest) leaves;       /* of the tensors larger than one, in their order */
	ARRAY(struct strong_digest) strong;     /* of each tensor; empty where not wanted */
	ARRAY(struct strong_digest) strong_leaves; /* of each leaf, likewise */
	ARRAY(struct rng_state *) bodies;
	ARRAY(struct placement) placements;
	ARRAY(struct log_point) log; /* by step, as found in the checkpoint itself */
	ARRAY(struct cover) taken;   /* of a snapshot: what was looked at when it was taken */
	const char *snapshot; /* the snapshot that it was read from, so that none of its files
				 is there to be read; or NULL */
	bool wants_strong;    /* when its bytes are read, SHA-256 is taken too */
	bool bytes_read;      /* storages and summaries say what is in the bytes */
	bool on_cuda;         /* weights were saved from a GPU */
	int32_t rank_folders; /* folders of ranks that its files should lie in; or 0 */
	int32_t world;    /* ranks that the checkpoint itself shows to have existed; 0: not known */
	int64_t mtime_ns; /* newest of its files */
	bool single;      /* path is the one file itself, not its folder */
	bool no_memory;   /* a table could not grow: the state is incomplete */
};

void state_init(struct state *s, const struct limits *limits);
void state_release(struct state *s);

/* A copy of text in the state's arena; "" when memory ran out (s->no_memory is set). */
const char *state_text(struct state *s, struct slice text);
const char *state_printf(struct state *s, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Where a fact comes from. */
struct origin {
	uint32_t file;
	const char *path; /* copied */
	int32_t rank;
	enum fact_how how;
};

void state_add_int(
	struct state *s, enum fact_key key, int32_t group, int64_t value, struct origin from);
void state_add_real(
	struct state *s, enum fact_key key, int32_t group, double value, struct origin from);
void state_add_text(
	struct state *s, enum fact_key key, int32_t group, struct slice value, struct origin from);
void state_add_bool(
	struct state *s, enum fact_key key, int32_t group, bool value, struct origin from);

/* Add an integer, float, text or bool as what it is; other kinds are ignored (false). */
bool state_add_value(
	struct state *s, enum fact_key key, int32_t group, struct val v, struct origin from);

/* Add a stream; an equal body is stored once. */
void state_add_stream(struct state *s, const struct rng_state *body, const char *owner,
	int32_t device, struct origin from);

/* The order of streams by rank, owner and device. */
int stream_kind_compare(const struct stream *a, const struct stream *b);

/*
 * Sort facts by (key, rank, group, path) and streams by (rank, owner, device, path), once all are
 * in. What was not found in the checkpoint (told, assumed) stands behind what was, whatever its
 * rank.
 */
void state_finish(struct state *s);

/* The first fact under a key, in sorted order, or NULL. O(log n) where they are sorted. */
const struct fact *state_fact(const struct state *s, enum fact_key key);
const struct fact *state_group_fact(const struct state *s, enum fact_key key, int32_t group);

/* Its value; false where there is none or it is of another type (an integral REAL counts as INT).
 */
bool state_int(const struct state *s, enum fact_key key, int64_t *out);
bool state_real(const struct state *s, enum fact_key key, double *out);
bool state_bool(const struct state *s, enum fact_key key, bool *out);
const char *state_fact_text(const struct state *s, enum fact_key key);

/* How many ranks there were, as far as is known: seen in the checkpoint, saved as a number, or
 * told; 0: not known. */
int32_t state_world(const struct state *s);

/* Whether a step's name leaves open that it starts again with each epoch: "step", "iteration", not
 * "global_step". */
bool state_step_in_epoch(const struct fact *f);

/* The last name of a path inside a file: "step" of "trainer.step". */
const char *path_last_name(const char *path);

/*
 * The fact of `s` that stands for `of`, a fact of `owner`, or NULL: under the same key, rank, group
 * and path, in the file of the same name. Another file is taken only where `s` has none of that
 * name, since names may tell the step: of two optimizers each has a file with the same paths.
 */
const struct fact *state_same_fact(
	const struct state *s, const struct state *owner, const struct fact *of);

/* A setting of one of an optimizer's parameter groups, or NULL. */
const struct fact *optimizer_group_fact(const struct state *s, const struct optimizer *o,
	enum fact_key key, int32_t group);

bool fact_to_double(const struct fact *f, double *out);
bool fact_equal(const struct fact *a, const struct fact *b);

/* Append a fact's value as people read it. */
void fact_print(struct strbuf *b, const struct fact *f);

/* The path of a fact's, stream's or tensor's file relative to the checkpoint; "" for NO_FILE. */
const char *state_file_path(const struct state *s, uint32_t file);

/* The whole path of a file: the checkpoint's folder and the file's own path. */
const char *state_whole_path(struct state *s, uint32_t file);

#endif
