"""An executable specification of Kafka stream processors, and its judge."""

__version__ = "0.1.0"
