"""The models that ship in this package, one folder each; ``xswe.load("mini")`` opens the one of that name."""
