/* SPDX-License-Identifier: MIT */
/*
 * The state of a random number generator as checkpoints hold it: decoded, checked and comparable.
 *
 * A state is a plain value without pointers. What no generator of the claimed kind can have (a
 * position past the block, words that are all zero, …) does not decode: the call fails with
 * RP_E_FORMAT, one clause that says what is wrong, and an empty `*out`.
 */
#ifndef RNG_RNG_H
#define RNG_RNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "rng/mt19937.h"
#include "rng/pcg64.h"

enum rng_algo {
	RNG_NONE,
	RNG_MT19937,
	RNG_PHILOX,    /* (seed, offset) */
	RNG_PCG64,     /* both kinds */
	RNG_SEED_ONLY, /* a number, nothing else: torch_xla, stateless shufflers */
	RNG_OPAQUE,    /* not understood: equal or not is all that can be said */
};

/*
 * Who wrote the state, hence what its seed and position mean. Only states of one layout are
 * compared.
 */
enum rng_layout {
	RNG_LAYOUT_NONE,
	RNG_LAYOUT_PYTHON, /* random.getstate() */
	RNG_LAYOUT_NUMPY,  /* numpy.random.get_state(), numpy's MT19937 bit generator */
	RNG_LAYOUT_NUMPY_PCG64,
	RNG_LAYOUT_NUMPY_PCG64DXSM,
	RNG_LAYOUT_TORCH_CPU,  /* 5056 bytes; 5048 before torch 1.2 */
	RNG_LAYOUT_TORCH_CUDA, /* 16 bytes; 816 in torch 1.2 to 2.0, 824016 before */
	RNG_LAYOUT_TORCH_MPS,  /* 44 bytes; 36 before the offset was saved */
	RNG_LAYOUT_SEED,
	RNG_LAYOUT_OPAQUE,
};

/* Values that a generator has drawn and not handed out yet. They are part of an exact resume. */
enum rng_kept {
	RNG_KEPT_NORMAL = 1, /* python gauss_next, numpy has_gauss, torch normal_is_valid */
	RNG_KEPT_FLOAT = 2,  /* torch next_float_normal_sample: a float */
	RNG_KEPT_HALF = 4,   /* numpy has_uint32: the other half of a 64-bit draw */
};

struct rng_state {
	uint8_t algo, layout; /* enum rng_algo, enum rng_layout */
	uint8_t kept;         /* set of enum rng_kept */
	bool has_seed;        /* the state itself holds its seed */
	bool has_offset;      /* Philox: `offset` is known, else philox_block stands for it */
	uint32_t size;        /* bytes of the serialised form (torch: differs by version), or 0 */
	uint32_t kept_word;   /* bits of the kept float or half */
	uint64_t kept_normal; /* bits of the kept double */
	uint64_t seed;
	uint64_t offset; /* Philox: 32-bit words drawn since seeding */
	uint64_t body;   /* digest of the words or the opaque bytes, within one process */
	uint64_t digest; /* of everything, likewise */
	union {
		struct mt19937 mt;
		struct pcg64 pcg;
		uint32_t philox_block[4]; /* the last block drawn (MPS without an offset) */
	};
};

/* torch.get_rng_state(): 5056 bytes, or 5048. */
int rng_decode_torch_cpu(const uint8_t *bytes, size_t n, struct rng_state *out, struct error *e);

/* torch.cuda.get_rng_state(): 16, 816, 824016 or 8 bytes. */
int rng_decode_torch_cuda(const uint8_t *bytes, size_t n, struct rng_state *out, struct error *e);

/* torch.mps.get_rng_state(): 36 or 44 bytes. */
int rng_decode_torch_mps(const uint8_t *bytes, size_t n, struct rng_state *out, struct error *e);

/*
 * 624 words and a position, as RNG_LAYOUT_PYTHON or RNG_LAYOUT_NUMPY. `normal` is the second value
 * of a pair of normals, where one is kept.
 */
int rng_decode_words(enum rng_layout layout, const uint32_t words[MT19937_WORDS], uint64_t pos,
	bool has_normal, double normal, struct rng_state *out, struct error *e);

/*
 * RNG_LAYOUT_NUMPY_PCG64 or RNG_LAYOUT_NUMPY_PCG64DXSM. The 128-bit numbers come with the high half
 * first; `half` is numpy's `uinteger`, where `has_uint32` says that one is kept.
 */
int rng_decode_pcg64(enum rng_layout layout, const uint64_t state[2], const uint64_t inc[2],
	bool has_half, uint32_t half, struct rng_state *out, struct error *e);

/* A generator that is a seed and nothing else. */
void rng_decode_seed(uint64_t seed, struct rng_state *out);

/* Any other state: it can be told equal or different. `bytes` must be a canonical form of it. */
void rng_decode_opaque(const void *bytes, size_t n, struct rng_state *out);

/*
 * Check a state that was filled in member by member, as a decoder would have checked it, and
 * complete it: what follows from its members is set anew. Of RNG_OPAQUE, `body` is a member.
 */
int rng_restore(struct rng_state *s, struct error *e);

/* Whether two states are the same in everything: layout, seed, position, kept values. */
bool rng_equal(const struct rng_state *a, const struct rng_state *b);

/* Short stable names: "mt19937", "philox4x32-10", …; "python", "torch-cpu", … */
const char *rng_algo_name(enum rng_algo algo);
const char *rng_layout_name(enum rng_layout layout);

/*
 * What draws of this generator are counted in, in the plural: "32-bit words" for MT19937 and
 * Philox, "64-bit words" for PCG64.
 */
const char *rng_unit(enum rng_algo algo);

#endif
