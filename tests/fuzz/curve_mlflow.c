/* SPDX-License-Identifier: MIT */
/* Files of MLflow's metrics. */
#include "fuzz/fuzz.h"

int fuzz_curve_mlflow(const uint8_t *data, size_t size)
{
	fuzz_curve("loss", data, size);
	return 0;
}
