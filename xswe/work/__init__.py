"""Long work: cut into shards, done by any number of processes, resumed after a kill."""
