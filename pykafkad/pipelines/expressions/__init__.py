"""What expressions mean: typed, with ksqlDB's semantics, and compiled to Python closures.

    compiling.py   compile_expression(expression, schema, functions, properties) -> Compiled: .type (None is that of
                   NULL), and it is called with a row. It pickles as its tree and schema, and is compiled anew.
    closures.py    what closures are made of: constants, conversions, and the guards that make null of a failure
    schema.py      rows, their columns, and what values of SQL's types are
    numbers.py     Java's arithmetic;  casts.py: CAST, and what is cast unasked;  constructors.py: one type for many items
    texts.py, moments.py   values as text, and dates and times out of it;  arithmetic.py, comparisons.py: operators

An expression that fails for a row (1/0, an array's bounds) is null there, and `Failures.on_problem` is told why. What can
never be evaluated is a StatementError when it is compiled.
"""
