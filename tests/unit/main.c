/* SPDX-License-Identifier: MIT */
/* Run every suite of suites.def, or those that the arguments name. */
#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUITE(name) Suite *suite_##name(void);
#include "suites.def"
#undef SUITE

static const struct {
	const char *name;
	Suite *(*make)(void);
} suites[] = {
#define SUITE(name) {#name, suite_##name},
#include "suites.def"
#undef SUITE
};

/* Refuse what is too large, as malloc does, instead of stopping: tests ask for it. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

static bool wanted(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return true;
	return argc < 2;
}

int main(int argc, char **argv)
{
	SRunner *runner = srunner_create(NULL);
	int chosen = 0;

	for (size_t i = 0; i < sizeof suites / sizeof suites[0]; i++) {
		if (!wanted(suites[i].name, argc, argv))
			continue;
		srunner_add_suite(runner, suites[i].make());
		chosen++;
	}
	if (chosen == 0) {
		fprintf(stderr, "no suite of that name\n");
		return 2;
	}
	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
