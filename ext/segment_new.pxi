# New directories and new files, for threads: the loop goes on meanwhile. Part of segment.pyx.

cdef extern from "new_directory.h" nogil:
    ctypedef struct new_file:
        const char *name
        const char *content
        size_t size
    int new_directory(const char *path, const new_file *files, int count)
    int new_files(const char *path, const new_file *files, int count)

cdef extern from "Python.h":
    bytes PyUnicode_EncodeFSDefault(object path)

cdef struct files_to_make:
    const char *path
    new_file *files
    int count, error


cdef class NewFiles:
    """What is to be made: `wanted` has (directory, ((name, content), ...)) for each, names and contents as bytes."""

    cdef list wanted  # kept, since the C structures point into it
    cdef files_to_make *directories
    cdef new_file *files
    cdef Py_ssize_t count

    def __cinit__(self, wanted):
        cdef Py_ssize_t files = 0
        cdef tuple contents
        self.wanted = []
        for path, contents in wanted:
            self.wanted.append((PyUnicode_EncodeFSDefault(path), contents))
            files += len(contents)
        self.count = len(self.wanted)
        self.directories = <files_to_make *>malloc((self.count + 1) * sizeof(files_to_make))
        self.files = <new_file *>malloc((files + 1) * sizeof(new_file))
        if self.directories == NULL or self.files == NULL:
            raise MemoryError
        self.point()

    def __dealloc__(self):
        free(self.directories)
        free(self.files)

    cdef int point(self) except -1:
        cdef new_file *file = self.files
        cdef files_to_make *directory = self.directories
        cdef bytes path, name, content
        cdef tuple contents
        for path, contents in self.wanted:
            directory.path, directory.files, directory.count = path, file, <int>len(contents)
            for name, content in contents:
                file.name, file.content, file.size = name, content, <size_t>len(content)
                file += 1
            directory += 1
        return 0

    def make(self):
        """Of each 0; or an errno value, and what was made until then is there."""
        return self.each(new_files)

    def make_with_directories(self):
        """The same, or a negative one, and nothing is."""
        return self.each(new_directory)

    cdef list each(self, int (*make)(const char *, const new_file *, int) noexcept nogil):
        cdef Py_ssize_t i
        cdef files_to_make *directory
        with nogil:
            for i in range(self.count):
                directory = &self.directories[i]
                directory.error = make(directory.path, directory.files, directory.count)
        return [self.directories[i].error for i in range(self.count)]
