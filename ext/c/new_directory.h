/* A directory that was not there, with small files in it: what a new partition begins with. Knows no Python.
 */
#ifndef PYKAFKAD_NEW_DIRECTORY_H
#define PYKAFKAD_NEW_DIRECTORY_H

#include <stddef.h>

typedef struct {
  const char *name;
  const char *content;
  size_t size;
} new_file;

/* Makes the directory and then its files, in their order. Returns 0 or an errno value; what was made until
 * then stays. Where something has the directory's name already that is EEXIST, and nothing in it is touched.
 */
int new_directory(const char *path, const new_file *files, int count);

#endif
