"""Schemas that values of an input are made from, and written by."""
