/* SPDX-License-Identifier: MIT */
/* What this tool wrote itself. Lying in a run's folder it would be read as a log of that run. */
#ifndef CURVE_OWN_H
#define CURVE_OWN_H

#include "base/slice.h"

/* What every report in JSON begins with. */
#define OWN_REPORT "{\n  \"schema\": \"reprise/1\""

/* Why a file in a folder that begins so is left out, one clause; or NULL. */
const char *own_output(struct slice head);

#endif
