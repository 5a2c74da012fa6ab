#include "new_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static int make_file(int directory, const new_file *file) {
  int fd = openat(directory, file->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (fd < 0)
    return errno;
  for (size_t done = 0; done < file->size;) {
    ssize_t written = write(fd, file->content + done, file->size - done);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0) {
      int error = written < 0 ? errno : ENOSPC;
      close(fd);
      return error;
    }
    done += (size_t)written;
  }
  close(fd);
  return 0;
}

int new_directory(const char *path, const new_file *files, int count) {
  return mkdir(path, 0777) < 0 ? -errno : new_files(path, files, count);
}

int new_files(const char *path, const new_file *files, int count) {
  int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (directory < 0)
    return errno;
  int error = 0;
  for (int i = 0; i < count && !error; i++)
    error = make_file(directory, &files[i]);
  close(directory);
  return error;
}
