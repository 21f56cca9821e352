"""upheld: an executable specification of what a Kafka stream processor must guarantee, and its
judge.
"""

__version__ = "0.1.0"
