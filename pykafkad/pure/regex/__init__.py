"""Regular expressions that clients send, matched in time linear in the text: for topic names in RE2's syntax (re2j),
for the attributes of telemetry clients in that of java.util.regex, as far as an automaton can match it.
"""
