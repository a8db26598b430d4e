"""Pages to look at: one self-contained HTML file for what a run made."""
