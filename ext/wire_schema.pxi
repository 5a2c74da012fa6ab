# The schema: its compact JSON read without a JSON library (start-up does not import one), a Field for tools to
# look at, and the version ranges.

cdef class SchemaReader:
    """Reads the JSON of protocol/messages: objects, arrays, plain strings, integers, true, false, null."""
    cdef bytes text
    cdef Py_ssize_t at

    def __cinit__(self, bytes text):
        self.text = text
        self.at = 0

    cdef object fail(self):
        raise ValueError(f"not a schema: unexpected text at byte {self.at}")

    cdef int peek(self) except -1:
        while self.at < len(self.text) and self.text[self.at] in b" \t\r\n,:":
            self.at += 1
        if self.at >= len(self.text):
            self.fail()
        return self.text[self.at]

    cdef object value(self):
        cdef int mark = self.peek()
        if mark == c'{':
            return self.mapping()
        if mark == c'[':
            return self.sequence()
        if mark == c'"':
            return self.string()
        if mark == c'-' or c'0' <= mark <= c'9':
            return self.number()
        for word, meaning in ((b"true", True), (b"false", False), (b"null", None)):
            if self.text[self.at:self.at + len(word)] == word:
                self.at += len(word)
                return meaning
        self.fail()

    cdef object mapping(self):
        cdef dict found = {}
        self.at += 1
        while self.peek() != c'}':
            name = self.string()
            found[name] = self.value()
        self.at += 1
        return found

    cdef object sequence(self):
        cdef list found = []
        self.at += 1
        while self.peek() != c']':
            found.append(self.value())
        self.at += 1
        return found

    cdef object string(self):
        if self.peek() != c'"':
            self.fail()
        cdef Py_ssize_t end = self.text.find(b'"', self.at + 1)
        if end < 0:
            self.fail()
        raw = self.text[self.at + 1:end]
        if b"\\" in raw:
            self.fail()
        self.at = end + 1
        return intern_text(raw.decode("utf-8"))

    cdef object number(self):
        cdef Py_ssize_t end = self.at + 1
        while end < len(self.text) and c'0' <= self.text[end] <= c'9':
            end += 1
        raw = self.text[self.at:end]
        self.at = end
        return int(raw)


def read_schema(bytes text):
    """The schema in one file of protocol/messages."""
    return SchemaReader(text).value()


def attribute_name(str name):
    """MaxWaitMs -> max_wait_ms."""
    cdef list parts = []
    cdef str before = ""
    for index, letter in enumerate(name):
        if before and letter.isupper() and (not before.isupper() or name[index + 1:index + 2].islower()):
            parts.append("_")
        parts.append(letter.lower())
        before = letter
    return intern_text("".join(parts))


cdef tuple parse_range(text, int last):
    """"3", "3+" or "3-7" as (first, last); "none" holds nothing."""
    if text == "none":
        return (0, -1)
    first, dash, end = text.partition("-")
    if dash:
        return (int(first), int(end))
    if text.endswith("+"):
        return (int(text.removesuffix("+")), last)
    return (int(text), int(text))


cdef class Field:
    """One field of a struct as the schema has it, in all versions."""
    cdef readonly str name         # as in the schema: MaxWaitMs
    cdef readonly str attribute    # as in Python: max_wait_ms
    cdef readonly str type         # int32, []string, []FetchTopic ...
    cdef readonly tuple versions   # (first, last)
    cdef readonly tuple nullable   # (first, last); (0, -1): never
    cdef readonly object tag       # None: not a tagged field
    cdef readonly object default   # None: null; [] and struct classes mean a new one each time
    cdef readonly bint ignorable
    cdef readonly str entity       # what the value names (topicName, brokerId ...), or None
    cdef readonly object struct    # the class of the struct, or of an array's elements
    cdef bint flexible
    cdef StructType struct_type
    cdef object label

    def __repr__(self):
        first, last = self.versions
        return f"<Field {self.name} {self.type} {first}-{last}>"
