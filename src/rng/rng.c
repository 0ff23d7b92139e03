/* SPDX-License-Identifier: MIT */
#include "rng/rng.h"

#include <string.h>

#include <xxhash.h>

#include "base/cursor.h"

/* The layout of aten/src/ATen/CPUGeneratorImpl.cpp (CPUGeneratorImplState), little-endian. */
enum {
	CPU_SEED = 0,
	CPU_LEFT = 8,
	CPU_SEEDED = 12,
	CPU_NEXT = 16,
	CPU_WORDS = 24, /* 624 words in eight bytes each */
	CPU_NORMAL = 5024,
	CPU_HAS_NORMAL = 5040,
	CPU_OLD_SIZE = 5048, /* up to torch 1.1 the state ends here */
	CPU_FLOAT = 5048,
	CPU_HAS_FLOAT = 5052,
	CPU_SIZE = 5056,
};

/* aten/src/ATen/cuda/CUDAGeneratorImpl.cpp: seed and offset, behind filler in older versions. */
enum {
	CUDA_SEED_SIZE = 8,
	CUDA_SIZE = 16,
	CUDA_FILLED_SIZE = 800 + CUDA_SIZE,     /* 200 × 4 bytes of 0xff */
	CUDA_OLD_SIZE = 200 * 4120 + CUDA_SIZE, /* 200 curandStateMtgp32 */
};

/*
 * aten/src/ATen/mps/MPSGeneratorImpl.mm: seven words, the seed, and in newer versions the offset.
 */
enum {
	MPS_BLOCK = 4,
	MPS_KEY = 20,
	MPS_SEED = 28,
	MPS_OFFSET = 36,
	MPS_OLD_SIZE = 36,
	MPS_SIZE = 44,
};

