"""Kafka's messages as kio writes them."""

import io

from kio.serial import entity_writer


def written(entity: object) -> bytes:
    """Return the bytes that kio writes."""
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()
