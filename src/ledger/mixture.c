/* SPDX-License-Identifier: MIT */
#define _DEFAULT_SOURCE /* lgamma_r: lgamma writes a global */
#include "ledger/mixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double log_gamma(double x)
{
	int sign;
	return lgamma_r(x, &sign);
}

static uint64_t total_of(const uint64_t *n, size_t k)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < k; i++)
		sum += n[i];
	return sum;
}

double mixture_distance(const double *p, const double *q, size_t k)
{
	double sum = 0;
	for (size_t i = 0; i < k; i++)
		sum += fabs(p[i] - q[i]);
	return sum / 2;
}

void mixture_shares(const uint64_t *n, size_t k, double *share)
{
	uint64_t total = total_of(n, k);
	for (size_t i = 0; i < k; i++)
		share[i] = total ? (double)n[i] / (double)total : 0;
}

double mixture_log_evalue(const double *p, const uint64_t *n, size_t k, double c, double scale)
{
	double total = 0, sum = 0;
	for (size_t i = 0; i < k; i++) {
		double x = (double)n[i] / scale;
		if (n[i] == 0)
			continue;
		if (p[i] <= 0)
			return INFINITY;
		sum += log_gamma(c * p[i] + x) - log_gamma(c * p[i]) - x * log(p[i]);
		total += x;
	}
	return sum + log_gamma(c) - log_gamma(c + total);
}

double mixture_ratio(const uint64_t *a, const uint64_t *b, size_t k, double *df)
{
	double na = (double)total_of(a, k), nb = (double)total_of(b, k), g = 0;
	size_t used = 0;
	for (size_t i = 0; i < k; i++) {
		double x = (double)a[i], y = (double)b[i], both = x + y;
		if (both == 0)
			continue;
		used++;
		if (x > 0)
			g += x * log(x / (both * na / (na + nb)));
		if (y > 0)
			g += y * log(y / (both * nb / (na + nb)));
	}
	*df = used > 1 ? (double)(used - 1) : 0;
	return g > 0 ? 2 * g : 0;
}

/*
 * The upper incomplete gamma function, regularised: below a + 1 by the series of the lower one,
 * above by its continued fraction (Lentz), whose logarithm does not underflow.
 */
