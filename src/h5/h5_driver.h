/* SPDX-License-Identifier: MIT */
/*
 * A file driver for HDF5 over one descriptor that was open before the sandbox closed: pread and
 * pwrite, no path, no second file whatever links a file holds.
 */
#ifndef H5_H5_DRIVER_H
#define H5_H5_DRIVER_H

#include <hdf5.h>
#include <stdbool.h>

/* Properties that make HDF5 use `fd`; negative where that fails. Call once. */
hid_t h5_driver_access(int fd, bool writing);

/* The errno of the first call to the system that failed; 0: none did. */
int h5_driver_error(void);

#endif
