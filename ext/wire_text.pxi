# Text as Java sees it: units of UTF-16.

def hash_code(str text not None):
    cdef uint32_t code = 0, unit
    cdef Py_UCS4 character
    for character in text:
        unit = <uint32_t>character
        if unit > 0xFFFF:
            code = code * 31 + 0xD800 + ((unit - 0x10000) >> 10)
            unit = 0xDC00 + (unit & 0x3FF)
        code = code * 31 + unit
    return code
