"""Shares the partitions of both tables among its instances, and joins each share.

The mistake is to take a join for a fold. It shows when a second instance comes.
"""

from upheld.adapter import serve
from upheld.impl.plain import Holdings, Plain


class Divided(Holdings):
    is_divided = True


class DividesItsJoin(Plain):
    hello = Plain.hello | {"name": "broken/divides_its_join", "programs": ["holdings"]}
    programs = Plain.programs | {"holdings": Divided}


serve(DividesItsJoin())
