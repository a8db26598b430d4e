"""Spans scored in compiled code."""
