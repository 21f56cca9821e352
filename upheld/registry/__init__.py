"""A schema registry on this machine, and the call that registers a schema."""
