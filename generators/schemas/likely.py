"""Likely values for a field, by its name and its format, from a seeded source.

Nothing of it hangs on the day on which it is made.
"""

import random
import re
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Final

from faker import Faker

from upheld.generators.ledger import EPOCH_MS

YEARS: Final = 3  # from the epoch of all workloads on
_WORDS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
# The last word of a name that is here says what a text is; Faker's names for it.
_HINTS: Final = {
    "email": "ascii_safe_email",
    "mail": "ascii_safe_email",
    "phone": "phone_number",
    "firstname": "first_name",
    "lastname": "last_name",
    "surname": "last_name",
    "username": "user_name",
    "user": "user_name",
    "login": "user_name",
    "name": "name",
    "customer": "name",
    "client": "name",
    "owner": "name",
    "author": "name",
    "company": "company",
    "city": "city",
    "town": "city",
    "street": "street_name",
    "address": "street_address",
    "postcode": "postcode",
    "zip": "postcode",
    "country": "country",
    "currency": "currency_code",
    "iban": "iban",
    "bic": "swift",
    "url": "url",
    "uri": "url",
    "link": "url",
    "host": "hostname",
    "ip": "ipv4",
    "colour": "color_name",
    "color": "color_name",
    "title": "catch_phrase",
    "description": "sentence",
    "comment": "sentence",
    "message": "sentence",
    "text": "sentence",
    "job": "job",
    "language": "language_name",
}


class Likely:
    """A seeded source of likely values.

    Attributes:
        rng: The source of all chance.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    @cached_property
    def fake(self) -> Faker:
        """A Faker with a seed of its own."""
        made = Faker("en_GB")
        made.seed_instance(self.rng.getrandbits(64))
        return made

    def chance(self, share: float) -> bool:
        """Return true in a share of all calls."""
        return self.rng.random() < share

    def text(self, name: str) -> str:
        """Return a text for a field of this name."""
        words = [word.lower() for word in _WORDS.findall(name)]
        joined = "".join(words[-2:])
        if words and words[-1] in {"id", "uuid", "guid"}:
            return self.uuid()
        if words and words[-1] in {"at", "time", "timestamp", "datetime"}:
            return self.date_time()
        if words and words[-1] == "date":
            return self.date()
        hint = _HINTS.get(joined) or _HINTS.get(words[-1] if words else "")
        return str(getattr(self.fake, hint)()) if hint else str(self.fake.word())

    def uuid(self) -> str:
        """Return a UUID of version 4."""
        return str(uuid.UUID(bytes=self.rng.randbytes(16), version=4))

    def moment_ms(self) -> int:
        """Return a moment as milliseconds since 1970."""
        return EPOCH_MS + self.rng.randrange(YEARS * 365 * 24 * 3_600_000)

    def moment(self) -> datetime:
        """Return a moment in UTC, to the millisecond."""
        return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=self.moment_ms())

    def date(self) -> str:
        """Return a day as ISO 8601 has it."""
        return self.moment().date().isoformat()

    def date_time(self) -> str:
        """Return a moment as RFC 3339 has it."""
        return self.moment().isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def number(self, least: int | None, most: int | None) -> int:
        """Return a whole number within bounds; without bounds it is small."""
        if least is None:
            least = 0 if most is None or most >= 0 else most - 10_000
        if most is None:
            most = least + 10_000
        return self.rng.randint(least, most)

    def formatted(self, form: str) -> str | None:
        """Return a text of a format of JSON Schema; None for a format that is not known."""
        make = self._forms.get(form)
        return None if make is None else str(make())

    @cached_property
    def _forms(self) -> dict[str, Callable[[], object]]:
        fake = self.fake
        return {
            "date": self.date,
            "date-time": self.date_time,
            "time": lambda: self.date_time().partition("T")[2],
            "duration": lambda: f"PT{self.rng.randint(1, 86_400)}S",
            "uuid": self.uuid,
            "email": fake.ascii_safe_email,
            "idn-email": fake.ascii_safe_email,
            "hostname": fake.hostname,
            "idn-hostname": fake.hostname,
            "ipv4": fake.ipv4,
            "ipv6": fake.ipv6,
            "uri": fake.url,
            "uri-reference": fake.uri_path,
            "iri": fake.url,
            "iri-reference": fake.uri_path,
            "uri-template": fake.url,
            "json-pointer": lambda: f"/{fake.word()}/{self.rng.randrange(10)}",
            "relative-json-pointer": lambda: f"{self.rng.randrange(5)}/{fake.word()}",
            "regex": lambda: f"{fake.word()}+",
        }
