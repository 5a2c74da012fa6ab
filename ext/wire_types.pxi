# The types of the structs. A struct is a C array of references behind an object head, one slot a field and one for
# unknown tags; slots are reached as attributes by member descriptors, which the interpreter specialises. They take
# no part in cyclic garbage collection: a message is a tree, and decoding many of them must not wake the collector.

cdef dict KINDS = {
    "bool": K_BOOL, "int8": K_INT8, "int16": K_INT16, "uint16": K_UINT16, "int32": K_INT32, "uint32": K_UINT32,
    "int64": K_INT64, "float64": K_FLOAT64, "uuid": K_UUID, "string": K_STRING, "bytes": K_BYTES,
    "records": K_RECORDS, "constant": K_CONSTANT,
}
cdef dict ZEROS = {
    "bool": False, "int8": 0, "int16": 0, "uint16": 0, "int32": 0, "uint32": 0, "int64": 0, "float64": 0.0,
    "uuid": bytes(16), "string": "", "bytes": b"", "records": None,
}
cdef dict TYPES = {}  # class -> StructType, for ever: there are some hundreds


cdef inline PyObject** slots_of(PyObject* made) noexcept:
    return <PyObject**>(<char*>made + sizeof(PyObject))


cdef inline Py_ssize_t slot_count_of(PyTypeObject* type) noexcept:
    return (type.tp_basicsize - <Py_ssize_t>sizeof(PyObject)) // <Py_ssize_t>sizeof(void*)


cdef inline PyObject* new_struct(PyTypeObject* type) except NULL:
    """An object with all slots empty; whoever asked fills them."""
    cdef PyObject* made = <PyObject*>PyObject_Malloc(type.tp_basicsize)
    if made == NULL:
        PyErr_NoMemory()
    memset(made, 0, type.tp_basicsize)
    return PyObject_Init(made, type)


cdef void struct_dealloc(PyObject* self) noexcept:
    cdef PyTypeObject* type = Py_TYPE(self)
    cdef PyObject** slots = slots_of(self)
    cdef Py_ssize_t index
    for index in range(slot_count_of(type)):
        Py_XDECREF(slots[index])
    PyObject_Free(self)
    Py_DECREF(<PyObject*>type)


cdef inline PyObject* make_default(Default* fallback) except NULL:
    if fallback.kind == D_SHARED:
        Py_INCREF(fallback.value)
        return fallback.value
    if fallback.kind == D_LIST:
        return PyList_New(0)
    return new_filled(<StructType>fallback.value)


cdef PyObject* new_filled(StructType info) except NULL:
    """An object with every field at its default."""
    cdef PyObject* made = new_struct(info.type)
    try:
        fill_empty_slots(info, made)
    except BaseException:
        Py_DECREF(made)
        raise
    return made


cdef int fill_empty_slots(StructType info, PyObject* made) except -1:
    cdef PyObject** slots = slots_of(made)
    cdef Py_ssize_t index
    for index in range(info.slot_count):
        if slots[index] == NULL:
            slots[index] = make_default(&info.defaults[index])
    return 0


cdef inline StructType type_of(PyObject* made):
    """The StructType of an object that is a Struct."""
    return <StructType>PyDict_GetItem(<PyObject*>TYPES, <PyObject*>Py_TYPE(made))


cdef PyObject* construct(PyObject* type, PyObject** args, size_t flags, PyObject* names) except NULL:
    """FetchRequest(max_wait_ms=500): the type's vectorcall; fields not named take their defaults."""
    cdef StructType info = <StructType>PyDict_GetItem(<PyObject*>TYPES, type)
    cdef Py_ssize_t given = PyVectorcall_NARGS(flags), index, slot = 0
    cdef PyObject* made
    cdef PyObject** slots
    if given:
        raise TypeError(f"{info.name}() takes its fields by name")
    made = new_struct(info.type)
    slots = slots_of(made)
    try:
        if names != NULL:
            for index in range(PyTuple_GET_SIZE(names)):
                slot = slot_named(info, PyTuple_GET_ITEM(names, index), slot)
                Py_INCREF(args[index])
                slots[slot] = args[index]
        fill_empty_slots(info, made)
    except BaseException:
        Py_DECREF(made)
        raise
    return made


cdef Py_ssize_t slot_named(StructType info, PyObject* name, Py_ssize_t hint) except -1:
    """Names come mostly in the order of the fields, and are mostly the same objects."""
    cdef Py_ssize_t step, slot, count = info.slot_count
    for step in range(count):
        slot = hint + step
        if slot >= count:
            slot -= count
        if PyTuple_GET_ITEM(<PyObject*>info.attributes, slot) == name:
            return slot
    for slot in range(count):
        if PyUnicode_Compare(PyTuple_GET_ITEM(<PyObject*>info.attributes, slot), name) == 0:
            return slot
    raise TypeError(f"{info.name}() has no field {<str><object>name!r}")


