# What wire.pyx and its parts share: Python's C API with bare pointers (the walk counts references itself),
# ext/c's cursor and buffer, and the plan: what one struct looks like on the wire in one version.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
cdef extern from "stdint.h":
    int64_t INT64_LEAST "INT64_MIN", INT64_MOST "INT64_MAX"
from libc.string cimport memcmp, memcpy, memset

cdef extern from "Python.h":
    ctypedef struct PyObject:
        Py_ssize_t ob_refcnt
    ctypedef struct PyTypeObject:
        Py_ssize_t tp_basicsize
        void* tp_vectorcall
    int Py_LT, Py_EQ
    unsigned long Py_TPFLAGS_DEFAULT
    int Py_tp_dealloc, Py_tp_members, Py_tp_new, Py_tp_doc

    PyTypeObject* Py_TYPE(PyObject*)
    void Py_INCREF(PyObject*)
    void Py_DECREF(PyObject*)
    void Py_XDECREF(PyObject*)
    void* PyObject_Malloc(size_t)
    void PyObject_Free(void*)
    PyObject* PyObject_Init(PyObject*, PyTypeObject*)
    PyObject* PyErr_NoMemory() except NULL

    PyObject* PyLong_FromLong(long) except NULL
    PyObject* PyLong_FromLongLong(long long) except NULL
    bint PyLong_Check(PyObject*)
    long long PyLong_AsLongLongAndOverflow(PyObject*, int*)
    bint PyFloat_Check(PyObject*)
    double PyFloat_AS_DOUBLE(PyObject*)
    PyObject* PyFloat_FromDouble(double) except NULL

    PyObject* PyBytes_FromStringAndSize(const char*, Py_ssize_t) except NULL
    bint PyBytes_CheckExact(PyObject*)
    char* PyBytes_AS_STRING(PyObject*)
    Py_ssize_t PyBytes_GET_SIZE(PyObject*)

    bint PyUnicode_Check(PyObject*)
    bint PyUnicode_IS_ASCII(PyObject*)
    Py_ssize_t PyUnicode_GET_LENGTH(PyObject*)
    void* PyUnicode_1BYTE_DATA(PyObject*)
    const char* PyUnicode_AsUTF8AndSize(PyObject*, Py_ssize_t*)
    PyObject* PyUnicode_DecodeUTF8(const char*, Py_ssize_t, const char*)
    int PyUnicode_Compare(PyObject*, PyObject*) except? -1
    void PyErr_Clear()

    PyObject* PyList_New(Py_ssize_t) except NULL
    bint PyList_Check(PyObject*)
    bint PyTuple_Check(PyObject*)
    Py_ssize_t PyList_GET_SIZE(PyObject*)
    PyObject* PyList_GET_ITEM(PyObject*, Py_ssize_t)
    void PyList_SET_ITEM(PyObject*, Py_ssize_t, PyObject*)
    Py_ssize_t PyTuple_GET_SIZE(PyObject*)
    PyObject* PyTuple_GET_ITEM(PyObject*, Py_ssize_t)
    PyObject* PyDict_GetItem(PyObject*, PyObject*)

    bint PyObject_CheckBuffer(PyObject*)
    int PyObject_GetBuffer(PyObject*, Py_buffer*, int) except -1
    void PyBuffer_Release(Py_buffer*)
    int PyBUF_SIMPLE
    ctypedef struct Py_buffer:
        void* buf
        Py_ssize_t len
        Py_ssize_t itemsize
        int ndim
        Py_ssize_t* shape
    PyObject* PyMemoryView_FromObject(PyObject*) except NULL
    Py_buffer* PyMemoryView_GET_BUFFER(PyObject*)

    Py_ssize_t PyVectorcall_NARGS(size_t)
    PyObject* Py_None
    PyObject* Py_True
    PyObject* Py_False

cdef extern from "<unistd.h>" nogil:
    int usleep(unsigned int)

cdef extern from "structmember.h":
    ctypedef struct PyMemberDef:
        const char* name
        int type
        Py_ssize_t offset
        int flags
        const char* doc
    int T_OBJECT_EX

