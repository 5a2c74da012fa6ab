/* A directory that was not there, and small files in one: what a new partition begins with. Knows no Python.
 */
#ifndef PYKAFKAD_NEW_DIRECTORY_H
#define PYKAFKAD_NEW_DIRECTORY_H

#include <stddef.h>

typedef struct {
  const char *name;
  const char *content;
  size_t size;
} new_file;

/* Makes the directory and then its files, in their order. Returns 0; or an errno value, and what was made
 * until then stays; or a negative one where the directory could not be made and nothing was done, such as
 * -EEXIST where something has its name already.
 */
int new_directory(const char *path, const new_file *files, int count);

/* The files alone, in a directory that is there. A file that is there already is an error, and is left as it
 * is. */
int new_files(const char *path, const new_file *files, int count);

#endif
