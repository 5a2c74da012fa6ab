/* Memory that was freed and that the C library has kept. */
#ifndef PYKAFKAD_MEMORY_H
#define PYKAFKAD_MEMORY_H

#include <stdbool.h>
#include <stdlib.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

/* Gives it back to the system where it is `least` bytes or more; whether it did. Other C libraries do so
 * themselves. */
static inline bool give_back_memory(size_t least) {
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
  return mallinfo2().fordblks >= least && malloc_trim(0);
#else
  (void)least;
  return false;
#endif
}

#endif
