#include "value/path.h"
#include "base/text.h"
#include <ctype.h>
void path_add_key(struct strbuf *b, struct val key)
{
	if (key.kind == VAL_INT) { strbuf_printf(b, "[%lld]", (long long)key.i); return; }
	struct slice s = val_slice(key);
	bool id = s.n > 0;
	for (size_t i = 0; i < s.n; i++) id = id && (isalnum((unsigned char)s.p[i]) || s.p[i]=='_');
	if (id) { strbuf_add_char(b, '.'); strbuf_add_slice(b, s); }
	else { strbuf_add_text(b, "[\""); strbuf_add_slice(b, s); strbuf_add_text(b, "\"]"); }
}
