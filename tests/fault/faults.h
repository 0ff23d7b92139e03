/* SPDX-License-Identifier: MIT */
/*
 * Calls to the system that can be made to fail. In copies of our objects they stand for the C
 * library's (faults.syms); the test itself, Check and other libraries keep the real ones.
 */
#ifndef FAULT_FAULTS_H
#define FAULT_FAULTS_H

#include <stdbool.h>
#include <stddef.h>

enum fault_kind {
	FAULT_ALLOCATION,
	FAULT_OPEN,
	FAULT_READ,
	FAULT_WRITE,
	FAULT_PROCESS, /* another process or thread, a channel to it */
	FAULT_KINDS
};

extern const char *const fault_names[FAULT_KINDS];

/* Fail call `n` of a kind, counted from 1, and with `on` all that follow. 0: none. Counts from
 * anew. */
void faults_set(enum fault_kind kind, size_t n, bool on);

/* Called whenever one fails. */
void fault_happens(void);

/* How many calls of a kind there were since faults_set(). */
size_t faults_counted(enum fault_kind kind);

/* What was taken and not given back since the program began: blocks of memory, descriptors. */
long faults_live_blocks(void);
long faults_live_descriptors(void);

#endif
