"""The files in which a log directory says how far its logs are."""
