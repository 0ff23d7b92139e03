/* SPDX-License-Identifier: MIT */
/* Optimizers, schedules and loss scalers by the keys of their state. */
#include "profile/collect_parts.h"

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
		collect_named(c, numbers[i].key, index, group, numbers[i].name);
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
	struct opt_param *p = array_push(&o->params, COLLECT_ROWS_MAX);
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
	struct optimizer *o = array_push(&c->state->optimizers, COLLECT_ROWS_MAX);
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
	collect_named(c, FACT_SCHEDULE_STEP, NO_GROUP, v, "last_epoch");
	collect_named(c, FACT_SCHEDULE_COUNT, NO_GROUP, v, "_step_count");
	if (!collect_named(c, FACT_SCHEDULE_HORIZON, NO_GROUP, v, "T_max") &&
		!collect_named(c, FACT_SCHEDULE_HORIZON, NO_GROUP, v, "total_steps"))
		collect_named(c, FACT_SCHEDULE_HORIZON, NO_GROUP, v, "total_iters");
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
	collect_named(c, FACT_SCALE, NO_GROUP, v, "scale");
	collect_named(c, FACT_SCALE_TRACKER, NO_GROUP, v, "_growth_tracker");
	collect_named(c, FACT_SCALE_INTERVAL, NO_GROUP, v, "growth_interval");
	return true;
}
