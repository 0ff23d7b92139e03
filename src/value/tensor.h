/* SPDX-License-Identifier: MIT */
/* Arrays as they lie in a file: dtype, shape, strides, place. Located, never loaded. */
#ifndef VALUE_TENSOR_H
#define VALUE_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

enum dtype {
	DTYPE_UNKNOWN,
#define DTYPE(id, name, safetensors, bits, kind) DTYPE_##id,
#include "value/dtypes.def"
#undef DTYPE
	DTYPE_COUNT
};

enum dtype_kind {
	DTYPE_KIND_OPAQUE,
	DTYPE_KIND_BOOL,
	DTYPE_KIND_UINT,
	DTYPE_KIND_INT,
	DTYPE_KIND_FLOAT,
	DTYPE_KIND_COMPLEX,
};

struct dtype_row {
	const char *name, *safetensors;
	uint16_t bytes; /* of one element */
	enum dtype_kind kind;
};

extern const struct dtype_row dtype_rows[DTYPE_COUNT];

/* The dtype called `name`, or DTYPE_UNKNOWN. */
enum dtype dtype_by_name(struct slice name);
enum dtype dtype_by_safetensors_name(struct slice name);

/* The same for NumPy's codes of the array interface protocol, without the byte order: "f4". */
enum dtype dtype_by_numpy_code(struct slice code);

static inline size_t dtype_size(enum dtype d)
{
	return dtype_rows[d].bytes;
}

/* A run of bytes that one or more tensors look into: the unit of reading. */
struct storage {
	struct slice name; /* the container's own: "data/17" */
	/*
	 * Offset in the file of the first byte, or STORAGE_NOT_LOCATED: the container can tell, for
	 * one more read (document_locate). Unused where inline_bytes is set.
	 */
	uint64_t offset;
	uint64_t length;             /* bytes */
	const uint8_t *inline_bytes; /* decoded from the pickle itself (numpy arrays), or NULL */
	uint64_t users;              /* tensors that look into it */
	uint32_t index;              /* in the document's list */
	uint32_t crc;                /* CRC-32 as stored */
	bool crc_known;              /* false: the writer did not compute it */
	bool big_endian;
	bool compressed;     /* its bytes cannot be read in place */
	bool missing;        /* named by tensors, but not in the file: it has no bytes */
	struct slice device; /* "cpu", "cuda:0"; empty where not said */
	void *origin;        /* the container's own: what it locates the bytes by */
};

#define STORAGE_NOT_LOCATED UINT64_MAX

#define TENSOR_MAX_DIMS 64

struct object;

struct tensor {
	struct storage *storage; /* NULL for meta tensors, which have no bytes */
	uint64_t first;          /* element offset of the first element in the storage */
	uint64_t numel;          /* elements; 1 for a scalar */
	const int64_t *shape;    /* ndim sizes */
	const int64_t *stride;   /* ndim strides in elements; NULL: C-contiguous */
	uint8_t ndim;
	uint8_t dtype;  /* enum dtype */
	bool parameter; /* wrapped as torch.nn.Parameter */
	bool requires_grad;
	bool negative;          /* a lazy view: every element is the negative of what is stored */
	bool conjugate;         /* likewise of a complex one */
	struct slice type;      /* class of a subclass (DTensor, …), else empty */
	struct object *made_by; /* of a subclass: the object with its type and state, else NULL */
};

/* Elements of a shape; UINT64_MAX where the product overflows 63 bits or a size is negative. */
uint64_t shape_numel(const int64_t *shape, size_t ndim);

/*
 * Bytes from the storage's start to behind the last element touched; UINT64_MAX on overflow and
 * where a negative stride leads to before the start. A tensor without elements reaches nowhere: 0.
 */
uint64_t tensor_reach(const struct tensor *t);

/* Whether its elements lie in C order without gaps. */
bool tensor_is_contiguous(const struct tensor *t);

/* Index in the storage, in elements, of the i-th element in C order. */
uint64_t tensor_element(const struct tensor *t, uint64_t i);

/*
 * The element at `p` (in the storage's byte order) as a double or an integer. False where the dtype
 * is no number, is complex, or does not fit; an integer of 64 bits is rounded to the nearest
 * double.
 */
bool dtype_to_double(enum dtype d, const uint8_t *p, bool big_endian, double *out);
bool dtype_to_i64(enum dtype d, const uint8_t *p, bool big_endian, int64_t *out);

#endif
