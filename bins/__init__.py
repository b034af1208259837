"""Commands: each parses its arguments and makes one call."""
