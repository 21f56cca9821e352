"""The smallest correct design: its loop, and its programs."""

from streamgate.impl.plain.loop import Plain
from streamgate.impl.plain.programs import Batcher, Clients, Holdings, Join, Ledger, Program, Relay, Row, Tickers

__all__ = ["Batcher", "Clients", "Holdings", "Join", "Ledger", "Plain", "Program", "Relay", "Row", "Tickers"]
