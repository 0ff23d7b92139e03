/* SPDX-License-Identifier: MIT */
/*
 * old_kernel COMMAND [ARGUMENT…]: run a command as Linux 4.18 (RHEL 8) would as far as system calls
 * go: those that came later are not there (ENOSYS), for it and for what it starts.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The last one of Linux 4.18. From 5.1 on (424) numbers are the same everywhere. */
#ifdef __x86_64__
#define LAST_OLD 334 /* rseq */
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define LAST_OLD 293 /* rseq */
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "the numbers of this machine's system calls are not known here"
#endif

int main(int argc, char **argv)
{
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, LAST_OLD, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof steps / sizeof *steps, steps};

	if (argc < 2) {
		fputs("usage: old_kernel COMMAND [ARGUMENT...]\n", stderr);
		return 2;
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
		perror("old_kernel: no filter");
		return 125;
	}
	/* So that it is known to work: close_range came with 5.9. */
	if (syscall(436, 100, 100, 0) != -1 || errno != ENOSYS) {
		fputs("old_kernel: the filter does not hold\n", stderr);
		return 125;
	}
	execv(argv[1], argv + 1);
	perror(argv[1]);
	return 127;
}
