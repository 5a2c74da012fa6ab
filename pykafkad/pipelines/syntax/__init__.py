"""ksqlDB's language: text to statements and back, knowing nothing of what exists.

tokens.py cuts the text, parser.py and its neighbours read it by recursive descent into the classes of ast.py,
formatting.py writes those as SQL again.
"""
