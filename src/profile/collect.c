/* SPDX-License-Identifier: MIT */
#include "profile/collect.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/cursor.h"
#include "value/path.h"

#define ROWS_MAX ((size_t)1 << 28)
#define WALK_DEPTH 64
#define CONFIG_MAX 4000u
#define MODULE_NAME_MAX 2000u   /* bytes of a parameter's name */
#define SHAPE_MAX_BYTES 824016u /* the largest generator state: torch CUDA up to 1.1 */
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

struct origin collect_origin(const struct collector *c)
{
	return (struct origin){
		.file = c->file, .path = strbuf_text(&c->path), .rank = c->rank, .how = HOW_READ};
}

size_t collect_enter(struct collector *c, struct val key)
{
	size_t mark = c->path.n;
	path_add_key(&c->path, key);
	return mark;
}

size_t collect_enter_name(struct collector *c, const char *name)
{
	return collect_enter(c, val_text(slice_of(name)));
}

void collect_leave(struct collector *c, size_t mark)
{
	strbuf_truncate(&c->path, mark);
}

bool collect_number(struct collector *c, struct val v, double *out)
{
	if (val_to_double(v, out))
		return true;
	return v.kind == VAL_TENSOR && v.tensor->numel == 1 && c->doc &&
	       tensor_read_double(c->doc, v.tensor, 0, out, NULL) == RP_OK;
}

bool collect_fact(struct collector *c, enum fact_key key, int32_t group, struct val v)
{
	double number;

	if (v.kind != VAL_TENSOR)
		return state_add_value(c->state, key, group, v, collect_origin(c));
	if (!collect_number(c, v, &number))
		return false;
	if (fabs(number) < 9e15 && number == floor(number))
		state_add_int(c->state, key, group, (int64_t)number, collect_origin(c));
	else
		state_add_real(c->state, key, group, number, collect_origin(c));
	return true;
}

/* A fact from the part of `v` under `name`, if it is there. */
static bool fact_from(
	struct collector *c, enum fact_key key, int32_t group, struct val v, const char *name)
{
	struct val part = val_get(v, name);

	if (part.kind == VAL_ABSENT)
		return false;
	size_t mark = collect_enter_name(c, name);
	bool taken = collect_fact(c, key, group, part);
	collect_leave(c, mark);
	return taken;
}

/* ---- tensors ----------------------------------------------------------------------------------
 */

/* The state's row for a document's storage, made at its first use. */
static uint32_t storage_row(struct collector *c, struct storage *storage)
{
	while (c->storages.count <= storage->index) {
		uint32_t *slot = array_push(&c->storages, ROWS_MAX);
		if (!slot) {
			c->state->no_memory = true;
			return NO_FILE;
		}
		*slot = NO_FILE;
	}
	uint32_t *row = &c->storages.items[storage->index];
	if (*row != NO_FILE)
		return *row;
	struct state_storage *s = array_push(&c->state->storages, ROWS_MAX);
	if (!s) {
		c->state->no_memory = true;
		return NO_FILE;
	}
	/* The document goes when it was looked through, so this is the moment to ask it for the
	 * place. */
	bool readable = !storage->inline_bytes && !storage->compressed && !storage->missing;
	if (readable)
		readable = document_locate(c->doc, storage, c->sink, NULL) == RP_OK;
	*s = (struct state_storage){
		.file = c->file,
		.offset = readable ? storage->offset : UINT64_MAX,
		.length = storage->length,
		.crc = storage->crc,
		.crc_known = storage->crc_known,
		.big_endian = storage->big_endian,
	};
	*row = (uint32_t)(c->state->storages.count - 1);
	return *row;
}

/* Sizes or strides in the state's arena; NULL without memory, and where there are none. */
static const int64_t *copy_sizes(struct collector *c, const int64_t *sizes, unsigned n)
{
	int64_t *copy = n ? arena_array(&c->state->arena, n, sizeof *copy) : NULL;

	if (copy)
		memcpy(copy, sizes, n * sizeof *copy);
	return copy;
}

uint32_t collect_tensor(
	struct collector *c, const char *name, enum tensor_role role, const struct tensor *t)
{
	struct state_tensor *row = array_push(&c->state->tensors, ROWS_MAX);
	bool contiguous = tensor_is_contiguous(t), lazy = t->negative || t->conjugate;
	const int64_t *shape = copy_sizes(c, t->shape, t->ndim);
	const int64_t *stride = contiguous ? NULL : copy_sizes(c, t->stride, t->ndim);

	if (!row || (t->ndim && !shape) || (!contiguous && !stride)) {
		c->state->no_memory = true;
		return NO_FILE;
	}
	uint32_t storage = t->storage ? storage_row(c, t->storage) : NO_FILE;
	if (t->storage && role == TENSOR_WEIGHT)
		c->state->on_cuda |= slice_starts(t->storage->device, SLICE("cuda"));
	/* storage_row() may have moved nothing of `row`: it grows another table. */
	*row = (struct state_tensor){
		.name = state_text(c->state, slice_of(name)),
		.shape = shape,
		.stride = stride,
		.file = c->file,
		.storage = storage,
		.first = t->first,
		.numel = t->numel,
		.rank = c->rank,
		.ndim = t->ndim,
		.dtype = t->dtype,
		.role = (uint8_t)role,
		.whole = t->storage && t->first == 0 && contiguous && !lazy &&
			 t->numel * dtype_size(t->dtype) == t->storage->length,
		.lazy = lazy,
	};
	return (uint32_t)(c->state->tensors.count - 1);
}

/* ---- random streams ---------------------------------------------------------------------------
 */

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

static bool contains(struct slice text, const char *word)
{
	return slice_find(text, slice_of(word)) != SIZE_MAX;
}

/* Whether a name has a word in it, not just its letters: "model_ema" and "EMAModel" have "ema",
 * "remaining" and "schema" have not. */
