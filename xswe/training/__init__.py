"""Training: the papers' steps, each a pure function, and the pipeline that chains them."""
