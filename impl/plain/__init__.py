"""The smallest correct design: its loop, and its programs."""

from upheld.impl.plain.loop import Plain
from upheld.impl.plain.programs import (
    Batcher,
    Clients,
    Holdings,
    Join,
    Ledger,
    Program,
    Relay,
    Row,
    Tickers,
)

__all__ = [
    "Batcher",
    "Clients",
    "Holdings",
    "Join",
    "Ledger",
    "Plain",
    "Program",
    "Relay",
    "Row",
    "Tickers",
]
