/* SPDX-License-Identifier: MIT */
/*
 * After M. Matsumoto and T. Nishimura, "Mersenne Twister: a 623-dimensionally equidistributed
 * uniform pseudorandom number generator", ACM TOMACS 8 (1998), and their initialisation of 2002.
 */
#include "rng/mt19937.h"

#include "rng/seed_sequence.h"

#define N MT19937_WORDS
#define M 397u

void mt19937_seed(struct mt19937 *m, uint32_t seed)
{
	m->s[0] = seed;
	for (uint32_t i = 1; i < N; i++)
		m->s[i] = 1812433253u * (m->s[i - 1] ^ (m->s[i - 1] >> 30)) + i;
	m->pos = N;
}

void mt19937_seed_array(struct mt19937 *m, const uint32_t *key, size_t n)
{
	uint32_t *s = m->s;
	uint32_t i = 1;
	size_t j = 0;

	mt19937_seed(m, 19650218u);
	for (size_t k = n > N ? n : N; k > 0; k--) {
		s[i] = (s[i] ^ ((s[i - 1] ^ (s[i - 1] >> 30)) * 1664525u)) + key[j] + (uint32_t)j;
		if (++i == N) {
			s[0] = s[N - 1];
			i = 1;
		}
		if (++j == n)
			j = 0;
	}
	for (uint32_t k = N - 1; k > 0; k--) {
		s[i] = (s[i] ^ ((s[i - 1] ^ (s[i - 1] >> 30)) * 1566083941u)) - i;
		if (++i == N) {
			s[0] = s[N - 1];
			i = 1;
		}
	}
	s[0] = 0x80000000u;
}

void mt19937_seed_python(struct mt19937 *m, uint64_t magnitude)
{
	const uint32_t key[2] = {(uint32_t)magnitude, (uint32_t)(magnitude >> 32)};

	mt19937_seed_array(m, key, key[1] ? 2 : 1);
}

void mt19937_seed_sequence(struct mt19937 *m, uint64_t seed)
{
	struct seed_sequence sequence;

	seed_sequence_init_u64(&sequence, seed);
	seed_sequence_generate(&sequence, m->s, N);
	m->s[0] = 0x80000000u;
	m->pos = N - 1;
}

static inline uint32_t twisted(uint32_t high, uint32_t low, uint32_t far)
{
	uint32_t y = (high & 0x80000000u) | (low & 0x7fffffffu);

	return far ^ (y >> 1) ^ (-(y & 1) & 0x9908b0dfu);
}

/*
 * The recurrence in place. Word k needs its successor and word k + 397 (mod 624), which is old for
 * k < 227 and new from there on, so each loop reads nothing that it writes itself and vectorises.
 * The trip counts of the long loops are multiples of eight because gcc 12 vectorises no others at
 * -O2.
 */
static inline __attribute__((always_inline)) void twist(uint32_t *s)
{
	uint32_t k;

	for (k = 0; k < 224; k++)
		s[k] = twisted(s[k], s[k + 1], s[k + M]);
	for (; k < N - M; k++)
		s[k] = twisted(s[k], s[k + 1], s[k + M]);
	for (k = N - M; k < N - M + 392; k++)
		s[k] = twisted(s[k], s[k + 1], s[k - (N - M)]);
	for (; k < N - 1; k++)
		s[k] = twisted(s[k], s[k + 1], s[k - (N - M)]);
	s[N - 1] = twisted(s[N - 1], s[0], s[M - 1]);
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static void twist_avx2(uint32_t *s)
{
	twist(s);
}
#endif

void mt19937_twist(struct mt19937 *m)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2")) {
		twist_avx2(m->s);
		return;
	}
#endif
	twist(m->s);
}

uint32_t mt19937_u32(struct mt19937 *m)
{
	if (m->pos >= N) {
		mt19937_twist(m);
		m->pos = 0;
	}
	uint32_t y = m->s[m->pos++];
	y ^= y >> 11;
	y ^= (y << 7) & 0x9d2c5680u;
	y ^= (y << 15) & 0xefc60000u;
	return y ^ (y >> 18);
}

uint64_t mt19937_u64(struct mt19937 *m)
{
	uint64_t high = mt19937_u32(m);

	return high << 32 | mt19937_u32(m);
}

double mt19937_double(struct mt19937 *m)
{
	uint32_t a = mt19937_u32(m) >> 5, b = mt19937_u32(m) >> 6;

	return (a * 67108864.0 + b) / 9007199254740992.0;
}

void mt19937_skip(struct mt19937 *m, uint64_t words)
{
	uint32_t left = N - m->pos;

	if (words <= left) {
		m->pos += (uint32_t)words;
		return;
	}
	/* The position stays in 1 … 624, as if every word had been drawn. */
	words -= left;
	for (; words > N; words -= N)
		mt19937_twist(m);
	mt19937_twist(m);
	m->pos = (uint32_t)words;
}
