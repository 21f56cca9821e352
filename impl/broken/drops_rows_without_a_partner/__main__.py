"""Joins inner where the join is a left outer one.

The mistake is to go on only if a partner is found. It shows where a row has no partner.
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
    programs = Plain.programs | {"tickers": Tickers, "holdings": Inner}


serve(DropsRowsWithoutAPartner())
