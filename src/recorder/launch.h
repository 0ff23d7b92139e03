/* SPDX-License-Identifier: MIT */
/*
 * What all ranks of one launch share without asking each other: a name from the job's environment.
 */
#ifndef RECORDER_LAUNCH_H
#define RECORDER_LAUNCH_H

#include <stdint.h>

#define LAUNCH_MAX 128

/*
 * The launch's name as a folder's name. In this order: what was given; REPRISE_LAUNCH; the Slurm
 * job with its restart count and step; torchrun's run id with its restart count; for several
 * processes of one machine the process that started them; for one process its own `uuid`.
 */
void launch_name(char out[LAUNCH_MAX], const char *given, uint32_t world_size, const char *uuid);

#endif
