"""Input and output: atomic files, lines, ragged arrays, tables of results, threads."""
