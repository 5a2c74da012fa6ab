/* What is written of a batch, once filter->verdict says what stays. Part of cleaner_*.c. */
#ifndef PYKAFKAD_CLEANER_BUILD_H
#define PYKAFKAD_CLEANER_BUILD_H

#include "cleaner_pass.h"

/* All of it, byte for byte. */
int build_copy(filter_pass *filter);

/* The records at `places`, under the batch's own header as far as they do not change it; CLEANER_PACK when
 * they are to be compressed. */
int build_anew(filter_pass *filter);

/* A header of format 2 without records. A batch of an old format leaves its last offset. */
int build_empty(filter_pass *filter);

#endif
