"""Reading and writing of bitext in all formats."""
