/* SPDX-License-Identifier: MIT */
/* Writing a whole file or none: what others read is the old text or the new one, never half of it.
 */
#ifndef BASE_REPLACE_H
#define BASE_REPLACE_H

#include "base/error.h"
#include "base/slice.h"

/*
 * Write `text` to a file beside `path`, bring it to the disk and give it the name `path`. What is
 * there and is no regular file (a device, a folder) is left alone and an error; so is the old file
 * after one.
 */
int file_replace(const char *path, struct slice text, struct error *e);

/* The same where nothing is called `path` yet; else an RP_E_IO with EEXIST, and what is there
 * stays. */
int file_create(const char *path, struct slice text, struct error *e);

#endif