cdef PyObject* construct_bare(PyObject* type, PyObject* args, PyObject* names) except NULL:
    """cls.__new__(cls): every field at its default."""
    return new_filled(<StructType>PyDict_GetItem(<PyObject*>TYPES, type))


cdef class Struct:
    """What every struct of every message is: fields, `unknown_tags`, encode."""
    __hash__ = None

    def __init__(self):
        raise TypeError("structs are made by their own classes")

    def encode(self, int version):
        """The bytes of this struct in a version, without frame or header."""
        return encode_message(<PyObject*>self, version)

    def __eq__(self, other):
        if type(self) is not type(other):
            return NotImplemented
        cdef PyObject** mine = slots_of(<PyObject*>self)
        cdef PyObject** others = slots_of(<PyObject*>other)
        cdef Py_ssize_t index
        for index in range(slot_count_of(Py_TYPE(<PyObject*>self))):
            if mine[index] == others[index]:
                continue
            if mine[index] == NULL or others[index] == NULL:
                return False
            if <object>mine[index] != <object>others[index]:
                return False
        return True

    def __repr__(self):
        cdef StructType info = type_of(<PyObject*>self)
        cdef PyObject** slots = slots_of(<PyObject*>self)
        cdef list shown = []
        cdef Py_ssize_t index
        for index in range(info.slot_count):
            if slots[index] != NULL and not is_default(&info.defaults[index], slots[index]):
                value = <object>slots[index]
                if isinstance(value, memoryview):
                    value = bytes(value)
                shown.append(f"{info.attributes[index]}={value!r}")
        return f"{info.name}({', '.join(shown)})"


cdef class Message(Struct):
    """A struct that is a whole message: its class has api_key, min_version, max_version, flexible_since."""


cdef class StructType:
    """One struct type: its fields, the class of its objects, and its plans, one a version, made on first use."""
    cdef readonly str name
    cdef readonly str message
    cdef readonly tuple fields
    cdef readonly object cls
    cdef readonly int api_key, min_version, max_version, flexible_since
    cdef tuple attributes
    cdef PyTypeObject* type
    cdef Py_ssize_t slot_count
    cdef Default* defaults
    cdef Plan** plans
    cdef list kept  # what C structures point to
    cdef bytes c_name

    def __cinit__(self, str name, str message, tuple fields, int api_key, int first, int last, int flexible):
        self.name, self.message, self.fields = name, message, fields
        self.api_key, self.min_version, self.max_version, self.flexible_since = api_key, first, last, flexible
        self.attributes = (*[field.attribute for field in fields], intern_text("unknown_tags"))
        self.slot_count = len(self.attributes)
        self.kept = []
        self.c_name = f"pykafkad.messages.{name}".encode()
        self.defaults = <Default*>allocate(self.slot_count * sizeof(Default))
        self.plans = <Plan**>allocate((last + 1 if last >= 0 else 1) * sizeof(Plan*))
        self.set_defaults()
        self.make_class()

    cdef int set_defaults(self) except -1:
        cdef Py_ssize_t index
        for index in range(self.slot_count):
            self.defaults[index].kind = D_SHARED
            self.defaults[index].value = Py_None
        for index, field in enumerate(self.fields):
            self.set_default(index, field)
        return 0

    cdef int set_default(self, Py_ssize_t index, Field field) except -1:
        if field.default is None:
            return 0
        if isinstance(field.default, list):
            self.defaults[index].kind = D_LIST
        elif field.struct_type is not None:
            self.defaults[index].kind = D_STRUCT
            self.defaults[index].value = <PyObject*>field.struct_type
        else:
            self.defaults[index].value = <PyObject*>field.default  # kept by the field
        return 0

    cdef int make_class(self) except -1:
        cdef PyMemberDef* members = <PyMemberDef*>allocate((self.slot_count + 1) * sizeof(PyMemberDef))
        cdef Py_ssize_t index, size = 0
        for index in range(self.slot_count):
            members[index].name = PyUnicode_AsUTF8AndSize(PyTuple_GET_ITEM(<PyObject*>self.attributes, index), &size)
            members[index].type = T_OBJECT_EX
            members[index].offset = sizeof(PyObject) + index * sizeof(void*)
        self.cls = wire_make_type(
            self.c_name, sizeof(PyObject) + self.slot_count * sizeof(void*), members,
            <void*>struct_dealloc, <void*>construct_bare, b"",
            Message if self.name == self.message else Struct)
        PyObject_Free(members)
        self.type = <PyTypeObject*>self.cls
        self.type.tp_vectorcall = <void*>construct
        TYPES[self.cls] = self
        self.cls.decode = self.decode
        self.cls.decode_prefix = self.decode_prefix
        self.cls.decode_apart = self.decode_apart
        return 0

    def decode(self, buffer, int version, Py_ssize_t start=0, end=None):
        """The message in buffer[start:end]; see decode_message for what may follow it."""
        return decode_message(self, <PyObject*>buffer, version, start, end, NULL, UNLIMITED)

    def decode_prefix(self, buffer, int version, Py_ssize_t start=0, end=None, Py_ssize_t most=-1):
        """The message at the start of buffer[start:end], and where it ends. `most`: LargeMessage, if it has more
        elements."""
        cdef Py_ssize_t stop = 0
        cdef Budget budget = UNLIMITED
        if most >= 0:
            budget.left, budget.has_end = most, True
        made = decode_message(self, <PyObject*>buffer, version, start, end, &stop, budget)
        return made, stop

    def decode_apart(self, buffer, int version, Py_ssize_t start=0):
        """A large message of a record's value, for a thread: the loop goes on beside it."""
        return decode_message(self, <PyObject*>buffer, version, start, None, NULL, RECORD_READ_APART)


