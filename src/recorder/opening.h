/* SPDX-License-Identifier: MIT */
/* What an attempt says of itself as it begins: the caller's options, and OPEN's JSON object. */
#ifndef RECORDER_OPENING_H
#define RECORDER_OPENING_H

#include <reprise_record.h>
#include <stdbool.h>
#include <stddef.h>

/* Sizes of the structs in the first version, which is the least that a caller can know. */
#define OPENING_OPTIONS_0 (offsetof(struct rp_record_options, intent) + sizeof(const char *))
#define OPENING_STEP_0 (offsetof(struct rp_record_step, flags) + sizeof(uint32_t))

/* The most that one of a later version may be; a larger size is no size. */
#define OPENING_SIZE_MAX 4096u

/* The options as this version of the library knows them: what a caller's older header lacks is as
 * rp_record_options_init sets it. Why they make no sense is returned, or NULL. */
const char *opening_options(const struct rp_record_options *given, struct rp_record_options *known);

/* Whether what lies behind `known` bytes of a struct of `size` bytes is zero: what a newer header
 * has and a caller did not use. */
bool opening_unused(const void *given, size_t known, size_t size);

/* OPEN's object, but for its end; freed by the caller, NULL where memory is out or it is too long.
 */
char *opening_text(const struct rp_record_options *o, const char *uuid, const char *launch);

#endif
