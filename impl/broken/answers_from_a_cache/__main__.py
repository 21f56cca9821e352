"""Answers each question once, and again with the same answer.

The mistake is to put a cache before the table. It shows where a row changes after it was asked for.
"""

from typing import Any

from upheld.adapter import serve
from upheld.impl.plain import Plain


class AnswersFromACache(Plain):
    hello = Plain.hello | {"name": "broken/answers_from_a_cache"}

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        self.cache: dict[str, dict[str, Any]] = {}
        return super().open(start)

    def query(self, table: str, key: str) -> dict[str, Any]:
        return self.cache.setdefault(key, super().query(table, key))


serve(AnswersFromACache())
