/* SPDX-License-Identifier: MIT */
/* Random streams by their shape. */
#include "profile/collect_parts.h"

#include <stdlib.h>

#include "base/cursor.h"

#define SHAPE_MAX_BYTES 824016u /* the largest generator state: torch CUDA up to 1.1 */

static bool words_of(struct val sequence, uint64_t count, uint32_t *out)
{
	for (uint64_t i = 0; i < count; i++) {
		uint64_t word;
		if (!val_to_u64(val_at(sequence, i), &word) || word > UINT32_MAX)
			return false;
		out[i] = (uint32_t)word;
	}
	return true;
}

static void add_stream(
	struct collector *c, const struct rng_state *state, const char *owner, int32_t device)
{
	/* A worker process begins its streams anew with every epoch: they continue nothing. */
	struct slice path = strbuf_slice(&c->path);
	if (c->in_loader && (slice_find(path, SLICE("rng_states")) != SIZE_MAX ||
				    slice_find(path, SLICE("_worker_snapshots")) != SIZE_MAX))
		return;
	if (c->in_loader && strcmp(owner, "generator") != 0)
		owner = state_printf(c->state, "loader %s", owner);
	state_add_stream(c->state, state, owner, device, collect_origin(c));
}

/* A state whose shape is right but whose content no generator can have: say so, and go on. */
static void bad_stream(struct collector *c, const char *what, const struct error *e)
{
	/* What could not be read is no defect of the file. */
	if (c->doc->trouble->status < 0)
		return;
	struct finding *f =
		finding_add(c->sink, FINDING_I104, "the %s state is not one: %s", what, e->text);

	f->place.file = findings_text(c->sink, "%s", state_whole_path(c->state, c->file));
	f->place.path = findings_escaped(c->sink, strbuf_slice(&c->path));
	f->cause = "the random number generator's loader would refuse it";
}

/* random.getstate(): (3, 625 integers, None or float). JSON turns the tuples into lists. */
static bool take_python(struct collector *c, struct val v)
{
	int64_t version;
	uint32_t words[625];
	double gauss = 0;

	if (!val_is_sequence(v) || val_count(v) != 3 || !val_to_i64(val_at(v, 0), &version))
		return false;
	struct val internal = val_at(v, 1), cached = val_at(v, 2);
	if (version < 2 || version > 3 || !val_is_sequence(internal) ||
		val_count(internal) != 625 ||
		(cached.kind != VAL_NONE && !val_to_double(cached, &gauss)))
		return false;
	struct rng_state state;
	struct error e = ERROR_INIT;
	if (!words_of(internal, 625, words))
		fail(&e, RP_E_FORMAT, ERROR_NO_OFFSET, "an integer is outside 32 bits");
	else
		rng_decode_words(RNG_LAYOUT_PYTHON, words, words[624], cached.kind != VAL_NONE,
			gauss, &state, &e);
	if (e.status < 0)
		bad_stream(c, "python random", &e);
	else
		add_stream(c, &state, "python", -1);
	return true;
}

/* A number that an archive of arrays may hold as an array without dimensions. */
static bool small_number(struct collector *c, struct val v, uint64_t *out)
{
	double number;

	if (val_to_u64(v, out))
		return true;
	if (v.kind != VAL_TENSOR || !collect_number(c, v, &number) || number < 0 || number > 1e6)
		return false;
	*out = (uint64_t)number;
	return true;
}

/*
 * numpy.random.get_state(): ('MT19937', uint32[624], pos, has_gauss, gauss), its dict form, and
 * what numpy.savez(f, *state) and savez(f, key=…, pos=…) make of them.
 */
static bool take_numpy(struct collector *c, struct val v)
{
	struct val key, pos, has, gauss;

	if (val_is_sequence(v) && val_count(v) == 5 && val_is_text(val_at(v, 0), "MT19937")) {
		key = val_at(v, 1);
		pos = val_at(v, 2);
		has = val_at(v, 3);
		gauss = val_at(v, 4);
	} else if (v.kind == VAL_DICT && val_is_text(val_get(v, "bit_generator"), "MT19937") &&
		   val_is_dict(val_get(v, "state"))) {
		key = val_dig(v, "state", "key", NULL);
		pos = val_dig(v, "state", "pos", NULL);
		has = val_get(v, "has_gauss");
		gauss = val_get(v, "gauss");
	} else if (v.kind == VAL_DICT && val_is_text(val_get(v, "arr_0"), "MT19937")) {
		key = val_get(v, "arr_1");
		pos = val_get(v, "arr_2");
		has = val_get(v, "arr_3");
		gauss = val_get(v, "arr_4");
	} else if (v.kind == VAL_DICT && val_get(v, "key").kind == VAL_TENSOR &&
		   val_get(v, "key").tensor->dtype == DTYPE_U32 &&
		   val_get(v, "key").tensor->numel == 624) {
		key = val_get(v, "key");
		pos = val_get(v, "pos");
		has = val_get(v, "has_gauss");
		gauss = val_get(v, "cached_gaussian");
	} else {
		return false;
	}
	struct rng_state state;
	struct error e = ERROR_INIT;
	uint32_t words[624];
	uint8_t bytes[sizeof words];
	size_t n = 0;
	uint64_t position = 0, cached = 0;
	double value = 0;
	bool ok = small_number(c, pos, &position);
	if (key.kind == VAL_TENSOR && key.tensor->dtype == DTYPE_U32 && key.tensor->numel == 624)
		ok = ok &&
		     tensor_read_bytes(c->doc, key.tensor, bytes, sizeof bytes, &n, &e) == RP_OK;
	else
		ok = ok && val_is_sequence(key) && val_count(key) == 624 &&
		     words_of(key, 624, words);
	if (n == sizeof words)
		memcpy(words, bytes, sizeof words);
	small_number(c, has, &cached);
	collect_number(c, gauss, &value);
	if (!ok)
		fail(&e, RP_E_FORMAT, ERROR_NO_OFFSET,
			"it has no 624 words of 32 bits and a position");
	else
		rng_decode_words(RNG_LAYOUT_NUMPY, words, position, cached != 0, value, &state, &e);
	if (e.status < 0)
		bad_stream(c, "numpy random", &e);
	else
		add_stream(c, &state, "numpy", -1);
	return true;
}

