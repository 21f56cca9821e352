"""Requests of instance a, and their responses, are lost or rejected on their way."""

from kio.schema.errors import ErrorCode
from pytest_bdd import parsers, when

from upheld.nemesis.requests import give_up, meet
from upheld.steps.parameters import TYPES
from upheld.steps.scene import Scene


@when(parsers.parse("its next {request:Request} is lost with its connection", extra_types=TYPES))
def request_lost(scene: Scene, request: str) -> None:
    """Close the connection before the broker has the request."""
    for application in scene.subjects():
        meet(scene.trial, application, "close", "before", request)


@when(
    parsers.parse(
        "the response to its next {request:Request} is lost with its connection", extra_types=TYPES
    )
)
def response_lost(scene: Scene, request: str) -> None:
    """Close the connection when the request is applied, and before it is answered."""
    for application in scene.subjects():
        meet(scene.trial, application, "close", "after", request)


@when(
    parsers.parse("its connection falls silent after its next {request:Request}", extra_types=TYPES)
)
def falls_silent(scene: Scene, request: str) -> None:
    """Keep a connection silent after the request, until the client gives it up."""
    for application in scene.subjects():
        rule = meet(scene.trial, application, "silence", "after", request)
        give_up(scene.trial, application, rule)


@when(
    parsers.parse(
        "its next {request:Request} is rejected with {error:KafkaError}", extra_types=TYPES
    )
)
def rejected(scene: Scene, request: str, error: ErrorCode) -> None:
    """Answer in the place of the broker, once, before it has the request."""
    for application in scene.subjects():
        meet(scene.trial, application, "refuse", "before", request, error)


@when(
    parsers.parse(
        "the response to its next {request:Request} is turned into {error:KafkaError}",
        extra_types=TYPES,
    )
)
def response_turned(scene: Scene, request: str, error: ErrorCode) -> None:
    """Answer in the place of the broker, once, when it has applied the request."""
    for application in scene.subjects():
        meet(scene.trial, application, "refuse", "after", request, error)
