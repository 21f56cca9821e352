"""The design that `streamgate new` writes: its files, copied as they are but for the name."""
