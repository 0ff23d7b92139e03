/* SPDX-License-Identifier: MIT */
/*
 * reprise-record: write down which samples each step consumed, from inside a training process.
 *
 * One call per step, with arrays. The recorder never takes training down: a full disk, a folder
 * that cannot be written, a wrong call, a call from a forked worker are counted, said in the log
 * itself (a gap) and reported at close; no call aborts, prints, or raises a signal. What a call
 * acknowledged (RP_RECORD_OK) survives SIGKILL of the process; what rp_record_sync or
 * rp_record_checkpoint acknowledged survives the loss of the machine.
 *
 * Link with -lreprise-record, which needs libc alone. All functions may be called from any thread,
 * but not from a signal handler that interrupts one of them, and not once rp_recorder_close began.
 *
 * Structs begin with their size, which the caller's header knows: a program and a library of
 * different versions work together. What the program has not heard of is as the init functions set
 * it; what the library has not heard of must be zero, and is a wrong call otherwise.
 */
#ifndef REPRISE_RECORD_H
#define REPRISE_RECORD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define RP_RECORD_API __attribute__((visibility("default")))
#else
#define RP_RECORD_API
#endif

/* What a call came to. Training goes on whatever it is. */
enum rp_record_status {
	RP_RECORD_OK = 0,
	RP_RECORD_ARGUMENT = -1, /* the call makes no sense: nothing was recorded, it is counted; of
				    a step with a number, the log has a gap */
	RP_RECORD_LOST =
		-2, /* could not be written: it is counted and will be in the log as a gap */
	RP_RECORD_FORKED = -3, /* called in a forked child: ignored and counted */
	RP_RECORD_CLOSED = -4, /* no recorder, or it is closed */
};

struct rp_recorder;

/* What the keys of samples are. */
enum rp_record_keys {
	RP_RECORD_IDS = 0,  /* the user's integer ids */
	RP_RECORD_TEXT = 1, /* rp_record_hash of string ids */
	RP_RECORD_CONTENT =
		2, /* rp_record_hash of the samples' content, before augmentation and padding */
};

/* A data set of the mixture. This struct never grows: more would be arrays of their own. */
struct rp_record_source {
	const char *name;
	uint64_t size; /* samples; 0: not known */
	double weight; /* target share; 0: not said */
	double epochs; /* how often each sample is meant to be seen; 0: not said */
};

/*
 * Who records, and what. Begin with rp_record_options_init(&options, sizeof options). Texts are
 * copied; configuration, versions and changes that are too long for the log (64 KiB of JSON with
 * all else) are left out, which counts as a wrong call.
 */
struct rp_record_options {
	size_t size;
	const char *folder; /* the run's folder for records; made where it is missing */
	const char *run;    /* the run's name, or NULL */
	const char
		*launch; /* what all ranks of this launch share; NULL: from the job's environment */
	const char *kind;  /* "train" (NULL), "rehearsal", "reference", "validation" */
	int64_t from_step; /* step of the checkpoint that is resumed from; 0: fresh; -1: not known
			    */
	const char *from_path;
	uint32_t dp, dp_size;      /* data-parallel rank, and their number (0 is taken as 1) */
	uint32_t rank, world_size; /* global ones (world_size 0: as dp_size) */
	uint32_t keys;             /* enum rp_record_keys */
	const char *dataset, *fingerprint, *unit,
		*order;        /* what a key means; see the sample log's format */
	const char *sampling;  /* "without" (NULL), "with", "stream" */
	uint64_t dataset_size; /* samples; 0: not known */
	double repeat; /* how often a sample is meant to be seen per epoch; 0 is taken as 1 */
	const struct rp_record_source *sources;
	size_t source_count; /* at most 65535 */
	int64_t seed;
	int has_seed;
	uint32_t global_batch, micro_batch, accumulation, workers, prefetch; /* 0: not known */
	int drop_last;                          /* 1 yes, 0 not known, -1 no */
	const char *code;                       /* what identifies the code: "git:ab12+dirty" */
	const char *versions, *config, *intent; /* JSON objects as text, or NULL */
};

/* What one data-parallel rank consumed in one step, or in a part of it: calls for one step add up.
 * Begin with rp_record_step_init(&step, sizeof step). */
struct rp_record_step {
	size_t size;   /* sizeof(struct rp_record_step) of the caller */
	int64_t step;  /* the update that takes the counter from step - 1 to step */
	int32_t epoch; /* -1: not known */

