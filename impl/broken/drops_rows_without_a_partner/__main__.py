"""Joins inner where the join is a left outer one.

Whoever looks a partner up and goes on only if there is one makes this mistake. It shows where a row
has none.
"""

from upheld.adapter import serve
from upheld.impl.plain import Holdings, Plain, Tickers


class Inner(Holdings):
    outer = False


class DropsRowsWithoutAPartner(Plain):
    hello = Plain.hello | {
        "name": "broken/drops_rows_without_a_partner",
        "programs": ["tickers", "holdings"],
    }
    programs = {"tickers": Tickers, "holdings": Inner}  # noqa: RUF012


serve(DropsRowsWithoutAPartner())
