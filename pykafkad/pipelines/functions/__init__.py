"""ksqlDB's functions: one table of names, signatures and descriptions, from which SHOW and DESCRIBE FUNCTION derive.

registry.py    FUNCTIONS: Functions.find(name); of each its kind (scalar, aggregate, table), variants and description
aggregates.py  compile_aggregate(call, schema, functions, properties) -> Aggregate, which pickles:
               .type; initial() -> state; add(state, row) -> state; undo(state, row) -> state (for tables: .undoes says whether it can);
               merge(state, state) -> state (of sessions); result(state) -> value. A state is plain data (None, numbers, text,
               bytes, lists, dicts): whoever keeps it may store it as it likes. A state that was given away is never changed.
tables.py      compile_table_function(call, schema, functions, properties) -> Compiled, whose value is the list of rows' values
"""