static int bad(struct error *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int bad(struct error *e, const char *format, ...)
{
	char text[200];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	return fail(e, RP_E_FORMAT, ERROR_NO_OFFSET, "%s", text);
}

static struct rng_state *begin(struct rng_state *out, enum rng_algo algo, enum rng_layout layout)
{
	memset(out, 0, sizeof *out);
	out->algo = (uint8_t)algo;
	out->layout = (uint8_t)layout;
	return out;
}

/* Leave nothing behind that could be taken for a state, and pass the status on. */
static int reject(struct rng_state *out, int status)
{
	memset(out, 0, sizeof *out);
	return status;
}

static int finish(struct rng_state *out)
{
	if (out->algo == RNG_MT19937)
		out->body = XXH3_64bits(out->mt.s, sizeof out->mt.s);
	else if (out->algo == RNG_PHILOX && !out->has_offset)
		out->body = XXH3_64bits(out->philox_block, sizeof out->philox_block);

	bool pcg = out->algo == RNG_PCG64;
	const uint64_t whole[] = {
		(uint64_t)out->algo | (uint64_t)out->layout << 8 | (uint64_t)out->kept << 16 |
			(uint64_t)out->has_seed << 24 | (uint64_t)out->has_offset << 32,
		(uint64_t)out->size << 32 | out->kept_word,
		out->kept_normal,
		out->seed,
		out->offset,
		out->body,
		out->algo == RNG_MT19937 ? out->mt.pos : 0,
		pcg ? (uint64_t)out->pcg.state : 0,
		pcg ? (uint64_t)(out->pcg.state >> 64) : 0,
		pcg ? (uint64_t)out->pcg.inc : 0,
		pcg ? (uint64_t)(out->pcg.inc >> 64) : 0,
	};
	out->digest = XXH3_64bits(whole, sizeof whole);
	return RP_OK;
}

static void keep_normal(struct rng_state *out, double value)
{
	out->kept |= RNG_KEPT_NORMAL;
	memcpy(&out->kept_normal, &value, sizeof value);
}

/* Of word 0 only the top bit takes part in the recurrence, so a zero elsewhere is zero for ever. */
static bool is_degenerate(const struct mt19937 *m)
{
	uint32_t seen = m->s[0] & 0x80000000u;

	for (uint32_t i = 1; i < MT19937_WORDS; i++)
		seen |= m->s[i];
	return seen == 0;
}

static int check_words(const struct mt19937 *m, struct error *e)
{
	if (is_degenerate(m))
		return bad(e, "its 624 words are all zero, from which only zeros follow");
	return RP_OK;
}

static int read_torch_cpu(const uint8_t *bytes, size_t n, struct rng_state *out, struct error *e)
{
	if (n != CPU_SIZE && n != CPU_OLD_SIZE)
		return bad(e,
			"it has %zu bytes where a torch CPU generator has %d (%d before "
			"torch 1.2)",
			n, CPU_SIZE, CPU_OLD_SIZE);

	int32_t left = (int32_t)load_le32(bytes + CPU_LEFT);
	uint64_t next = load_le64(bytes + CPU_NEXT);
	if (load_le32(bytes + CPU_SEEDED) == 0)
		return bad(e, "it says that it was never seeded");
	if (left < 1 || left > (int32_t)MT19937_WORDS)
		return bad(e, "its count of words left is %d, outside 1 to 624", (int)left);
	if (next > MT19937_WORDS)
		return bad(e, "its next word is number %llu of 624", (unsigned long long)next);
	/* Seeded and not used yet is 1 and 0: the next draw makes the first block. */
	bool fresh = left == 1 && next == 0;
	if (!fresh && (uint64_t)left + next != MT19937_WORDS + 1)
		return bad(e,
			"%d words left and word %llu next contradict each other: they add up "
			"to 625",
			(int)left, (unsigned long long)next);

	for (uint32_t i = 0; i < MT19937_WORDS; i++) {
		uint64_t word = load_le64(bytes + CPU_WORDS + 8 * (size_t)i);
		if (word > UINT32_MAX)
			return bad(e, "word %u is %#llx, more than 32 bits", (unsigned)i,
				(unsigned long long)word);
		out->mt.s[i] = (uint32_t)word;
	}
	out->mt.pos = fresh ? MT19937_WORDS : (uint32_t)next;
	out->has_seed = true;
	out->seed = load_le64(bytes + CPU_SEED);
	out->size = (uint32_t)n;
	if (load_le32(bytes + CPU_HAS_NORMAL) != 0) {
		out->kept |= RNG_KEPT_NORMAL;
		out->kept_normal = load_le64(bytes + CPU_NORMAL);
	}
	if (n == CPU_SIZE && bytes[CPU_HAS_FLOAT] != 0) {
		out->kept |= RNG_KEPT_FLOAT;
		out->kept_word = load_le32(bytes + CPU_FLOAT);
	}
	return check_words(&out->mt, e);
}

int rng_decode_torch_cpu(const uint8_t *bytes, size_t n, struct rng_state *out, struct error *e)
{
	int status = read_torch_cpu(bytes, n, begin(out, RNG_MT19937, RNG_LAYOUT_TORCH_CPU), e);

	return status < 0 ? reject(out, status) : finish(out);
}

int rng_decode_torch_cuda(const uint8_t *bytes, size_t n, struct rng_state *out, struct error *e)
{
	begin(out, RNG_PHILOX, RNG_LAYOUT_TORCH_CUDA);
	if (n != CUDA_SIZE && n != CUDA_FILLED_SIZE && n != CUDA_OLD_SIZE && n != CUDA_SEED_SIZE)
		return reject(out, bad(e,
					   "it has %zu bytes where a CUDA generator has %d (%d in "
					   "torch 1.2 to 2.0, %d before)",
					   n, CUDA_SIZE, CUDA_FILLED_SIZE, CUDA_OLD_SIZE));

	const uint8_t *pair = n > CUDA_SIZE ? bytes + (n - CUDA_SIZE) : bytes;
	uint64_t offset = n == CUDA_SEED_SIZE ? 0 : load_le64(pair + 8);
	if (offset > INT64_MAX)
		return reject(out, bad(e, "its offset %lld is negative", (long long)offset));
	if (offset % 4 != 0)
		return reject(out, bad(e, "its offset %llu is not a multiple of 4",
					   (unsigned long long)offset));
	out->has_seed = out->has_offset = true;
	out->seed = load_le64(pair);
	out->offset = offset;
	out->size = (uint32_t)n;
	return finish(out);
}

int rng_decode_torch_mps(const uint8_t *bytes, size_t n, struct rng_state *out, struct error *e)
{
	begin(out, RNG_PHILOX, RNG_LAYOUT_TORCH_MPS);
	if (n != MPS_SIZE && n != MPS_OLD_SIZE)
		return reject(
			out, bad(e,
				     "it has %zu bytes where an MPS generator has %d (%d before "
				     "the offset was saved)",
				     n, MPS_SIZE, MPS_OLD_SIZE));

	out->has_seed = true;
	out->seed = load_le64(bytes + MPS_SEED);
	out->size = (uint32_t)n;
	uint64_t key = load_le64(bytes + MPS_KEY);
	if (key != out->seed)
		return reject(out, bad(e, "its key %#llx is not its seed %#llx",
					   (unsigned long long)key, (unsigned long long)out->seed));
	/*
	 * The engine counts blocks of four words. Without the offset, what it drew last stands in
	 * words 1 to 4, which are 1 in a fresh generator; philox_find() turns that into an offset.
	 */
	bool fresh = true;
	for (int i = 0; i < 4; i++) {
		out->philox_block[i] = load_le32(bytes + MPS_BLOCK + 4 * i);
		fresh = fresh && out->philox_block[i] == 1;
	}
	if (n == MPS_SIZE) {
		uint64_t blocks = load_le64(bytes + MPS_OFFSET);
		if (blocks > UINT64_MAX / 4)
			return reject(out, bad(e, "its offset %llu is impossibly large",
						   (unsigned long long)blocks));
		out->offset = 4 * blocks;
	}
	out->has_offset = n == MPS_SIZE || fresh;
	return finish(out);
}

int rng_decode_words(enum rng_layout layout, const uint32_t words[MT19937_WORDS], uint64_t pos,
	bool has_normal, double normal, struct rng_state *out, struct error *e)
{
	begin(out, RNG_MT19937, layout);
	if (pos > MT19937_WORDS)
		return reject(out,
			bad(e, "its position %llu is past the 624 words", (unsigned long long)pos));
	memcpy(out->mt.s, words, sizeof out->mt.s);
	out->mt.pos = (uint32_t)pos;
	if (has_normal)
		keep_normal(out, normal);
	int status = check_words(&out->mt, e);
	return status < 0 ? reject(out, status) : finish(out);
}

int rng_decode_pcg64(enum rng_layout layout, const uint64_t state[2], const uint64_t inc[2],
	bool has_half, uint32_t half, struct rng_state *out, struct error *e)
{
	begin(out, RNG_PCG64, layout);
	if (inc[1] % 2 == 0)
		return reject(out, bad(e, "its increment is even"));
	out->pcg.state = (u128)state[0] << 64 | state[1];
	out->pcg.inc = (u128)inc[0] << 64 | inc[1];
	out->pcg.kind = layout == RNG_LAYOUT_NUMPY_PCG64DXSM ? PCG64_DXSM : PCG64_XSL_RR;
	if (has_half) {
		out->kept |= RNG_KEPT_HALF;
		out->kept_word = half;
	}
	return finish(out);
}

void rng_decode_seed(uint64_t seed, struct rng_state *out)
{
	begin(out, RNG_SEED_ONLY, RNG_LAYOUT_SEED);
	out->has_seed = true;
	out->seed = seed;
	finish(out);
}

void rng_decode_opaque(const void *bytes, size_t n, struct rng_state *out)
{
	begin(out, RNG_OPAQUE, RNG_LAYOUT_OPAQUE);
	out->size = n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
	out->body = XXH3_64bits(bytes, n);
	finish(out);
}

/* Which generator a layout is of. */
static enum rng_algo algo_of(enum rng_layout layout)
{
	switch (layout) {
	case RNG_LAYOUT_PYTHON:
	case RNG_LAYOUT_NUMPY:
	case RNG_LAYOUT_TORCH_CPU:
		return RNG_MT19937;
	case RNG_LAYOUT_NUMPY_PCG64:
	case RNG_LAYOUT_NUMPY_PCG64DXSM:
		return RNG_PCG64;
	case RNG_LAYOUT_TORCH_CUDA:
	case RNG_LAYOUT_TORCH_MPS:
		return RNG_PHILOX;
	case RNG_LAYOUT_SEED:
		return RNG_SEED_ONLY;
	case RNG_LAYOUT_OPAQUE:
		return RNG_OPAQUE;
	case RNG_LAYOUT_NONE:
		break;
	}
	return RNG_NONE;
}

int rng_restore(struct rng_state *s, struct error *e)
{
	enum rng_layout layout = (enum rng_layout)s->layout;
	int status = RP_OK;

	if (s->algo == RNG_NONE || s->algo != algo_of(layout))
		return reject(s, bad(e, "its generator and its layout do not belong together"));
	if (s->kept > (RNG_KEPT_NORMAL | RNG_KEPT_FLOAT | RNG_KEPT_HALF))
		return reject(s, bad(e, "it keeps a value of an unknown kind"));
	if (s->algo != RNG_OPAQUE)
		s->body = 0;
	if (s->algo == RNG_MT19937 && s->mt.pos > MT19937_WORDS)
		status = bad(e, "its position is %u, past its 624 words", s->mt.pos);
	else if (s->algo == RNG_MT19937)
		status = check_words(&s->mt, e);
	else if (s->algo == RNG_PCG64 && !(s->pcg.inc & 1))
		status = bad(e, "its increment is even");
	if (s->algo == RNG_PCG64)
		s->pcg.kind = layout == RNG_LAYOUT_NUMPY_PCG64DXSM ? PCG64_DXSM : PCG64_XSL_RR;
	return status < 0 ? reject(s, status) : finish(s);
}

bool rng_equal(const struct rng_state *a, const struct rng_state *b)
{
	if (a->digest != b->digest || a->algo != b->algo || a->layout != b->layout ||
		a->size != b->size || a->kept != b->kept || a->kept_word != b->kept_word ||
		a->kept_normal != b->kept_normal || a->has_seed != b->has_seed ||
		a->seed != b->seed || a->has_offset != b->has_offset || a->offset != b->offset ||
		a->body != b->body)
		return false;
	switch (a->algo) {
	case RNG_MT19937:
		return a->mt.pos == b->mt.pos && memcmp(a->mt.s, b->mt.s, sizeof a->mt.s) == 0;
	case RNG_PCG64:
		return a->pcg.state == b->pcg.state && a->pcg.inc == b->pcg.inc;
	default:
		return true;
	}
}

const char *rng_algo_name(enum rng_algo algo)
{
	switch (algo) {
	case RNG_MT19937:
		return "mt19937";
	case RNG_PHILOX:
		return "philox4x32-10";
	case RNG_PCG64:
		return "pcg64";
	case RNG_SEED_ONLY:
		return "seed";
	case RNG_OPAQUE:
		return "opaque";
	case RNG_NONE:
		break;
	}
	return "none";
}

const char *rng_layout_name(enum rng_layout layout)
{
	switch (layout) {
	case RNG_LAYOUT_PYTHON:
		return "python";
	case RNG_LAYOUT_NUMPY:
		return "numpy";
	case RNG_LAYOUT_NUMPY_PCG64:
		return "numpy-pcg64";
	case RNG_LAYOUT_NUMPY_PCG64DXSM:
		return "numpy-pcg64dxsm";
	case RNG_LAYOUT_TORCH_CPU:
		return "torch-cpu";
	case RNG_LAYOUT_TORCH_CUDA:
		return "torch-cuda";
	case RNG_LAYOUT_TORCH_MPS:
		return "torch-mps";
	case RNG_LAYOUT_SEED:
		return "seed";
	case RNG_LAYOUT_OPAQUE:
		return "opaque";
	case RNG_LAYOUT_NONE:
		break;
	}
	return "none";
}

const char *rng_unit(enum rng_algo algo)
{
	return algo == RNG_PCG64 ? "64-bit words" : "32-bit words";
}
