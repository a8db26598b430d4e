"""The command line, derived from the public functions."""
