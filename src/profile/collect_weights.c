/* SPDX-License-Identifier: MIT */
/* Weights, buffers and averages: dicts of tensors, and modules that were saved whole. */
#include "profile/collect_parts.h"

#include <ctype.h>
#include <strings.h>

#define MODULE_NAME_MAX 2000u /* bytes of a parameter's name */

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
bool collect_names_average(struct slice name)
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

	return dot != SIZE_MAX && collect_names_average((struct slice){name.p, dot});
}

bool collect_is_float(enum dtype d)
{
	return dtype_rows[d].kind == DTYPE_KIND_FLOAT || dtype_rows[d].kind == DTYPE_KIND_COMPLEX;
}

static bool is_buffer(struct slice name, const struct tensor *t)
{
	return !collect_is_float(t->dtype) || slice_ends(name, SLICE("running_mean")) ||
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
			collect_counter(c, name, part)) {
			collect_leave(c, mark);
			continue;
		}
		enum tensor_role kind =
			role == TENSOR_WEIGHT && is_of_average(name) ? TENSOR_EMA : role;
		bool buffer = kind == TENSOR_WEIGHT
				      ? is_buffer(name, part.tensor)
				      : kind != role && !collect_is_float(part.tensor->dtype);
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
	for (uint64_t i = 0; depth < COLLECT_DEPTH && i < val_count(modules) && c->budget > 0;
		i++) {
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
bool collect_module(struct collector *c, struct val v, enum tensor_role role)
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

bool collect_is_weights(struct val v)
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
		dotted += slice_has(name, ".") || slice_ends(name, SLICE("weight")) ||
			  slice_ends(name, SLICE("bias"));
	}
	return tensors > 0 && tensors * 2 > count && dotted * 2 >= tensors;
}
