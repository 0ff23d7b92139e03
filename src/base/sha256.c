/* SPDX-License-Identifier: MIT */
#include "base/sha256.h"

#include <openssl/evp.h>

void sha256_begin(struct sha256 *s)
{
	s->context = EVP_MD_CTX_new();
	s->failed = !s->context || EVP_DigestInit_ex(s->context, EVP_sha256(), NULL) != 1;
}

void sha256_add(struct sha256 *s, const void *bytes, size_t n)
{
	if (!s->failed)
		s->failed = EVP_DigestUpdate(s->context, bytes, n) != 1;
}

bool sha256_end(struct sha256 *s, uint8_t digest[SHA256_BYTES])
{
	if (!s->failed)
		s->failed = EVP_DigestFinal_ex(s->context, digest, NULL) != 1;
	EVP_MD_CTX_free(s->context);
	s->context = NULL;
	return !s->failed;
}

bool sha256_of(const void *bytes, size_t n, uint8_t digest[SHA256_BYTES])
{
	struct sha256 s;

	sha256_begin(&s);
	sha256_add(&s, bytes, n);
	return sha256_end(&s, digest);
}

void sha256_text(const uint8_t digest[SHA256_BYTES], char text[SHA256_TEXT])
{
	static const char digits[] = "0123456789abcdef";

	for (int i = 0; i < SHA256_BYTES; i++) {
		text[2 * i] = digits[digest[i] >> 4];
		text[2 * i + 1] = digits[digest[i] & 15];
	}
	text[SHA256_TEXT - 1] = '\0';
}