	size_t n;           /* samples */
	const int64_t *ids; /* n of them: ids, or hashes as 64 bits */
	const uint16_t
		*sources; /* index in the options' sources, n of them, or NULL: all of `source` */
	const uint32_t *tokens; /* n of them, or NULL */
	const float *losses;    /* n of them, or NULL */
	const uint32_t *micro;  /* samples of each micro-batch, or NULL: one */
	uint32_t micro_count;
	int32_t source;       /* -1: none */
	uint64_t step_tokens; /* tokens of the call where there are none per sample; 0: not known */
	int64_t position;     /* the loader's own position after the step, or -1 */
	double loss, lr, grad_norm; /* NAN: not known */
	uint32_t flags;             /* RP_RECORD_SKIPPED: the update was not applied (overflow) */
};

#define RP_RECORD_SKIPPED 1u

/* Set all members to what stands for not known, and `size`, which is sizeof(*step) or
 * sizeof(*options): no more bytes than these are written. Since 0.1.0. */
RP_RECORD_API void rp_record_step_init(struct rp_record_step *step, size_t size);
RP_RECORD_API void rp_record_options_init(struct rp_record_options *options, size_t size);

/*
 * Begin an attempt: a file of its own below the run's folder, with no other rank asked. Never NULL
 * unless memory is out: where the file cannot be made, the recorder counts what it loses and tries
 * again with later steps. Since 0.1.0.
 */
RP_RECORD_API struct rp_recorder *rp_recorder_open(const struct rp_record_options *options);

/* Record what a step consumed: 5 to 13 us for 1024 samples. Since 0.1.0. */
RP_RECORD_API int rp_record_step(struct rp_recorder *r, const struct rp_record_step *step);

/*
 * Say that steps first_step to last_step consumed samples that could not be recorded, so that the
 * log does not pass for whole: so many of them (0: not known), and why (NULL, or up to 159 bytes).
 * RP_RECORD_OK: it stands in the log. Since 0.1.0.
 */
RP_RECORD_API int rp_record_gap(struct rp_recorder *r, int64_t first_step, int64_t last_step,
	uint64_t samples, const char *reason);

/*
 * A checkpoint was saved after `step` (with the loader's position, or -1): the record of all steps
 * up to it is made to last first (fdatasync), so that no checkpoint is newer than its record.
 * `digest` may be NULL. Since 0.1.0.
 */
RP_RECORD_API int rp_record_checkpoint(struct rp_recorder *r, int64_t step, const char *path,
	int64_t position, const char *digest);

/* Anything else worth a line: `kind` is a word, `text` a JSON object or NULL. Since 0.1.0. */
RP_RECORD_API int rp_record_event(
	struct rp_recorder *r, const char *kind, int64_t step, const char *text);

/* Make all that was acknowledged last through the loss of the machine. Since 0.1.0. */
RP_RECORD_API int rp_record_sync(struct rp_recorder *r);

/* What was recorded and what was not. The caller sets `size` to its sizeof. */
struct rp_record_summary {
	size_t size;
	uint64_t steps, samples, bytes;    /* acknowledged */
	uint64_t lost_steps, lost_samples; /* calls that could not be written, and gaps */
	uint64_t wrong_calls, forked_calls;
	int first_errno;       /* of the first loss; 0: none */
	char path[4096];       /* the newest file; "" where none could be made */
	char first_error[240]; /* words for the first loss or wrong call; "" where none */
};

RP_RECORD_API void rp_recorder_summary(struct rp_recorder *r, struct rp_record_summary *summary);

/*
 * End the attempt with a reason ("finished", "preempted", …; NULL: finished), make it last, and
 * free the recorder. Fills `summary` where it is not NULL. Since 0.1.0.
 */
RP_RECORD_API int rp_recorder_close(
	struct rp_recorder *r, const char *reason, struct rp_record_summary *summary);

/* The key of a string id or of a sample's content: XXH3-64. Since 0.1.0. */
RP_RECORD_API uint64_t rp_record_hash(const void *data, size_t n);

/* The same for `n` items that lie end to end, item i from offsets[i] to offsets[i + 1]. Since
 * 0.1.0. */
RP_RECORD_API void rp_record_hash_many(
	const void *data, const uint64_t *offsets, size_t n, uint64_t *keys);

/* Seven characters or more that name the library's version. Since 0.1.0. */
RP_RECORD_API const char *rp_record_version(void);

#ifdef __cplusplus
}
#endif

#endif
