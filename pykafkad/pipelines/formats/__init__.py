"""How rows are bytes in topics: KAFKA, JSON, DELIMITED and NONE.

    make_format(name, columns, wrap=..., delimiter=...) -> Format, which pickles and refuses what it cannot say:
        parse(bytes | None) -> list of values | None     serialise(row | None) -> bytes | None
        from_plain(JSON value) -> bytes | None           to_plain(bytes | None) -> JSON value, as in files of test cases
    `columns` are those of the key or of the value alone, `wrap` is WRAP_SINGLE_VALUE (None where nothing is said: values are wrapped,
    keys of one column are not, so ask with wrap=False for those). A row that cannot be parsed raises BadRecord.
"""
