"""Reports: one self-contained HTML page per result."""
