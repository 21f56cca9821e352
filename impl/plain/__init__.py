"""The smallest correct design: one Python process on confluent-kafka.

It is read as an example of what suffices.
"""

from upheld.impl.plain.design import Plain
from upheld.impl.plain.programs import (
    Batcher,
    Clients,
    Holdings,
    Join,
    Ledger,
    OutputRecord,
    Place,
    Program,
    Relay,
    Tickers,
)

__all__ = [
    "Batcher",
    "Clients",
    "Holdings",
    "Join",
    "Ledger",
    "OutputRecord",
    "Place",
    "Plain",
    "Program",
    "Relay",
    "Tickers",
]
