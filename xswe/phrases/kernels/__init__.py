"""Compiled span scoring."""
