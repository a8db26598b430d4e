"""The verbs of the command line: typed settings in, a call, a table out. Hydra lives here and nowhere else."""
