# From a struct type and a version to its plan.

cdef Plan* plan_of(StructType info, int version) except NULL:
    if version < info.min_version or version > info.max_version:
        raise WireError(
            f"{info.name} has no version {version}, only {info.min_version} to {info.max_version}")
    if info.plans[version] == NULL:
        info.plans[version] = compile_plan(info, version)
    return info.plans[version]


cdef Plan* compile_plan(StructType info, int version) except NULL:
    cdef Plan* plan = <Plan*>allocate(sizeof(Plan))
    cdef list present = [], tagged = [], absent = []
    cdef Field field
    plan.type = info.type
    plan.name = <PyObject*>info.name
    plan.slot_count = info.slot_count
    plan.flexible = version >= info.flexible_since
    plan.min_size = 1 if plan.flexible else 0
    for slot, field in enumerate(info.fields):
        if not field.versions[0] <= version <= field.versions[1]:
            absent.append((slot, field))
        elif field.tag is not None:
            tagged.append((field.tag, slot, field))
        else:
            present.append((slot, field))
    plan.ops = compile_ops(info, present, version, &plan.count)
    plan.tagged = compile_ops(info, [entry[1:] for entry in sorted(tagged)], version, &plan.tagged_count)
    plan.absent = compile_ops(info, [entry for entry in absent if not entry[1].ignorable], -1, &plan.absent_count)
    set_misplaced(plan, [entry[1].tag for entry in absent if entry[1].tag is not None])
    cdef Py_ssize_t index
    for index in range(plan.count):
        plan.min_size += plan.ops[index].min_size
    return plan


cdef int set_misplaced(Plan* plan, list tags) except -1:
    plan.misplaced = <int32_t*>allocate(len(tags) * sizeof(int32_t))
    plan.misplaced_count = len(tags)
    for index, tag in enumerate(tags):
        plan.misplaced[<Py_ssize_t>index] = tag
    return 0


cdef Op* compile_ops(StructType info, list entries, int version, Py_ssize_t* count) except NULL:
    cdef Op* ops = <Op*>allocate(len(entries) * sizeof(Op))
    count[0] = len(entries)
    for index, (slot, field) in enumerate(entries):
        compile_op(info, &ops[<Py_ssize_t>index], slot, field, version)
    return ops


cdef int compile_op(StructType info, Op* op, Py_ssize_t slot, Field field, int version) except -1:
    """A version of -1: the field is only looked at, never written."""
    op.slot = slot
    op.label = <PyObject*>field.label
    op.tag = -1 if field.tag is None else field.tag
    op.fallback = info.defaults[slot]
    if version < 0:
        return 0
    op.compact = version >= info.flexible_since and field.flexible
    op.nullable = field.nullable[0] <= version <= field.nullable[1]
    if not field.type.startswith("[]"):
        return set_kind(op, field, field.type, version)
    op.kind = K_ARRAY
    op.min_size = 1 if op.compact else 4
    op.element = <Op*>allocate(sizeof(Op))
    op.element.compact = op.compact
    op.element.tag = -1
    op.element.label = op.label
    return set_kind(op.element, field, field.type[2:], version)


cdef int set_kind(Op* op, Field field, str type, int version) except -1:
    if field.struct_type is not None:
        op.kind = K_STRUCT
        op.plan = plan_of(field.struct_type, version)
        op.min_size = 1 if op.nullable else op.plan.min_size
        return 0
    op.kind = KINDS[type]
    if op.kind == K_STRING:
        op.min_size = 1 if op.compact else 2
    elif op.kind == K_BYTES or op.kind == K_RECORDS:
        op.min_size = 1 if op.compact else 4
    elif op.kind == K_CONSTANT:
        op.min_size = PyBytes_GET_SIZE(op.fallback.value)
    else:
        op.min_size = fixed_size(op.kind)
    return 0


cdef Py_ssize_t fixed_size(int kind) noexcept:
    if kind == K_BOOL or kind == K_INT8:
        return 1
    if kind == K_INT16 or kind == K_UINT16:
        return 2
    if kind == K_INT32 or kind == K_UINT32:
        return 4
    return 16 if kind == K_UUID else 8
