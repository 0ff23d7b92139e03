/* SPDX-License-Identifier: MIT */
/* What this tool wrote itself. Lying in a run's folder it would be read as a log of that run. */
#ifndef CURVE_OWN_H
#define CURVE_OWN_H

#include "base/slice.h"

/* Whether a file that begins so is a report in JSON; a table of a stitched curve. */
bool own_report(struct slice head);
bool own_table(struct slice head);

/* Why a file in a folder that begins so is left out, one clause; or NULL. */
const char *own_output(struct slice head);

#endif
