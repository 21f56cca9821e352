"""Fuzz functions: each feeds bytes to one reader, and raises what no user may see."""
