/* SPDX-License-Identifier: MIT */
/* The rule of OLMo-core's training code. */
#include <math.h>

#include "curve/spikes.h"

struct olmo_history {
	double ring[OLMO_WINDOW];
	size_t n;
};

/* Judge a value by those before it, in the order in which they came, and keep it. */
static bool olmo_spike(struct olmo_history *h, double v)
{
	double sum = 0, square = 0;
	bool spike = false;

	if (h->n >= OLMO_WINDOW) {
		for (size_t i = h->n - OLMO_WINDOW; i < h->n; i++)
			sum += h->ring[i % OLMO_WINDOW];
		double mean = sum / OLMO_WINDOW;
		for (size_t i = h->n - OLMO_WINDOW; i < h->n; i++)
			square += (h->ring[i % OLMO_WINDOW] - mean) *
				  (h->ring[i % OLMO_WINDOW] - mean);
		double deviation = sqrt(square / OLMO_WINDOW);
		spike = deviation >= 1e-10 && v > mean + OLMO_DEVIATIONS * deviation;
	}
	h->ring[h->n++ % OLMO_WINDOW] = v;
	return spike;
}

struct olmo olmo_score(const double *loss, const double *grad_norm, const bool *has_grad_norm,
	size_t n, bool *flags)
{
	struct olmo o = {.points = n, .total = NAN, .score = NAN};
	struct olmo_history of_loss = {.n = 0}, of_grad = {.n = 0};
	size_t recent = 0, begin = n > OLMO_SCORE ? n - OLMO_SCORE : 0;

	for (size_t i = 0; i < n; i++) {
		bool spike = loss && olmo_spike(&of_loss, loss[i]);
		if (grad_norm && (!has_grad_norm || has_grad_norm[i]))
			spike |= olmo_spike(&of_grad, grad_norm[i]);
		o.spikes += spike;
		recent += spike && i >= begin;
		if (flags)
			flags[i] = spike;
	}
	if (n >= OLMO_WINDOW)
		o.total = (double)o.spikes / (double)n;
	if (n >= OLMO_SCORE)
		o.score = (double)recent / OLMO_SCORE;
	return o;
}
