"""Seeded workloads for every program, and the record types they are made of."""
