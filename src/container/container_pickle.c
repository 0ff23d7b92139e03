/* SPDX-License-Identifier: MIT */
/* A file that is one pickle: what pickle.dump() writes. */
#include <string.h>

#include "base/text.h"
#include "container/document.h"
#include "container/pickle.h"
#include "container/rebuild.h"
#include "container/torch.h"

/*
 * Protocol 2 and later say PROTO and the number, and 4 and later a frame. Before that nothing but
 * habit tells: a file begins with a container and its memo slot, or with an instance of a class.
 */
static unsigned probe(const struct source *s, struct slice head)
{
	(void)s;
	if (head.n < 2)
		return 0;
	unsigned char protocol = (unsigned char)head.p[1];
	if (head.p[0] == '\x80' && protocol >= 2 && protocol <= 5)
		return protocol >= 4 && head.n > 2 && head.p[2] == '\x95' ? 24 : 15;
	if (slice_starts(head, SLICE("}q")) || slice_starts(head, SLICE("]q")) ||
		slice_starts(head, SLICE("(dp")) || slice_starts(head, SLICE("(lp")) ||
		slice_starts(head, SLICE("ccopy_reg\n")) ||
		slice_starts(head, SLICE("ccollections\n")))
		return 10;
	return 0;
}

static int read(struct document *d, struct findings *sink, struct error *e)
{
	struct rebuild r;
	int status = document_load(d, "a pickle", "pickle-bytes", d->limits->pickle_bytes, e);

	if (status < 0)
		return status;
	rebuild_init(&r, d, sink);
	struct pickle p = {.arena = &d->arena, .limits = d->limits};
	struct error why = ERROR_INIT;
	status = pickle_decode(&p, d->bytes, &why);
	pickle_judge(&p, d->name, sink);
	if (status < 0) {
		torch_pickle_failed(d, sink, "", p.truncated, &why, e);
	} else {
		d->root = p.root;
		d->pickle_protocol = p.protocol;
		if (p.end < d->source.size) {
			struct finding *f = finding_add(sink, FINDING_I104,
				"%llu bytes follow the end of the pickle",
				(unsigned long long)(d->source.size - p.end));
			f->severity = SEVERITY_WARNING;
			finding_place(sink, f, d->name, (struct slice){0}, p.end);
		}
		torch_take_classes(d, &p);
		status = rebuild_graph(&r, &d->root, e);
	}
	pickle_release(&p);
	rebuild_release(&r);
	return status;
}

const struct container container_pickle = {
	.name = "pickle",
	.summary = "Python pickle (pickle.dump)",
	.probe = probe,
	.read = read,
};
