/* SPDX-License-Identifier: MIT */
/* Trainer states, and wandb's summaries, which are JSON documents too. */
#include "fuzz/fuzz.h"

int fuzz_curve_trainer_state(const uint8_t *data, size_t size)
{
	fuzz_curve("trainer_state.json", data, size);
	fuzz_curve("wandb-summary.json", data, size);
	return 0;
}
