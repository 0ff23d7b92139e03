/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "h5/h5_sandbox.h"

#include <seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

enum when {
	ALWAYS,
	WRITING,
	UNDER_A_SANITIZER, /* builds for tests */
};

static const struct {
	int number;
	enum when when;
} allowed[] = {
	/* clang-format off */
	{SCMP_SYS(read), ALWAYS},           /* requests */
	{SCMP_SYS(write), ALWAYS},          /* answers */
	{SCMP_SYS(pread64), ALWAYS},        /* the file */
	{SCMP_SYS(pwrite64), WRITING},      /* the file */
	{SCMP_SYS(ftruncate), WRITING},     /* HDF5 cuts the file to what it has allocated */
	{SCMP_SYS(fstat), ALWAYS},          /* the file's size */
	{SCMP_SYS(newfstatat), ALWAYS},     /* the same: how newer C libraries spell it */
	{SCMP_SYS(brk), ALWAYS},            /* malloc */
	{SCMP_SYS(mremap), ALWAYS},         /* realloc of large blocks */
	{SCMP_SYS(munmap), ALWAYS},         /* free of large blocks */
	{SCMP_SYS(madvise), ALWAYS},        /* free gives pages back */
	{SCMP_SYS(clock_gettime), ALWAYS},  /* HDF5 asks for the time, where the kernel maps no clock */
	{SCMP_SYS(gettimeofday), ALWAYS},   /* the same */
	{SCMP_SYS(time), ALWAYS},           /* the same */
	{SCMP_SYS(clock_nanosleep), ALWAYS},/* HDF5 reads again after a nanosecond where a checksum is wrong */
	{SCMP_SYS(nanosleep), ALWAYS},      /* the same, in older C libraries */
	{SCMP_SYS(futex), ALWAYS},          /* HDF5's global lock, were it ever contended */
	{SCMP_SYS(rt_sigreturn), ALWAYS},   /* the end of a signal handler of the C library's */
	{SCMP_SYS(restart_syscall), ALWAYS},/* the kernel's own, after a stop and a continue */
	{SCMP_SYS(exit), ALWAYS},           /* the end */
	{SCMP_SYS(exit_group), ALWAYS},     /* the end */
	{SCMP_SYS(rt_sigprocmask), ALWAYS}, /* abort(), where HDF5 or malloc finds its own state broken */
	{SCMP_SYS(gettid), ALWAYS},         /* abort() */
	{SCMP_SYS(getpid), ALWAYS},         /* abort(), and HDF5's file identity */
	{SCMP_SYS(tgkill), ALWAYS},         /* abort() */
	{SCMP_SYS(sigaltstack), UNDER_A_SANITIZER},  /* a sanitizer's end of the process */
	{SCMP_SYS(sched_yield), UNDER_A_SANITIZER},  /* its locks */
	{SCMP_SYS(readlink), UNDER_A_SANITIZER},     /* its reports */
	{SCMP_SYS(rt_sigaction), UNDER_A_SANITIZER}, /* its handlers */
	/* clang-format on */
};

/* What is limited lower already, as on many a login node, stays so. */
static bool set_limit(__rlimit_resource_t what, uint64_t value)
{
	struct rlimit limit;

	if (getrlimit(what, &limit) < 0)
		return false;
	if (limit.rlim_max == RLIM_INFINITY || value < limit.rlim_max)
		limit.rlim_max = (rlim_t)value;
	if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > limit.rlim_max)
		limit.rlim_cur = limit.rlim_max;
	return setrlimit(what, &limit) == 0;
}

/* Memory may be mapped, but nothing in it may become code. */
static bool allow_mappings(scmp_filter_ctx filter)
{
	return seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
		       SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0)) == 0 &&
	       seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
		       SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0)) == 0;
}

static bool close_in(bool writing)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
	bool ok = filter && allow_mappings(filter);

	for (size_t i = 0; ok && i < sizeof allowed / sizeof allowed[0]; i++) {
		if ((allowed[i].when == WRITING && !writing) ||
			(allowed[i].when == UNDER_A_SANITIZER && !SANITIZED))
			continue;
		ok = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i].number, 0) == 0;
	}
	ok = ok && seccomp_load(filter) == 0;
	seccomp_release(filter);
	return ok;
}

bool h5_sandbox_enter(uint64_t memory, uint64_t cpu_seconds, uint64_t file_bytes)
{
	/* Nobody is left to answer to when the parent has gone. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0 ||
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return false;
	/* A sanitizer's shadow memory takes terabytes of addresses. */
	if (!SANITIZED && !set_limit(RLIMIT_AS, memory))
		return false;
	return set_limit(RLIMIT_CPU, cpu_seconds) && set_limit(RLIMIT_FSIZE, file_bytes) &&
	       set_limit(RLIMIT_CORE, 0) && close_in(file_bytes > 0);
}
