"""Serving copied directories without changing them."""