cdef extern from *:
    """
    static PyObject *wire_make_type(const char *name, Py_ssize_t size, PyMemberDef *members,
                                    void *dealloc, void *new_, const char *doc, PyObject *base) {
      PyType_Slot slots[] = {{Py_tp_members, members}, {Py_tp_dealloc, dealloc}, {Py_tp_new, new_},
                             {Py_tp_doc, (void *)doc}, {0, NULL}};
      PyType_Spec spec = {name, (int)size, 0, Py_TPFLAGS_DEFAULT, slots};
      PyObject *bases = PyTuple_Pack(1, base);
      if (!bases)
        return NULL;
      PyObject *made = PyType_FromSpecWithBases(&spec, bases);
      Py_DECREF(bases);
      return made;
    }
    """
    object wire_make_type(const char* name, Py_ssize_t size, PyMemberDef* members, void* dealloc, void* new_,
                          const char* doc, object base)

cdef extern from "wire_cursor.h":
    ctypedef struct wire_cursor:
        const uint8_t* at
        const uint8_t* end
    size_t wire_left(const wire_cursor*) nogil
    int wire_get_i8(wire_cursor*, int64_t*) nogil
    int wire_get_u16(wire_cursor*, int64_t*) nogil
    int wire_get_i16(wire_cursor*, int64_t*) nogil
    int wire_get_u32(wire_cursor*, int64_t*) nogil
    int wire_get_i32(wire_cursor*, int64_t*) nogil
    int wire_get_i64(wire_cursor*, int64_t*) nogil
    int wire_get_f64(wire_cursor*, double*) nogil
    int wire_get_uvarint(wire_cursor*, uint32_t*) nogil
    int wire_get_compact_length(wire_cursor*, int64_t*) nogil
    size_t wire_text_slot(const uint8_t*, size_t, size_t) nogil

cdef extern from "wire_text.h":
    enum:
        WIRE_MENDED_MOST
    size_t wire_mend_text(const uint8_t*, size_t, uint8_t*) nogil

cdef extern from "wire_out.h":
    ctypedef struct wire_out:
        uint8_t* data
        size_t length
        size_t capacity
    int wire_put_i8(wire_out*, int64_t) nogil
    int wire_put_i16(wire_out*, int64_t) nogil
    int wire_put_i32(wire_out*, int64_t) nogil
    int wire_put_i64(wire_out*, int64_t) nogil
    int wire_put_f64(wire_out*, double) nogil
    int wire_put_uvarint(wire_out*, uint32_t) nogil
    int wire_put_bytes(wire_out*, const void*, size_t) nogil
    int wire_prefix_uvarint(wire_out*, size_t) nogil
    void wire_patch_i32(wire_out*, size_t, uint32_t) nogil
    void wire_release(wire_out*) nogil

cdef enum Kind:
    K_BOOL, K_INT8, K_INT16, K_UINT16, K_INT32, K_UINT32, K_INT64, K_FLOAT64, K_UUID
    K_STRING, K_BYTES, K_RECORDS, K_STRUCT, K_ARRAY
    K_CONSTANT  # bytes that are always the same: the field's default

cdef enum DefaultKind:
    D_SHARED  # one immutable object for all
    D_LIST    # a new empty list each time
    D_STRUCT  # a new struct each time

cdef struct Default:
    int kind
    PyObject* value  # borrowed: the shared object, or the StructType to make one of

cdef struct Op:          # one field of one version
    int kind
    bint compact         # lengths as varints plus one
    bint nullable
    Py_ssize_t slot
    int32_t tag
    Default fallback
    Plan* plan           # of a struct, or of the elements of an array of structs
    Op* element          # of an array
    Py_ssize_t min_size  # bytes that a value takes at least
    PyObject* label      # borrowed, "FetchTopic.topic"

cdef struct Plan:        # one struct in one version
    PyTypeObject* type
    PyObject* name       # borrowed
    Py_ssize_t slot_count
    bint flexible
    Py_ssize_t count
    Op* ops              # untagged fields in the order of the wire
    Py_ssize_t tagged_count
    Op* tagged           # in the order of tags
    Py_ssize_t absent_count
    Op* absent           # fields this version has not, and that must be at their default
    Py_ssize_t misplaced_count
    int32_t* misplaced   # tags of other versions
    Py_ssize_t min_size
