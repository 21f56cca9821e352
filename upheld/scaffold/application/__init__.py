"""The files that `upheld new` writes: copied as they are, but for the name."""