static bool has_word(struct slice name, const char *word)
{
	size_t n = strlen(word);

	for (size_t i = 0; i + n <= name.n; i++) {
		const char *at = name.p + i;
		if (strncasecmp(at, word, n) != 0)
			continue;
		bool begins = i == 0 || !isalpha((unsigned char)at[-1]) ||
			      (islower((unsigned char)at[-1]) && isupper((unsigned char)*at));
		bool ends = i + n == name.n || !isalpha((unsigned char)at[n]) ||
			    isupper((unsigned char)at[n]);
		if (begins && ends)
			return true;
	}
	return false;
}

/* Words for weights that are averages of others (EMA, SWA). */
static bool names_average(struct slice name)
{
	static const char *const words[] = {
		"ema", "swa", "shadow", "averaged", "average", "polyak"};

	for (size_t i = 0; i < COUNT(words); i++)
		if (has_word(name, words[i]))
			return true;
	return false;
}

/* A model that carries its averages beside the live weights has them as a module of their own:
 * "model_ema.layers…". Deeper down the words are names of layers. */
static bool is_of_average(struct slice name)
{
	size_t dot = slice_find(name, SLICE("."));

	return dot != SIZE_MAX && names_average((struct slice){name.p, dot});
}

/* Names under which a small byte tensor is taken for a device generator's state. */
static bool names_generator(struct slice name)
{
	static const char *const words[] = {
		"rng", "cuda", "random", "seed", "generator", "gpu", "xpu", "tracker"};

	for (size_t i = 0; i < COUNT(words); i++)
		if (contains(name, words[i]))
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
	if (!cpu && !((cuda || mps) && (names_generator(name) || size > 800)))
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
	bool private = c->in_loader || contains(name, "gen") || contains(name, "shuffle") ||
		       contains(strbuf_slice(&c->path), "sampler") ||
		       contains(strbuf_slice(&c->path), "loader");
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

/* ---- optimizer --------------------------------------------------------------------------------
 */

static const char *optimizer_name(struct val group, bool moments)
{
	struct val decoupled = val_get(group, "decoupled_weight_decay");

	if (val_get(group, "betas").kind != VAL_ABSENT) {
		if (decoupled.kind == VAL_BOOL)
			return decoupled.i ? "AdamW" : "Adam";
		return moments ? "Adam or AdamW" : "";
	}
	if (val_get(group, "momentum").kind != VAL_ABSENT &&
		val_get(group, "nesterov").kind != VAL_ABSENT)
		return "SGD";
	if (val_get(group, "lr_decay").kind != VAL_ABSENT)
		return "Adagrad";
	if (val_get(group, "alpha").kind != VAL_ABSENT &&
		val_get(group, "centered").kind != VAL_ABSENT)
		return "RMSprop";
	if (val_get(group, "clip_threshold").kind != VAL_ABSENT)
		return "Adafactor";
	return "";
}

static void take_group(struct collector *c, struct val group, int32_t index)
{
	static const struct {
		enum fact_key key;
		const char *name;
	} numbers[] = {
		{FACT_LR, "lr"},
		{FACT_INITIAL_LR, "initial_lr"},
		{FACT_EPSILON, "eps"},
		{FACT_WEIGHT_DECAY, "weight_decay"},
		{FACT_MOMENTUM, "momentum"},
	};

	for (size_t i = 0; i < COUNT(numbers); i++)
		fact_from(c, numbers[i].key, index, group, numbers[i].name);
	struct val betas = val_get(group, "betas");
	if (!val_is_sequence(betas) || val_count(betas) != 2)
		return;
	for (uint64_t i = 0; i < 2; i++) {
		size_t mark = collect_enter_name(c, "betas");
		collect_enter(c, val_int((int64_t)i));
		collect_fact(c, i ? FACT_BETA2 : FACT_BETA1, index, val_at(betas, i));
		collect_leave(c, mark);
	}
}

/* The group that lists a parameter; groups are few and lists are runs, so this walks them in step.
 */
struct group_map {
	struct val groups;
	uint64_t listed;
};

static int32_t group_of(const struct group_map *map, struct val key)
{
	uint64_t count = val_count(map->groups);

	for (uint64_t g = 0; g < count; g++) {
		struct val ids = val_get(val_at(map->groups, g), "params");
		uint64_t n = val_count(ids);
		int64_t first, last, id;
		/* torch numbers parameters through the groups, so a group's ids are one run. */
		if (n && key.kind == VAL_INT && val_to_i64(val_at(ids, 0), &first) &&
			val_to_i64(val_at(ids, n - 1), &last) && last - first == (int64_t)n - 1) {
			id = key.i;
			if (id >= first && id <= last)
				return (int32_t)g;
			continue;
		}
		for (uint64_t i = 0; i < n; i++) {
			struct val listed = val_at(ids, i);
			if (listed.kind == key.kind &&
				(key.kind == VAL_INT ? listed.i == key.i
						     : slice_eq(val_slice(listed), val_slice(key))))
				return (int32_t)g;
		}
	}
	return NO_GROUP;
}

static void take_param_state(struct collector *c, struct optimizer *o, const struct group_map *map,
	struct val key, struct val entry, uint64_t position)
{
	struct opt_param *p = array_push(&o->params, ROWS_MAX);
	struct val part_key;

	if (!p) {
		c->state->no_memory = true;
		return;
	}
	*p = (struct opt_param){
		.id = key.kind == VAL_INT ? key.i : (int64_t)position,
		.group = group_of(map, key),
		.moment1 = NO_FILE,
		.moment2 = NO_FILE,
	};
	for (uint64_t i = 0; i < val_count(entry); i++) {
		struct val part = val_part(entry, i, &part_key);
		size_t mark = collect_enter(c, part_key);
		if (val_is_text(part_key, "step")) {
			p->has_step = collect_number(c, part, &p->step);
			if (part.kind == VAL_TENSOR)
				collect_tensor(
					c, strbuf_text(&c->path), TENSOR_OPTIMIZER, part.tensor);
		} else if (part.kind == VAL_TENSOR) {
			bool first = val_is_text(part_key, "exp_avg") ||
				     val_is_text(part_key, "momentum_buffer");
			bool second = val_is_text(part_key, "exp_avg_sq");
			uint32_t row = collect_tensor(c, strbuf_text(&c->path),
				first    ? TENSOR_MOMENT1
				: second ? TENSOR_MOMENT2
					 : TENSOR_OPTIMIZER,
				part.tensor);
			if (first)
				p->moment1 = row;
			if (second)
				p->moment2 = row;
		}
		collect_leave(c, mark);
	}
	p->has_moments = p->moment1 != NO_FILE;
}

bool collect_optimizer(struct collector *c, struct val v)
{
	struct val states = val_get(v, "state"), groups = val_get(v, "param_groups");

	if (!val_is_sequence(groups) || (states.kind != VAL_DICT && states.kind != VAL_OBJECT))
		return false;
	struct optimizer *o = array_push(&c->state->optimizers, ROWS_MAX);
	if (!o) {
		c->state->no_memory = true;
		return true;
	}
	size_t at = c->state->optimizers.count - 1;
	*o = (struct optimizer){
		.file = c->file,
		.rank = c->rank,
		.path = state_text(c->state, strbuf_slice(&c->path)),
		.name = "",
	};
	struct group_map map = {.groups = groups};
	for (uint64_t g = 0; g < val_count(groups); g++) {
		size_t mark = collect_enter_name(c, "param_groups");
		collect_enter(c, val_int((int64_t)g));
		take_group(c, val_at(groups, g), (int32_t)g);
		map.listed += val_count(val_get(val_at(groups, g), "params"));
		collect_leave(c, mark);
	}
	o->listed = map.listed;
	struct val key;
	for (uint64_t i = 0; i < val_count(states); i++) {
		struct val entry = val_part(states, i, &key);
		size_t mark = collect_enter_name(c, "state");
		collect_enter(c, key);
		take_param_state(c, &c->state->optimizers.items[at], &map, key, entry, i);
		collect_leave(c, mark);
	}
	o = &c->state->optimizers.items[at];
	for (size_t i = 0; i < o->params.count; i++)
		o->adam |= o->params.items[i].moment2 != NO_FILE;
	o->name = optimizer_name(val_at(groups, 0), o->adam || o->params.count == 0);
	if (*o->name)
		state_add_text(
			c->state, FACT_OPTIMIZER, NO_GROUP, slice_of(o->name), collect_origin(c));
	return true;
}

/* ---- schedule and scaler ----------------------------------------------------------------------
 */

/* The scheduler's class, from the attributes that only it has (torch/optim/lr_scheduler.py). */
static const char *schedule_name(struct val v)
{
	static const struct {
		const char *key, *name;
	} marks[] = {
		{"lr_lambdas", "LambdaLR"},
		{"_schedulers", "SequentialLR"},
		{"_schedule_phases", "OneCycleLR"},
		{"step_ratio", "CyclicLR"},
		{"T_max", "CosineAnnealingLR"},
		{"T_0", "CosineAnnealingWarmRestarts"},
		{"milestones", "MultiStepLR"},
		{"num_bad_epochs", "ReduceLROnPlateau"},
		{"start_factor", "LinearLR"},
		{"step_size", "StepLR"},
		{"power", "PolynomialLR"},
		{"factor", "ConstantLR"},
		{"gamma", "ExponentialLR"},
	};

	for (size_t i = 0; i < COUNT(marks); i++)
		if (val_get(v, marks[i].key).kind != VAL_ABSENT)
			return marks[i].name;
	return "";
}

static void take_rates(struct collector *c, struct val v, const char *name, enum fact_key key)
{
	struct val rates = val_get(v, name);

	if (!val_is_sequence(rates))
		return;
	for (uint64_t g = 0; g < val_count(rates); g++) {
		size_t mark = collect_enter_name(c, name);
		collect_enter(c, val_int((int64_t)g));
		collect_fact(c, key, (int32_t)g, val_at(rates, g));
		collect_leave(c, mark);
	}
}

bool collect_schedule(struct collector *c, struct val v)
{
	if (val_get(v, "last_epoch").kind == VAL_ABSENT ||
		(val_get(v, "_step_count").kind == VAL_ABSENT &&
			val_get(v, "base_lrs").kind == VAL_ABSENT &&
			val_get(v, "_last_lr").kind == VAL_ABSENT))
		return false;
	fact_from(c, FACT_SCHEDULE_STEP, NO_GROUP, v, "last_epoch");
	fact_from(c, FACT_SCHEDULE_COUNT, NO_GROUP, v, "_step_count");
	if (!fact_from(c, FACT_SCHEDULE_HORIZON, NO_GROUP, v, "T_max") &&
		!fact_from(c, FACT_SCHEDULE_HORIZON, NO_GROUP, v, "total_steps"))
		fact_from(c, FACT_SCHEDULE_HORIZON, NO_GROUP, v, "total_iters");
	take_rates(c, v, "base_lrs", FACT_SCHEDULE_BASE_LR);
	take_rates(c, v, "_last_lr", FACT_SCHEDULE_LR);
	const char *name = schedule_name(v);
	if (*name)
		state_add_text(
			c->state, FACT_SCHEDULE, NO_GROUP, slice_of(name), collect_origin(c));
	return true;
}

bool collect_scaler(struct collector *c, struct val v)
{
	if (val_get(v, "scale").kind == VAL_ABSENT ||
		val_get(v, "growth_factor").kind == VAL_ABSENT)
		return false;
	fact_from(c, FACT_SCALE, NO_GROUP, v, "scale");
	fact_from(c, FACT_SCALE_TRACKER, NO_GROUP, v, "_growth_tracker");
	fact_from(c, FACT_SCALE_INTERVAL, NO_GROUP, v, "growth_interval");
	return true;
}

/* Names of counters in the upper levels of a checkpoint, as people and frameworks write them. */
static const struct {
	const char *name;
	enum fact_key key;
} counters[] = {
	{"global_step", FACT_STEP},
	{"step", FACT_STEP},
	{"steps", FACT_STEP},
	{"iter_num", FACT_STEP},
	{"iteration", FACT_STEP},
	{"num_updates", FACT_STEP},
	{"global_steps", FACT_STEP},
	{"completed_steps", FACT_STEP},
	{"current_step", FACT_STEP},
	{"global_iter", FACT_STEP},
	{"train_step", FACT_STEP},
	{"epoch", FACT_EPOCH},
	{"current_epoch", FACT_EPOCH},
	{"batch_in_epoch", FACT_BATCH_IN_EPOCH},
	{"batches_in_epoch", FACT_BATCH_IN_EPOCH},
	{"batch_idx", FACT_BATCH_IN_EPOCH},
	{"batch_index", FACT_BATCH_IN_EPOCH},
	{"step_in_epoch", FACT_BATCH_IN_EPOCH},
	{"iterations_in_epoch", FACT_BATCH_IN_EPOCH},
	{"consumed_samples", FACT_SAMPLES},
	{"consumed_train_samples", FACT_SAMPLES},
	{"samples_seen", FACT_SAMPLES},
	{"global_samples", FACT_SAMPLES},
	{"seen_samples", FACT_SAMPLES},
	{"tokens_seen", FACT_TOKENS},
	{"consumed_tokens", FACT_TOKENS},
	{"ntokens_seen", FACT_TOKENS},
	{"num_input_tokens_seen", FACT_TOKENS},
};

/* A counter by its name; false where it is none. */
static bool take_counter(struct collector *c, struct slice name, struct val v)
{
	for (size_t i = 0; i < COUNT(counters); i++)
		if (slice_is(name, counters[i].name))
			return collect_fact(c, counters[i].key, NO_GROUP, v);
	return false;
}

/* ---- weights ----------------------------------------------------------------------------------
 */

static bool is_float(enum dtype d)
{
	return dtype_rows[d].kind == DTYPE_KIND_FLOAT || dtype_rows[d].kind == DTYPE_KIND_COMPLEX;
}

static bool is_buffer(struct slice name, const struct tensor *t)
{
	return !is_float(t->dtype) || slice_ends(name, SLICE("running_mean")) ||
	       slice_ends(name, SLICE("running_var")) || slice_ends(name, SLICE("inv_freq")) ||
	       slice_ends(name, SLICE("attn.bias")) || slice_ends(name, SLICE("masked_bias"));
}

bool collect_weights(struct collector *c, struct val v, enum tensor_role role)
{
	struct val key;
	uint64_t count = val_count(v), tensors = 0;

	if (v.kind != VAL_DICT && v.kind != VAL_OBJECT)
		return false;
	for (uint64_t i = 0; i < count; i++) {
		struct val part = val_part(v, i, &key);
		if (key.kind != VAL_TEXT || (part.kind == VAL_TENSOR) == 0)
			continue;
		size_t mark = collect_enter(c, key);
		struct slice name = val_slice(key);
		/* An archive of arrays has no other place for counters than beside the weights. */
		if (c->doc->container == &container_npz && part.tensor->ndim == 0 &&
			take_counter(c, name, part)) {
			collect_leave(c, mark);
			continue;
		}
		enum tensor_role kind =
			role == TENSOR_WEIGHT && is_of_average(name) ? TENSOR_EMA : role;
		bool buffer = kind == TENSOR_WEIGHT ? is_buffer(name, part.tensor)
						    : kind != role && !is_float(part.tensor->dtype);
		/* torch.optim.swa_utils.AveragedModel counts its updates beside its weights. */
		if (role == TENSOR_EMA && slice_is(name, "n_averaged"))
			collect_fact(c, FACT_EMA_UPDATES, NO_GROUP, part);
		const char *copy = state_text(c->state, name);
		collect_tensor(c, copy, buffer ? TENSOR_BUFFER : kind, part.tensor);
		collect_leave(c, mark);
		tensors++;
	}
	return tensors > 0;
}

/* The names of a module's own tensors and modules, in its attributes. */
static void take_module(struct collector *c, struct val v, enum tensor_role role,
	struct strbuf *name, unsigned depth)
{
	static const char *const own[] = {"_parameters", "_buffers"};
	struct val key;
	size_t start = name->n;

	for (size_t k = 0; k < COUNT(own); k++) {
		struct val list = val_get(v, own[k]);
		size_t outer = collect_enter_name(c, own[k]);
		for (uint64_t i = 0; i < val_count(list) && c->budget > 0; i++) {
			struct val part = val_part(list, i, &key);
			c->budget--;
			if (key.kind != VAL_TEXT || part.kind != VAL_TENSOR)
				continue;
			size_t mark = collect_enter(c, key);
			strbuf_add_slice(name, val_slice(key));
			bool buffer = role == TENSOR_WEIGHT &&
				      (k == 1 || is_buffer(strbuf_slice(name), part.tensor));
			collect_tensor(
				c, strbuf_text(name), buffer ? TENSOR_BUFFER : role, part.tensor);
			strbuf_truncate(name, start);
			collect_leave(c, mark);
		}
		collect_leave(c, outer);
	}
	struct val modules = val_get(v, "_modules");
	size_t outer = collect_enter_name(c, "_modules");
	for (uint64_t i = 0; depth < WALK_DEPTH && i < val_count(modules) && c->budget > 0; i++) {
		struct val part = val_part(modules, i, &key);
		c->budget--;
		if (key.kind != VAL_TEXT || part.kind != VAL_OBJECT)
			continue;
		size_t mark = collect_enter(c, key);
		strbuf_add_slice(name, val_slice(key));
		strbuf_add_char(name, '.');
		take_module(c, part, role, name, depth + 1);
		strbuf_truncate(name, start);
		collect_leave(c, mark);
	}
	collect_leave(c, outer);
}

/*
 * A module that was saved whole: its parameters under the names that its state_dict() would give
 * them. Source: torch/nn/modules/module.py, __setstate__ and named_parameters.
 */
static bool collect_module(struct collector *c, struct val v, enum tensor_role role)
{
	struct strbuf name;

	if (v.kind != VAL_OBJECT || val_get(v, "_parameters").kind == VAL_ABSENT ||
		val_get(v, "_modules").kind == VAL_ABSENT)
		return false;
	strbuf_init(&name, MODULE_NAME_MAX);
	take_module(c, v, role, &name, 0);
	c->state->no_memory |= name.no_memory;
	strbuf_release(&name);
	return true;
}

/* Whether a dict looks like a module's state_dict: text keys, tensors, and names that have dots. */
static bool is_weights(struct val v)
{
	struct val key;
	uint64_t count = val_count(v), tensors = 0, dotted = 0;

	if ((v.kind != VAL_DICT && v.kind != VAL_OBJECT) || count == 0)
		return false;
	for (uint64_t i = 0; i < count; i++) {
		struct val part = val_part(v, i, &key);
		if (key.kind == VAL_ABSENT || (key.kind == VAL_TEXT && part.kind == VAL_DICT &&
						      val_is_text(key, "_metadata")))
			continue;
		if (key.kind != VAL_TEXT)
			return false;
		if (part.kind != VAL_TENSOR)
			continue;
		tensors++;
		struct slice name = val_slice(key);
		dotted += contains(name, ".") || slice_ends(name, SLICE("weight")) ||
			  slice_ends(name, SLICE("bias"));
	}
	return tensors > 0 && tensors * 2 > count && dotted * 2 >= tensors;
}

void collect_index(struct collector *c, struct val v)
{
	struct val map = val_get(v, "weight_map"), key;
	const char *last = NULL;

	for (uint64_t i = 0; i < val_count(map); i++) {
		struct val file = val_part(map, i, &key);
		if (key.kind != VAL_TEXT || file.kind != VAL_TEXT)
			continue;
		struct placement *p = array_push(&c->state->placements, ROWS_MAX);
		if (!p) {
			c->state->no_memory = true;
			return;
		}
		/* Neighbours lie in the same shard: its name is kept once. */
		if (!last || !slice_is(val_slice(file), last))
			last = state_text(c->state, val_slice(file));
		*p = (struct placement){.tensor = state_text(c->state, val_slice(key)),
			.file = last,
			.index = c->file};
	}
}

/* ---- configuration ----------------------------------------------------------------------------
 */

static const struct {
	const char *name;
	enum fact_key key;
} settings[] = {
	{"seed", FACT_SEED},
	{"random_seed", FACT_SEED},
	{"data_seed", FACT_DATA_SEED},
	{"shuffle_seed", FACT_DATA_SEED},
	{"per_device_train_batch_size", FACT_MICRO_BATCH},
	{"micro_batch_size", FACT_MICRO_BATCH},
	{"batch_size", FACT_MICRO_BATCH},
	{"global_batch_size", FACT_GLOBAL_BATCH},
	{"gradient_accumulation_steps", FACT_ACCUMULATION},
	{"accumulation", FACT_ACCUMULATION},
	{"accumulate_grad_batches", FACT_ACCUMULATION},
	{"grad_accum", FACT_ACCUMULATION},
	{"grad_accum_steps", FACT_ACCUMULATION},
	{"world_size", FACT_WORLD_SIZE},
	{"num_workers", FACT_LOADER_WORKERS},
	{"dataloader_num_workers", FACT_LOADER_WORKERS},
	{"max_steps", FACT_MAX_STEPS},
	{"max_iters", FACT_MAX_STEPS},
	{"train_iters", FACT_MAX_STEPS},
	{"total_steps", FACT_MAX_STEPS},
	{"num_train_epochs", FACT_NUM_EPOCHS},
	{"num_epochs", FACT_NUM_EPOCHS},
	{"epochs", FACT_NUM_EPOCHS},
	{"max_epochs", FACT_NUM_EPOCHS},
	{"warmup_steps", FACT_WARMUP_STEPS},
	{"warmup_iters", FACT_WARMUP_STEPS},
	{"num_warmup_steps", FACT_WARMUP_STEPS},
	{"steps_per_epoch", FACT_STEPS_PER_EPOCH},
	{"dataset_size", FACT_DATASET_SIZE},
	{"n_samples", FACT_DATASET_SIZE},
	{"shuffle", FACT_SHUFFLE},
	{"replacement", FACT_REPLACEMENT},
	{"ignore_data_skip", FACT_IGNORE_DATA_SKIP},
	{"save_only_model", FACT_SAVE_ONLY_MODEL},
};

static void take_setting(struct collector *c, struct slice name, struct val v)
{
	for (size_t i = 0; i < COUNT(settings); i++)
		if (slice_is(name, settings[i].name) && v.kind != VAL_NONE)
			collect_fact(c, settings[i].key, NO_GROUP, v);
	double p;
	/* Only the largest counts: it proves that something draws from the device's stream. */
	if (contains(name, "drop") && v.kind == VAL_FLOAT && val_to_double(v, &p) && p > 0 &&
		p < 1) {
		double known = 0;
		state_real(c->state, FACT_DROPOUT, &known);
		if (p > known)
			collect_fact(c, FACT_DROPOUT, NO_GROUP, v);
	}
}

static void config_walk(struct collector *c, struct val v, unsigned depth, unsigned *left)
{
	struct val key;

	for (uint64_t i = 0; i < val_count(v) && *left > 0 && !c->path.failed; i++) {
		struct val part = val_part(v, i, &key);
		if (key.kind == VAL_ABSENT)
			continue;
		size_t mark = collect_enter(c, key);
		if (part.kind == VAL_BOOL || part.kind == VAL_INT || part.kind == VAL_FLOAT ||
			part.kind == VAL_TEXT) {
			(*left)--;
			collect_fact(c, FACT_CONFIG, NO_GROUP, part);
			if (key.kind == VAL_TEXT)
				take_setting(c, val_slice(key), part);
		} else if (depth < 4 && (part.kind == VAL_DICT || part.kind == VAL_OBJECT ||
						val_is_sequence(part))) {
			config_walk(c, part, depth + 1, left);
		}
		collect_leave(c, mark);
	}
}

void collect_config(struct collector *c, struct val v)
{
	unsigned left = CONFIG_MAX;
	config_walk(c, v, 0, &left);
}

/* ---- the walk ---------------------------------------------------------------------------------
 */

/* Keys by which data loaders and samplers save where they are. */
static const char *const positions[] = {"_num_yielded", "num_yielded", "_sampler_iter_yielded",
	"samples_yielded", "num_samples_yielded", "sample_in_epoch", "sampler_position", "position",
	"current_iteration", "_num_batches_fetched", "start_index", "shard_example_idx",
	"kept_batches"};

static const char *const config_names[] = {"args", "config", "cfg", "hparams", "hyper_parameters",
	"model_args", "training_args", "train_args", "model_config", "train_config",
	"configuration", "options", "opt_args", "params_config"};

static bool name_in(struct slice name, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (slice_is(name, names[i]))
			return true;
	return false;
}

/* What averages of weights call the count of their updates: torch-ema, diffusers' EMAModel. */
static const char *const average_counts[] = {
	"num_updates", "updates", "optimization_step", "n_averaged"};

/* Where the walk is. */
struct place_above {
	const struct place_above *up;
	struct slice name; /* the nearest text key */
	int32_t index;     /* in the list directly above, or -1 */
	bool ema, ranks;   /* below a key that speaks of averaged weights; in a list with an entry a
			      rank */
	unsigned depth;
};

/* A node that was walked, and what decided how: the same one is not walked twice in the same way.
 */
struct visit {
	const void *node;
	int32_t rank;
	uint32_t way;
};

static bool same_visit(const struct visit *a, const struct visit *b)
{
	return a->node == b->node && a->rank == b->rank && a->way == b->way;
}

/* The slot of a visit, or the free one where it belongs. */
static struct visit *visit_slot(struct visit *slots, size_t size, const struct visit *v)
{
	uint64_t hash = ((uint64_t)(uintptr_t)v->node ^ ((uint64_t)(uint32_t)v->rank << 40) ^
				((uint64_t)v->way << 56)) *
			0x9e3779b97f4a7c15u;
	size_t at = (size_t)(hash >> 20) & (size - 1);

	while (slots[at].node && !same_visit(&slots[at], v))
		at = (at + 1) & (size - 1);
	return &slots[at];
}

/*
 * Whether this visit is a new one. Pickles share nodes, so that a few hundred bytes may hold more
 * paths than there is time for: O(nodes) then, and cycles end.
 */
static bool first_visit(struct collector *c, struct visit v)
{
	if (2 * c->visits.used >= c->visits.size) {
		size_t size = c->visits.size ? 2 * c->visits.size : 256;
		struct visit *slots = calloc(size, sizeof *slots);
		if (!slots) {
			c->state->no_memory = true;
			return false;
		}
		for (size_t i = 0; i < c->visits.size; i++)
			if (c->visits.slots[i].node)
				*visit_slot(slots, size, &c->visits.slots[i]) = c->visits.slots[i];
		free(c->visits.slots);
		c->visits.slots = slots;
		c->visits.size = size;
	}
	struct visit *slot = visit_slot(c->visits.slots, c->visits.size, &v);
	if (slot->node)
		return false;
	*slot = v;
	c->visits.used++;
	return true;
}

static const void *node_of(struct val v)
{
	if (v.kind == VAL_OBJECT)
		return v.object;
	return val_is_container(v) ? v.node : NULL;
}

/* What besides its node and rank decides what is taken of a part. */
static uint32_t way_of(const struct collector *c, struct val key, const struct place_above *at)
{
	bool config =
		key.kind == VAL_TEXT && name_in(val_slice(key), config_names, COUNT(config_names));

	return (uint32_t)c->only_data | (uint32_t)c->in_loader << 1 | (uint32_t)at->ema << 2 |
	       (uint32_t)config << 3 | (at->depth < 3 ? at->depth : 3) << 4;
}

/* Below such a key stands what was once measured ("best": {"step": 400, …}), not where the run is.
 */
static bool is_record(const struct place_above *p)
{
	static const char *const words[] = {"best", "hist", "metric", "eval", "record", "log"};

	for (; p; p = p->up)
		for (size_t i = 0; i < COUNT(words); i++)
			if (contains(p->name, words[i]))
				return true;
	return false;
}

/* Keys that are themselves resume state. Returns true where the part needs no further walk. */
static bool take_key(
	struct collector *c, struct val key, struct val part, const struct place_above *at)
{
	if (key.kind != VAL_TEXT)
		return false;
	struct slice name = val_slice(key);
	double number;
	if (!c->only_data && at->ema && name_in(name, average_counts, COUNT(average_counts)) &&
		collect_number(c, part, &number)) {
		collect_fact(c, FACT_EMA_UPDATES, NO_GROUP, part);
	} else if (!c->only_data && at->depth <= 2 && !is_record(at->up) &&
		   collect_number(c, part, &number)) {
		take_counter(c, name, part);
		for (size_t i = 0; i < COUNT(settings); i++)
			if (slice_is(name, settings[i].name))
				collect_fact(c, settings[i].key, NO_GROUP, part);
	}
	if (name_in(name, positions, COUNT(positions)) && collect_number(c, part, &number))
		collect_fact(c, FACT_POSITION, NO_GROUP, part);
	if (c->only_data)
		return false;
	if (at->depth <= 2 && slice_is(name, "ema_updates"))
		collect_fact(c, FACT_EMA_UPDATES, NO_GROUP, part);
	if (at->depth <= 2 && (part.kind == VAL_DICT || part.kind == VAL_OBJECT) &&
		(name_in(name, config_names, COUNT(config_names)))) {
		collect_config(c, part);
		return true;
	}
	return false;
}

static void walk(struct collector *c, struct val v, const struct place_above *up);

static bool has(struct val v, const char *name)
{
	return val_get(v, name).kind != VAL_ABSENT;
}

/* Batches that the loader gave out: with workers it saves a snapshot and the batches since. */
static void take_loader_position(struct collector *c, struct val v)
{
	int64_t step, since, batches;

	if (!val_to_i64(val_dig(v, "_snapshot", "_snapshot_step", NULL), &step) ||
		!val_to_i64(val_get(v, "_steps_since_snapshot"), &since) ||
		__builtin_add_overflow(step, since, &batches))
		return;
	size_t mark = collect_enter_name(c, "_snapshot");
	collect_enter_name(c, "_snapshot_step");
	state_add_int(c->state, FACT_POSITION, NO_GROUP, batches, collect_origin(c));
	collect_leave(c, mark);
	struct val workers = val_dig(v, "_snapshot", "_main_snapshot", "_num_workers", NULL);
	if (workers.kind != VAL_INT)
		return;
	mark = collect_enter_name(c, "_snapshot");
	collect_enter_name(c, "_main_snapshot");
	collect_enter_name(c, "_num_workers");
	collect_fact(c, FACT_LOADER_WORKERS, NO_GROUP, workers);
	collect_leave(c, mark);
}

static bool take_loader(struct collector *c, struct val v, const struct place_above *at)
{
	if (v.kind != VAL_DICT ||
		!((has(v, "_snapshot") && has(v, "_steps_since_snapshot")) ||
			(has(v, "_num_yielded") && has(v, "_sampler_iter_yielded"))))
		return false;
	bool in_loader = c->in_loader, only_data = c->only_data;
	c->in_loader = c->only_data = true;
	take_loader_position(c, v);
	/* A validation loader's end is not the epoch's. */
	struct val finished = val_get(v, "_iterator_finished");
	struct slice path = strbuf_slice(&c->path);
	if (finished.kind == VAL_BOOL && !contains(path, "val") && !contains(path, "test"))
		fact_from(c, FACT_EPOCH_END, NO_GROUP, v, "_iterator_finished");
	walk(c, v, at);
	c->in_loader = in_loader;
	c->only_data = only_data;
	return true;
}

static bool take_whole(struct collector *c, struct val v, const struct place_above *at)
{
	if (collect_stream(c, v, at->name, at->index) || take_loader(c, v, at))
		return true;
	if (c->only_data)
		return v.kind == VAL_TENSOR;
	if (collect_optimizer(c, v) || collect_schedule(c, v) || collect_scaler(c, v))
		return true;
	if (v.kind == VAL_TENSOR) {
		bool average = at->ema && is_float(v.tensor->dtype) && v.tensor->ndim > 0;
		collect_tensor(
			c, strbuf_text(&c->path), average ? TENSOR_EMA : TENSOR_OTHER, v.tensor);
		return true;
	}
	enum tensor_role role = at->ema ? TENSOR_EMA : TENSOR_WEIGHT;
	return collect_module(c, v, role) || (is_weights(v) && collect_weights(c, v, role));
}

static void walk(struct collector *c, struct val v, const struct place_above *up)
{
	const void *node = node_of(v);
	struct val key;

	if (!node || up->depth >= WALK_DEPTH)
		return;
	c->visits.depth++;
	int32_t rank = c->rank;
	/* The state of an object that averages, wherever it stands. */
	bool average = up->ema || has(v, "shadow_params") || has(v, "shadow");
	for (uint64_t i = 0; i < val_count(v) && c->budget > 0 && !c->path.failed; i++) {
		struct val part = val_part(v, i, &key);
		c->budget--;
		bool named = key.kind == VAL_TEXT;
		struct place_above here = {
			.up = up,
			.name = named ? val_slice(key) : up->name,
			.index = key.kind == VAL_INT ? (int32_t)key.i : -1,
			.ema = average || (named && names_average(val_slice(key))),
			.depth = up->depth + 1,
		};
		/* A list of dicts under a name like "rng" has one entry a rank. */
		here.ranks = key.kind == VAL_INT && part.kind == VAL_DICT &&
			     names_generator(up->name) && val_is_sequence(v);
		if (here.ranks && rank == NO_RANK)
			c->rank = (int32_t)key.i;
		struct visit visit = {
			.node = node_of(part), .rank = c->rank, .way = way_of(c, key, &here)};
		size_t mark = collect_enter(c, key);
		if ((!visit.node || first_visit(c, visit)) && !take_key(c, key, part, &here) &&
			!take_whole(c, part, &here))
			walk(c, part, &here);
		collect_leave(c, mark);
		c->rank = rank;
	}
	if (--c->visits.depth == 0) {
		free(c->visits.slots);
		c->visits.slots = NULL;
		c->visits.size = c->visits.used = 0;
	}
}

bool collect_loader(struct collector *c, struct val v)
{
	struct place_above root = {.index = -1};

	return take_loader(c, v, &root);
}

void collect_any_loader(struct collector *c, struct val v)
{
	size_t before = c->state->facts.count;
	bool outer = c->in_loader, known = false;

	c->in_loader = true;
	collect_data(c, v);
	c->in_loader = outer;
	for (size_t i = before; i < c->state->facts.count; i++)
		known = known || c->state->facts.items[i].key == FACT_POSITION;
	if (!known && val_is_container(v) && val_count(v) > 0)
		state_add_text(c->state, FACT_POSITION, NO_GROUP,
			SLICE("saved, of a shape of its own"), collect_origin(c));
}

void collect_data(struct collector *c, struct val v)
{
	bool outer = c->only_data;

	c->only_data = true;
	collect_tree(c, v);
	c->only_data = outer;
}

void collect_tree(struct collector *c, struct val v)
{
	struct place_above root = {.index = -1};

	if (!take_whole(c, v, &root))
		walk(c, v, &root);
	/* Counters and random states are arrays there too, with checksums of their own. */
	if (c->doc && c->doc->container == &container_npz)
		for (size_t i = 0; i < c->doc->storages.count; i++)
			storage_row(c, c->doc->storages.items[i]);
}

/*
 * Updates in an epoch, where the settings give the data set and the batch and divide evenly:
 * whether a script drops or keeps a remainder is not known.
 */
static void derive_epoch_length(struct state *s, struct origin derived)
{
	int64_t size, batch, accumulation = 1, world = 1, total;

	if (state_fact(s, FACT_STEPS_PER_EPOCH) || !state_int(s, FACT_DATASET_SIZE, &size) ||
		!state_int(s, FACT_MICRO_BATCH, &batch) || size <= 0 || batch <= 0)
		return;
	state_int(s, FACT_ACCUMULATION, &accumulation);
	state_int(s, FACT_WORLD_SIZE, &world);
	if (accumulation < 1 || world < 1 || __builtin_mul_overflow(batch, accumulation, &total) ||
		__builtin_mul_overflow(total, world, &total) || size % total != 0)
		return;
	state_add_int(s, FACT_STEPS_PER_EPOCH, NO_GROUP, size / total, derived);
}

static bool optimizer_has_step(const struct state *s, double step)
{
	for (size_t i = 0; i < s->optimizers.count; i++) {
		const struct optimizer *o = &s->optimizers.items[i];
		for (size_t k = 0; k < o->params.count; k++)
			if (o->params.items[k].has_step && o->params.items[k].step == step)
				return true;
	}
	return false;
}

/* How surely a counter of this name is the one of updates over the whole run: the order in
 * `counters`. */
static unsigned step_rank(const struct state *s, const struct fact *f)
{
	const char *name = path_last_name(f->path);
	double value = 0;

	/* What the optimizer itself has counted needs no name. */
	if (fact_to_double(f, &value) && optimizer_has_step(s, value))
		return 0;
	for (unsigned i = 0; i < COUNT(counters); i++)
		if (strcmp(name, counters[i].name) == 0)
			return strcmp(name, "step") == 0 || strcmp(name, "steps") == 0
				       ? COUNT(counters)
				       : 1 + i;
	return COUNT(counters) + 1;
}

/* A file of random streams may count its own saves or calls (accelerate writes a "step" into
 * random_states_0.pkl). */
static bool beside_streams_only(const struct state *s, uint32_t file)
{
	bool streams = false;

	for (size_t i = 0; i < s->streams.count; i++)
		streams |= s->streams.items[i].file == file;
	for (size_t i = 0; i < s->optimizers.count; i++)
		if (s->optimizers.items[i].file == file)
			return false;
	for (size_t i = 0; i < s->tensors.count; i++)
		if (s->tensors.items[i].file == file && s->tensors.items[i].role == TENSOR_WEIGHT)
			return false;
	return streams && s->optimizers.count > 0;
}

/*
 * Of several counters called a step, one is the step: what the optimizer counted, else the surest
 * name. The others are counters in units of their own; one that is just "step" beside an epoch
 * counts inside it.
 */
static void settle_step(struct state *s)
{
	const struct fact *best = NULL;
	bool batch = state_fact(s, FACT_BATCH_IN_EPOCH) != NULL,
	     epochs = state_fact(s, FACT_EPOCH) != NULL;
	double most = 0;

	for (size_t i = 0; i < s->optimizers.count; i++)
		for (size_t k = 0; k < s->optimizers.items[i].params.count; k++)
			if (s->optimizers.items[i].params.items[k].step > most)
				most = s->optimizers.items[i].params.items[k].step;
	for (size_t i = 0; i < s->facts.count; i++) {
		const struct fact *f = &s->facts.items[i];
		if (f->key == FACT_STEP && f->how == HOW_READ &&
			(!best || step_rank(s, f) < step_rank(s, best)))
			best = f;
	}
	if (!best)
		return;
	const char *path = best->path;
	unsigned rank = step_rank(s, best);
	double step = 0, own;
	fact_to_double(best, &step);
	/* One that the optimizer or the name has passed, with an epoch running: it started again
	 * with the epoch. */
	const struct fact *named = state_fact(s, FACT_NAME_STEP),
			  *epoch = state_fact(s, FACT_EPOCH);
	double running = 0;
	fact_to_double(epoch, &running);
	bool passed = most > step || (most == 0 && named && running >= 1 &&
					     named->type == FACT_INT && (double)named->i > step);
	bool inside = rank > 0 && state_step_in_epoch(best) && epochs && !batch && passed &&
		      !state_fact(s, FACT_ACCUMULATION);
	for (size_t i = 0; i < s->facts.count; i++) {
		struct fact *f = &s->facts.items[i];
		if (f->key != FACT_STEP || f->how != HOW_READ || !fact_to_double(f, &own))
			continue;
		bool plain = state_step_in_epoch(f);
		if (rank > 0 && most > 0 && f->file != NO_FILE && beside_streams_only(s, f->file))
			f->key = FACT_COUNTER;
		else if (inside ||
			 (strcmp(f->path, path) != 0 && plain && epochs && !batch && own < step))
			f->key = FACT_BATCH_IN_EPOCH;
		else if (strcmp(f->path, path) != 0)
			f->key = FACT_COUNTER;
	}
}

void collect_totals(struct collector *c)
{
	struct state *s = c->state;
	struct origin derived = {.file = NO_FILE, .rank = NO_RANK, .how = HOW_DERIVED, .path = ""};
	uint64_t parameters = 0;
	bool *counted = calloc(s->storages.count + 1, sizeof *counted);

	for (size_t i = 0; i < s->tensors.count; i++) {
		const struct state_tensor *t = &s->tensors.items[i];
		if (t->role != TENSOR_WEIGHT || t->rank > 0)
			continue;
		/* Tied weights share a storage as a whole; slices of one flat storage do not. */
		if (t->whole && counted) {
			if (counted[t->storage])
				continue;
			counted[t->storage] = true;
		}
		parameters += t->numel;
	}
	free(counted);
	if (!s->profile->optimizer_counts_steps)
		settle_step(s);
	derive_epoch_length(s, derived);
	if (parameters > 0)
		state_add_int(s, FACT_PARAMETERS, NO_GROUP, (int64_t)parameters, derived);
	for (size_t i = 0; i < s->files.count; i++)
		if (s->files.items[i].rank >= s->world && s->files.items[i].rank < INT32_MAX)
			s->world = s->files.items[i].rank + 1;
	for (size_t i = 0; i < s->streams.count; i++)
		if (s->streams.items[i].rank >= s->world)
			s->world = s->streams.items[i].rank + 1;
}

void collect_role(struct collector *c, enum file_role role)
{
	struct val root = c->doc->root;

	switch (role) {
	case FILE_OPTIMIZER:
		collect_optimizer(c, root);
		break;
	case FILE_SCHEDULER:
		collect_schedule(c, root);
		break;
	case FILE_SCALER:
		collect_scaler(c, root);
		break;
	case FILE_WEIGHTS:
		collect_weights(c, root, TENSOR_WEIGHT);
		break;
	case FILE_INDEX:
		collect_index(c, root);
		break;
	case FILE_RNG:
		collect_tree(c, root);
		break;
	default:
		break;
	}
}
