#ifndef VALUE_PATH_H
#define VALUE_PATH_H
#include "base/strbuf.h"
#include "value/value.h"
void path_add_key(struct strbuf *b, struct val key);
#endif
