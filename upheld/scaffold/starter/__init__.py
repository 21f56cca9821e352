"""The design that `upheld new` writes: its files, copied as they are but for the name."""
