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
#ifdef __GLIBC__
#if __GLIBC_PREREQ(2, 33)
  size_t freed = mallinfo2().fordblks;
#else
  size_t freed = (unsigned)mallinfo().fordblks; /* an int, which is right up to 4 GiB */
#endif
  return freed >= least && malloc_trim(0);
#else
  (void)least;
  return false;
#endif
}

#endif
