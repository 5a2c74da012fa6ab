"""ksqlDB's functions: one table of names, signatures and descriptions, from which SHOW and DESCRIBE FUNCTION derive.

registry.py        FUNCTIONS: find(name) -> Function with its kind (SCALAR, AGGREGATE, TABLE), category, description and
                   variants; kind_of(name); all(). Its MODULES have the functions in them, loaded when first asked for
signatures.py      signatures, and which of several a call means
aggregating.py     compile_aggregate(call, schema, functions, properties) -> Aggregate, which pickles:
                   .type; initial() -> state; add(state, row) -> state; undo(state, row) -> state (for tables: .undoes
                   says whether it can); merge(state, state) -> state (of sessions); result(state) -> value. A state is
                   plain data (None, numbers, text, bytes, lists, dicts): whoever keeps it may store it as it likes
table_functions.py compile_table_function(call, schema, functions, properties), called with a row: a list, a row each
"""
