"""Reading and writing bitext in all formats."""
