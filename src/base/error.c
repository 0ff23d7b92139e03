/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "base/error.h"

#include <errno.h>
#include <string.h>

static void record(struct error *e, int status, int os_error, uint64_t offset)
{
	e->status = status;
	e->os_error = os_error;
	e->offset = offset;
}

/* Append what fits. */
static void append(char *text, size_t size, const char *more)
{
	size_t used = strlen(text), n = strlen(more);

	if (n > size - 1 - used)
		n = size - 1 - used;
	memcpy(text + used, more, n);
	text[used + n] = '\0';
}

int fail(struct error *e, int status, uint64_t offset, const char *format, ...)
{
	if (!e || e->status != RP_OK)
		return e ? e->status : status;
	va_list args;
	va_start(args, format);
	vsnprintf(e->text, sizeof e->text, format, args);
	va_end(args);
	record(e, status, 0, offset);
	return status;
}

int fail_os(struct error *e, int os_error, const char *format, ...)
{
	if (!e || e->status != RP_OK)
		return e ? e->status : RP_E_IO;
	va_list args;
	va_start(args, format);
	vsnprintf(e->text, sizeof e->text, format, args);
	va_end(args);

	/* Unlike strerror, thread-safe and the same in every locale. */
	const char *words = strerrordesc_np(os_error);
	append(e->text, sizeof e->text, ": ");
	append(e->text, sizeof e->text, words ? words : "unknown error");
	record(e, RP_E_IO, os_error, ERROR_NO_OFFSET);
	return RP_E_IO;
}

int fail_wrap(struct error *e, const char *format, ...)
{
	if (!e || e->status == RP_OK)
		return e ? e->status : RP_E_INTERNAL;
	char whole[sizeof e->text];
	va_list args;
	va_start(args, format);
	vsnprintf(whole, sizeof whole, format, args);
	va_end(args);

	append(whole, sizeof whole, ": ");
	append(whole, sizeof whole, e->text);
	memcpy(e->text, whole, sizeof whole);
	return e->status;
}

bool os_refuses(int os_error)
{
	switch (os_error) {
	case EACCES:
	case EPERM:
	case ENOENT:
	case ENOTDIR:
	case ELOOP:
		return true;
	default:
		return false;
	}
}

bool error_of_system(const struct error *e)
{
	return e->status == RP_E_MEMORY || (e->status == RP_E_IO && !os_refuses(e->os_error));
}

const char *status_name(int status)
{
	switch (status) {
	case RP_OK:
		return "ok";
	case RP_E_ARGUMENT:
		return "argument";
	case RP_E_MEMORY:
		return "memory";
	case RP_E_IO:
		return "io";
	case RP_E_FORMAT:
		return "format";
	case RP_E_LIMIT:
		return "limit";
	case RP_E_UNSUPPORTED:
		return "unsupported";
	case RP_E_NOT_FOUND:
		return "not-found";
	case RP_E_CHANGED:
		return "changed";
	default:
		return "internal";
	}
}