/* numpy Generator: {'bit_generator': 'PCG64', 'state': {'state': int, 'inc': int}, …}. */
static bool int128_of(struct val v, uint64_t *high, uint64_t *low)
{
	if (val_to_u64(v, low)) {
		*high = 0;
		return true;
	}
	if (v.kind != VAL_BIGINT || v.n > 17 || (v.n == 17 && v.s[16] != 0))
		return false;
	uint8_t bytes[16] = {0};
	memcpy(bytes, v.s, v.n < 16 ? v.n : 16);
	*low = load_le64(bytes);
	*high = load_le64(bytes + 8);
	return true;
}

static bool take_pcg(struct collector *c, struct val v, struct slice name)
{
	struct val kind = val_get(v, "bit_generator");

	if (v.kind != VAL_DICT || !(val_is_text(kind, "PCG64") || val_is_text(kind, "PCG64DXSM")))
		return false;
	uint64_t state[2], inc[2], half = 0;
	int64_t has = 0;
	struct rng_state decoded;
	val_to_i64(val_get(v, "has_uint32"), &has);
	val_to_u64(val_get(v, "uinteger"), &half);
	struct error e = ERROR_INIT;
	if (!int128_of(val_dig(v, "state", "state", NULL), &state[0], &state[1]) ||
		!int128_of(val_dig(v, "state", "inc", NULL), &inc[0], &inc[1]))
		fail(&e, RP_E_FORMAT, ERROR_NO_OFFSET,
			"its state and increment are no 128-bit integers");
	else
		rng_decode_pcg64(val_is_text(kind, "PCG64") ? RNG_LAYOUT_NUMPY_PCG64
							    : RNG_LAYOUT_NUMPY_PCG64DXSM,
			state, inc, has != 0, (uint32_t)half, &decoded, &e);
	if (e.status < 0) {
		bad_stream(c, "numpy generator", &e);
		return true;
	}
	const char *owner = name.n ? state_text(c->state, name) : "numpy generator";
	add_stream(c, &decoded, owner, -1);
	return true;
}

/* Names under which a small byte tensor is taken for a device generator's state. */
bool collect_names_generator(struct slice name)
{
	static const char *const words[] = {
		"rng", "cuda", "random", "seed", "generator", "gpu", "xpu", "tracker"};

	for (size_t i = 0; i < COUNT(words); i++)
		if (slice_has(name, words[i]))
			return true;
	return false;
}

static bool take_torch(struct collector *c, struct val v, struct slice name, int32_t device)
{
	static uint8_t const nothing = 0;
	struct rng_state state;
	struct error e = ERROR_INIT;

	if (v.kind != VAL_TENSOR || v.tensor->dtype != DTYPE_U8 || v.tensor->ndim != 1)
		return false;
	uint64_t size = v.tensor->numel;
	bool cpu = size == 5056 || size == 5048;
	bool cuda = size == 16 || size == 816 || size == 824016;
	bool mps = size == 36 || size == 44;
	if (!cpu && !((cuda || mps) && (collect_names_generator(name) || size > 800)))
		return false;
	uint8_t *bytes = malloc(SHAPE_MAX_BYTES);
	size_t n = 0;
	if (!bytes) {
		c->state->no_memory = true;
		return true;
	}
	const char *what = cpu ? "torch CPU" : cuda ? "CUDA" : "MPS";
	if (tensor_read_bytes(c->doc, v.tensor, bytes, SHAPE_MAX_BYTES, &n, &e) < 0) {
		bad_stream(c, what, &e);
	} else if (cpu) {
		rng_decode_torch_cpu(n ? bytes : &nothing, n, &state, &e);
	} else if (cuda) {
		rng_decode_torch_cuda(bytes, n, &state, &e);
	} else {
		rng_decode_torch_mps(bytes, n, &state, &e);
	}
	free(bytes);
	if (e.status < 0) {
		bad_stream(c, what, &e);
		return true;
	}
	bool private = c->in_loader || slice_has(name, "gen") || slice_has(name, "shuffle") ||
		       slice_has(strbuf_slice(&c->path), "sampler") ||
		       slice_has(strbuf_slice(&c->path), "loader");
	const char *owner = cpu ? (private ? "generator" : "torch cpu") : cuda ? "cuda" : "mps";
	add_stream(c, &state, owner, cpu ? -1 : device);
	collect_tensor(c, strbuf_text(&c->path), TENSOR_RNG, v.tensor);
	return true;
}

bool collect_stream(struct collector *c, struct val v, struct slice name, int32_t device)
{
	return take_python(c, v) || take_numpy(c, v) || take_pcg(c, v, name) ||
	       take_torch(c, v, name, device);
}
