/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "audit/environment.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define MEMORY_MAX ((size_t)16 << 20)
#define PACKAGES_MAX ((size_t)1 << 16)
#define NAME_BYTES_MAX 100u
#define ENTRIES_MAX 1000000u /* looked at in one folder */

void environment_init(struct environment *env)
{
	*env = (struct environment){0};
	arena_init(&env->arena, MEMORY_MAX);
}

void environment_release(struct environment *env)
{
	array_release(&env->packages);
	arena_release(&env->arena);
}

/* Lower case, one dash for each run of "-", "_" and "."; false where it is no name of a package. */
static bool normalise(struct slice name, char *out)
{
	size_t n = 0;

	if (name.n == 0 || name.n >= NAME_BYTES_MAX)
		return false;
	for (size_t i = 0; i < name.n; i++) {
		unsigned char c = (unsigned char)name.p[i];
		bool dash = c == '-' || c == '_' || c == '.';
		if (!dash && !isalnum(c))
			return false;
		if (dash && (i == 0 || i + 1 == name.n))
			return false;
		if (!dash)
			out[n++] = (char)tolower(c);
		else if (out[n - 1] != '-')
			out[n++] = '-';
	}
	out[n] = '\0';
	return true;
}

/* One project that is distributed under two names. */
static const char *project_of(const char *name)
{
	return strcmp(name, "pytorch-lightning") == 0 ? "lightning" : name;
}

static bool told_already(const struct environment *env, const char *name)
{
	for (size_t i = 0; i < env->packages.count; i++)
		if (env->packages.items[i].told && strcmp(env->packages.items[i].name, name) == 0)
			return true;
	return false;
}

static bool add(struct environment *env, struct slice name, struct slice version, bool told)
{
	char normal[NAME_BYTES_MAX];
	struct package p = {.told = told};

	if (!normalise(name, normal) || !version_parse(version, &p.version))
		return false;
	if (told && told_already(env, project_of(normal)))
		return true;
	p.name = arena_strdup(&env->arena, slice_of(project_of(normal)));
	p.text = arena_strdup(&env->arena, version);
	struct package *slot = p.name && p.text ? array_push(&env->packages, PACKAGES_MAX) : NULL;
	if (slot)
		*slot = p;
	return slot != NULL;
}

/* "accelerate=1.10.1" and "accelerate==1.10.1". */
static bool split(struct slice requirement, struct slice *name, struct slice *version)
{
	const char *equals = memchr(requirement.p, '=', requirement.n);

	if (!equals)
		return false;
	*name = (struct slice){requirement.p, (size_t)(equals - requirement.p)};
	*version = (struct slice){equals + 1, requirement.n - name->n - 1};
	if (version->n > 0 && version->p[0] == '=')
		*version = (struct slice){version->p + 1, version->n - 1};
	return true;
}

bool environment_tell(struct environment *env, struct slice requirement)
{
	struct slice name, version;

	return split(requirement, &name, &version) && add(env, name, version, true);
}

/* Name and version as they are compared. */
static bool parse(struct slice requirement, char *project, struct version *version)
{
	char normal[NAME_BYTES_MAX];
	struct slice name, text;

	if (!split(requirement, &name, &text) || !normalise(name, normal) ||
		!version_parse(text, version))
		return false;
	strcpy(project, project_of(normal));
	return true;
}

const char *environment_contradiction(const char *const *told, size_t n, struct slice requirement)
{
	char wanted[NAME_BYTES_MAX], other[NAME_BYTES_MAX];
	struct version version, before;

	if (!parse(requirement, wanted, &version))
		return NULL;
	for (size_t i = 0; i < n; i++)
		if (parse(slice_of(told[i]), other, &before) && strcmp(wanted, other) == 0 &&
			version_compare(&version, &before) != 0)
			return told[i];
	return NULL;
}

/* "torch-2.6.0+cu124.dist-info", "torch-2.0.1-py3.11.egg-info": the version is what follows the
 * last dash that a version follows. */
static void take_entry(struct environment *env, const char *entry)
{
	struct slice s = slice_of(entry);
	const struct slice endings[] = {SLICE(".dist-info"), SLICE(".egg-info")};
	bool ends = false;

	for (size_t i = 0; i < 2 && !ends; i++) {
		ends = slice_ends(s, endings[i]);
		if (ends)
			s.n -= endings[i].n;
	}
	if (!ends)
		return;
	size_t python = slice_find(s, SLICE("-py3"));
	if (python != SIZE_MAX)
		s.n = python;
	for (size_t i = s.n; i-- > 0;)
		if (s.p[i] == '-' && add(env, (struct slice){s.p, i},
					     (struct slice){s.p + i + 1, s.n - i - 1}, false))
			return;
}

static DIR *open_folder(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

/* Call `take` for each entry of a folder; false where it could not be opened. */
static bool each_entry(struct environment *env, int at, const char *folder,
	void (*take)(struct environment *env, int at, const char *entry))
{
	DIR *dir = open_folder(at, folder);
	struct dirent *entry;

	if (!dir)
		return false;
	for (size_t i = 0; i < ENTRIES_MAX && (entry = readdir(dir)); i++)
		take(env, dirfd(dir), entry->d_name);
	closedir(dir);
	return true;
}

static void take_package(struct environment *env, int at, const char *entry)
{
	(void)at;
	take_entry(env, entry);
}

/* Where one Python keeps its packages: `prefix` says that something was found. */
static void take_python(struct environment *env, int at, const char *entry)
{
	static const char *const folders[] = {"site-packages", "dist-packages"};
	DIR *python = strncmp(entry, "python3", 7) == 0 ? open_folder(at, entry) : NULL;

	if (!python)
		return;
	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
		if (each_entry(env, dirfd(python), folders[i], take_package))
			env->prefix = "";
	closedir(python);
}

int environment_read(struct environment *env, const char *prefix, struct error *e)
{
	DIR *root = open_folder(AT_FDCWD, prefix);

	if (!root)
		return fail_os(e, errno, "it cannot be opened");
	env->prefix = NULL;
	each_entry(env, dirfd(root), "lib", take_python);
	each_entry(env, dirfd(root), "lib64", take_python);
	closedir(root);
	if (!env->prefix)
		return fail(e, RP_E_NOT_FOUND, ERROR_NO_OFFSET,
			"there is no lib/python3*/site-packages below it");
	env->prefix = arena_strdup(&env->arena, slice_of(prefix));
	return env->prefix ? RP_OK
			   : fail(e, RP_E_MEMORY, ERROR_NO_OFFSET, "no memory for its name");
}

enum package_known environment_find(
	const struct environment *env, struct slice name, const struct package **out)
{
	*out = NULL;
	for (int told = 1; env && told >= 0 && !*out; told--) {
		for (size_t i = 0; i < env->packages.count; i++) {
			const struct package *p = &env->packages.items[i];
			if (p->told != (told != 0) || !slice_is(name, p->name))
				continue;
			if (*out && version_compare(&(*out)->version, &p->version) != 0)
				return PACKAGE_AMBIGUOUS;
			*out = p;
		}
	}
	return *out ? PACKAGE_KNOWN : PACKAGE_UNKNOWN;
}