double chi_square_log_tail(double x, double df)
{
	double a = df / 2, z = x / 2;
	if (!(df > 0) || !(x > 0))
		return 0;
	double scale = a * log(z) - z - log_gamma(a);
	if (z < a + 1) {
		double term = 1 / a, sum = term;
		for (int i = 1; i < 10000 && term > sum * 1e-16; i++)
			sum += term *= z / (a + i);
		double lower = exp(scale) * sum;
		return lower < 1 ? log1p(-lower) : -INFINITY;
	}
	const double tiny = 1e-300;
	double b = z + 1 - a, c = 1 / tiny, d = 1 / b, h = d;
	for (int i = 1; i < 10000; i++) {
		double an = -i * (i - a);
		b += 2;
		d = an * d + b;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		c = b + an / c;
		c = fabs(c) < tiny ? tiny : c;
		h *= d * c;
		if (fabs(d * c - 1) < 1e-15)
			break;
	}
	return scale + log(h);
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* The median of values, which are sorted for it; NAN of none. */
static double median_of(double *values, size_t n)
{
	if (n == 0)
		return NAN;
	qsort(values, n, sizeof *values, compare_doubles);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

double mixture_overdispersion(const uint64_t *rows, size_t count, size_t k)
{
	uint64_t *sum = calloc(k + 1, sizeof *sum);
	double *statistic = calloc(count + 1, sizeof *statistic);
	double result = 1;
	size_t used = 0, n = 0;
	if (!sum || !statistic)
		goto out;
	for (size_t r = 0; r < count; r++)
		for (size_t i = 0; i < k; i++)
			sum[i] += rows[r * k + i];
	double total = (double)total_of(sum, k);
	for (size_t i = 0; i < k; i++)
		used += sum[i] > 0;
	if (count < 8 || used < 2)
		goto out;
	double df = (double)(used - 1);
	for (size_t r = 0; r < count; r++) {
		double of_row = (double)total_of(rows + r * k, k), x2 = 0;
		if (of_row == 0)
			continue;
		for (size_t i = 0; i < k; i++) {
			double expected = of_row * (double)sum[i] / total;
			double off = (double)rows[r * k + i] - expected;
			if (expected > 0)
				x2 += off * off / expected;
		}
		statistic[n++] = x2 / df;
	}
	/* Wilson and Hilferty: the median of a chi-square variable is about df (1 - 2/(9 df))^3. */
	double usual = pow(1 - 2 / (9 * df), 3);
	double ratio = median_of(statistic, n) / usual;
	result = ratio > 1 ? ratio : 1;
out:
	free(sum);
	free(statistic);
	return result;
}

double mixture_blend_excess(const double *w, const uint64_t *n, size_t k, uint64_t t)
{
	double harmonic = 0, worst = -INFINITY, slack = 1e-9 * (double)t;
	for (size_t j = 1; j < k; j++)
		harmonic += 1 / (double)j;
	for (size_t i = 0; i < k; i++) {
		double surplus = (double)n[i] - w[i] * (double)t;
		worst = fmax(worst, fmax(surplus - 1, -surplus - harmonic) - slack);
	}
	return worst;
}

size_t mixture_blend_next(const double *w, uint64_t *n, size_t k, uint64_t t)
{
	double at = t > 1 ? (double)t : 1, best = 0;
	size_t pick = 0;
	for (size_t i = 0; i < k; i++) {
		/* volatile: no fused multiply-add, which rounds once where the original rounds
		 * twice. */
		volatile double product = w[i] * at;
		double deficit = product - (double)n[i];
		if (i == 0 || deficit > best) {
			best = deficit;
			pick = i;
		}
	}
	n[pick]++;
	return pick;
}

/* Whether the rows [from, to) are nearer to the reference than half of what they left it by. */
static bool is_back(const double *reference, const uint64_t *rows, size_t from, size_t to, size_t k,
	double distance, uint64_t *sum, double *share)
{
	memset(sum, 0, k * sizeof *sum);
	for (size_t r = from; r < to; r++)
		for (size_t i = 0; i < k; i++)
			sum[i] += rows[r * k + i];
	mixture_shares(sum, k, share);
	return mixture_distance(reference, share, k) < distance / 2;
}

bool mixture_find_transient(const uint64_t *reference, const uint64_t *rows, size_t count, size_t k,
	size_t longest, double overdispersion, double log_alpha, struct mixture_transient *out)
{
	*out = (struct mixture_transient){0};
	uint64_t *sum = calloc(k + 1, sizeof *sum);
	double *share = calloc(2 * k + 1, sizeof *share), *usual = share ? share + k : NULL;
	bool found = false;
	if (!sum || !share || total_of(reference, k) == 0)
		goto out;
	if (count < longest)
		longest = count;
	/*
	 * Of a shift that ends, G over the first L steps grows with L up to its end and falls
	 * behind it: the largest one marks the end. Every L is a look, so the level is divided by
	 * their number.
	 */
	double best = 0, best_df = 0;
	for (size_t r = 0; r < longest; r++) {
		for (size_t i = 0; i < k; i++)
			sum[i] += rows[r * k + i];
		double df, g = mixture_ratio(sum, reference, k, &df) / overdispersion;
		if (g > best) {
			best = g;
			best_df = df;
			out->steps = r + 1;
			mixture_shares(sum, k, share);
			mixture_shares(reference, k, usual);
			out->distance = mixture_distance(share, usual, k);
		}
	}
	if (out->steps == 0)
		goto out;
	out->log_p = chi_square_log_tail(best, best_df) + log((double)longest);
	found = out->log_p < log_alpha;
	size_t rest = count - out->steps;
	out->open = rest < out->steps / 2 + 1;
	if (found && rest) {
		size_t to = out->steps + (rest < 2 * out->steps + 50 ? rest : 2 * out->steps + 50);
		out->returns = is_back(usual, rows, out->steps, to, k, out->distance, sum, share);
	}
out:
	free(sum);
	free(share);
	return found;
}

/* Values that are there, in order. */
static size_t keep_values(const double *from, size_t n, double *to)
{
	size_t kept = 0;
	for (size_t i = 0; i < n; i++)
		if (isfinite(from[i]))
			to[kept++] = from[i];
	return kept;
}

/* Natural logarithm of the two-sided tail of the normal distribution. */
static double normal_log_tail(double z)
{
	return chi_square_log_tail(z * z, 1);
}

bool mixture_find_shift(const double *before, size_t n_before, const double *after, size_t n_after,
	size_t longest, double log_alpha, struct mixture_transient *out, double *usual)
{
	*out = (struct mixture_transient){0};
	*usual = NAN;
	double *values = calloc(n_before + n_after + 1, sizeof *values);
	bool found = false;
	if (!values)
		return false;
	size_t n = keep_values(before, n_before, values);
	if (n < 16)
		goto out;
	double middle = median_of(values, n);
	*usual = middle;
	for (size_t i = 0; i < n; i++)
		values[i] = fabs(values[i] - middle);
	double spread = 1.4826 * median_of(values, n);
	/* A quantity that hardly varies still varies in its last digits. */
	spread = fmax(spread, 1e-3 * fabs(middle));
	if (!(spread > 0))
		goto out;
	double sum = 0, best = 0, mean = 0;
	size_t seen = 0;
	if (n_after < longest)
		longest = n_after;
	for (size_t i = 0; i < longest; i++) {
		if (!isfinite(after[i]))
			continue;
		/* One wild value is no shift: it counts as 6 spreads at the most. */
		double off = (after[i] - middle) / spread;
		sum += fmax(-6, fmin(6, off));
		mean += after[i];
		seen++;
		/* The reference itself is known to spread / sqrt(n) only. */
		double z = sum / sqrt((double)seen * (1 + (double)seen / (double)n));
		if (seen >= 3 && fabs(z) > fabs(best)) {
			best = z;
			out->steps = i + 1;
			out->distance = (mean / (double)seen - middle) / fabs(middle);
		}
	}
	if (out->steps == 0 || middle == 0)
		goto out;
	out->log_p = normal_log_tail(best) + log((double)longest);
	found = out->log_p < log_alpha;
	size_t rest = n_after - out->steps;
	out->open = rest < out->steps / 2 + 1;
	if (found && rest) {
		size_t look = rest < 2 * out->steps + 50 ? rest : 2 * out->steps + 50;
		size_t kept = keep_values(after + out->steps, look, values);
		double later = (median_of(values, kept) - middle) / fabs(middle);
		out->returns = kept > 0 && fabs(later) < fabs(out->distance) / 2;
	}
out:
	free(values);
	return found;
}

double mixture_correlation(const double *a, const double *b, size_t n)
{
	double sa = 0, sb = 0, saa = 0, sbb = 0, sab = 0, m = 0;
	for (size_t i = 0; i < n; i++) {
		if (!isfinite(a[i]) || !isfinite(b[i]))
			continue;
		m++;
		sa += a[i];
		sb += b[i];
	}
	if (m < 8)
		return NAN;
	for (size_t i = 0; i < n; i++) {
		if (!isfinite(a[i]) || !isfinite(b[i]))
			continue;
		double x = a[i] - sa / m, y = b[i] - sb / m;
		saa += x * x;
		sbb += y * y;
		sab += x * y;
	}
	return saa > 0 && sbb > 0 ? sab / sqrt(saa * sbb) : NAN;
}