cdef void* allocate(size_t size) except NULL:
    """Zeroed memory; what belongs to types is kept for ever."""
    cdef void* made = PyObject_Malloc(size if size else 1)
    if made == NULL:
        PyErr_NoMemory()
    memset(made, 0, size)
    return made


cdef class Builder:
    """Makes the struct types of one message out of its schema."""
    cdef dict schema, common, made
    cdef str message
    cdef int first, last, flexible

    def __cinit__(self, dict schema):
        self.schema = schema
        self.message = schema["name"]
        self.first, self.last = parse_range(schema["versions"], 32767)
        self.flexible = schema.get("flexible", 32767)
        self.common = {struct["name"]: struct for struct in schema.get("structs", ())}
        self.made = {}

    cdef StructType struct(self, str name, list fields, int first, int last):
        cdef StructType known = self.made.get(name)
        if known is None:
            made = tuple([self.field(field, name, first, last) for field in fields])
            known = StructType(name, self.message, made, self.schema.get("key", -1), self.first, self.last, self.flexible)
            self.made[name] = known
        return known

    cdef Field field(self, dict row, str owner, int first, int last):
        cdef Field field = Field.__new__(Field)
        field.name = row["name"]
        field.attribute = attribute_name(field.name)
        field.type = row["type"]
        field.versions = parse_range(row["versions"], last) if "versions" in row else (first, last)
        nullable = row.get("nullable", "none")
        field.nullable = field.versions if nullable is True else parse_range(nullable, last)
        field.tag = row.get("tag")
        field.ignorable = row.get("ignorable", False)
        field.flexible = row.get("flexible", True)
        field.entity = row.get("entity")
        field.label = f"{owner}.{field.attribute}"
        kind = field.type.removeprefix("[]")
        if kind not in KINDS:
            field.struct_type = self.nested(kind, row, field.versions)
            field.struct = field.struct_type.cls
        if "default" in row:
            field.default = row["default"]
        elif field.type.startswith("[]"):
            field.default = []
        else:
            field.default = ZEROS[kind] if field.struct is None else field.struct
        return field

    cdef StructType nested(self, str name, dict row, tuple versions):
        if "fields" in row:
            return self.struct(name, row["fields"], versions[0], versions[1])
        return self.struct(name, self.common[name]["fields"], self.first, self.last)

    cdef object build(self):
        cdef StructType whole = self.struct(self.message, self.schema["fields"], self.first, self.last)
        cdef StructType part
        for name, part in self.made.items():
            part.cls.__module__ = "pykafkad.messages"
            if part is not whole:
                part.cls.__qualname__ = f"{self.message}.{name}"
                setattr(whole.cls, name, part.cls)
        cls = whole.cls
        cls.api_key, cls.min_version, cls.max_version = whole.api_key, whole.min_version, whole.max_version
        cls.flexible_since = whole.flexible_since
        return cls


def define(dict schema):
    """The class of a message, with the classes of its structs as attributes, out of its schema."""
    return (<Builder>Builder(schema)).build()


def fields(cls):
    """The fields of a message or struct class, in the order of the schema."""
    return (<StructType>TYPES[cls]).fields
