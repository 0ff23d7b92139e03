/* SPDX-License-Identifier: MIT */
/*
 * Debian's static HDF5 (1.14) has a driver for files in S3 and wants libcurl for it, whose static
 * library wants what Debian has no static library of. The helper opens no file by a name, and its
 * sandbox knows no sockets: these say no to whoever asks. In the portable helper only.
 */
#include <stddef.h>

#define CURLE_FAILED_INIT 2

int curl_global_init(long flags);
void curl_global_cleanup(void);
void *curl_easy_init(void);
void curl_easy_cleanup(void *handle);
int curl_easy_perform(void *handle);
int curl_easy_setopt(void *handle, int option, ...);
void *curl_slist_append(void *list, const char *text);
void curl_slist_free_all(void *list);

int curl_global_init(long flags)
{
	(void)flags;
	return CURLE_FAILED_INIT;
}

void curl_global_cleanup(void)
{
}

void *curl_easy_init(void)
{
	return NULL;
}

void curl_easy_cleanup(void *handle)
{
	(void)handle;
}

int curl_easy_perform(void *handle)
{
	(void)handle;
	return CURLE_FAILED_INIT;
}

int curl_easy_setopt(void *handle, int option, ...)
{
	(void)handle;
	(void)option;
	return CURLE_FAILED_INIT;
}

void *curl_slist_append(void *list, const char *text)
{
	(void)list;
	(void)text;
	return NULL;
}

void curl_slist_free_all(void *list)
{
	(void)list;
}
