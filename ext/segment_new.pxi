# New directories with their files, for threads: the loop goes on meanwhile. Part of segment.pyx.

cdef extern from "new_directory.h" nogil:
    ctypedef struct new_file:
        const char *name
        const char *content
        size_t size
    int new_directory(const char *path, const new_file *files, int count)

cdef extern from "Python.h":
    bytes PyUnicode_EncodeFSDefault(object path)

cdef struct directory_to_make:
    const char *path
    new_file *files
    int count, error


cdef class NewDirectories:
    """What is to be made: `wanted` has (path, ((name, content), ...)) for each, names and contents as bytes."""

    cdef list wanted  # kept, since the C structures point into it
    cdef directory_to_make *directories
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
        self.directories = <directory_to_make *>malloc((self.count + 1) * sizeof(directory_to_make))
        self.files = <new_file *>malloc((files + 1) * sizeof(new_file))
        if self.directories == NULL or self.files == NULL:
            raise MemoryError
        self.point()

    def __dealloc__(self):
        free(self.directories)
        free(self.files)

    cdef int point(self) except -1:
        cdef new_file *file = self.files
        cdef directory_to_make *directory = self.directories
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
        """Of each 0; or an errno value, and what was made until then is there; or a negative one, and nothing is."""
        cdef Py_ssize_t i
        with nogil:
            for i in range(self.count):
                self.directories[i].error = new_directory(
                    self.directories[i].path, self.directories[i].files, self.directories[i].count)
        return [self.directories[i].error for i in range(self.count)]
