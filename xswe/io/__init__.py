"""Files that appear whole or not at all, lines, ragged arrays, threads: what knows no language and no model."""
