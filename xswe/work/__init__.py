"""Long work: cut into shards, done by whoever takes part, gone on with after a kill."""
