/* SPDX-License-Identifier: MIT */
/* What the helper gives up before it looks at a byte that it was not born with. */
#ifndef H5_H5_SANDBOX_H
#define H5_H5_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Limits on memory and processor time, on the bytes of a file (0: none may be written), no core
 * dumps, then the list of system calls that remain. Any other one ends the process. False where
 * one of them could not be set: nothing may be read then. HDF5 must be initialised before.
 */
bool h5_sandbox_enter(uint64_t memory, uint64_t cpu_seconds, uint64_t file_bytes);

#endif
