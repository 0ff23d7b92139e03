/* SPDX-License-Identifier: MIT */
/*
 * SHA-256 (FIPS 180-4), by OpenSSL, which uses the processor's own instructions: for what must not
 * be altered on purpose. XXH3 is for accidents.
 */
#ifndef BASE_SHA256_H
#define BASE_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHA256_BYTES 32
#define SHA256_TEXT (2 * SHA256_BYTES + 1)

struct sha256 {
	void *context; /* OpenSSL's; NULL where there is no memory */
	bool failed;
};

/* Begin a digest; each must be ended, or begun again. */
void sha256_begin(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *bytes, size_t n);

/* False where memory or OpenSSL failed at any time since it was begun. */
bool sha256_end(struct sha256 *s, uint8_t digest[SHA256_BYTES]);

/* The digest of bytes in hand. */
bool sha256_of(const void *bytes, size_t n, uint8_t digest[SHA256_BYTES]);

/* The digest in lower-case hexadecimal digits, NUL-terminated. */
void sha256_text(const uint8_t digest[SHA256_BYTES], char text[SHA256_TEXT]);

#endif
