"""The bus tells everyone, and nobody can hurt the one who tells."""

from __future__ import annotations

import json
import logging

import pytest

from ipymemory.events import Bus, Event


def test_handlers_are_told_in_order_until_they_leave() -> None:
    bus = Bus()
    heard: list[str] = []
    leave = bus.subscribe(lambda event: heard.append(f"first {event.kind}"))
    bus.subscribe(lambda event: heard.append(f"second {event.kind}"))
    bus.emit(Event("started", "notes"))
    leave()
    leave()
    bus.emit(Event("finished", "notes"))
    assert heard == ["first started", "second started", "second finished"]


@pytest.mark.spec("L2")
def test_a_handler_that_raises_is_logged_and_the_rest_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bus = Bus()
    heard: list[Event] = []

    def broken(event: Event) -> None:
        raise RuntimeError("mine")

    bus.subscribe(broken)
    bus.subscribe(heard.append)
    with caplog.at_level(logging.ERROR):
        bus.emit(Event("started", "notes"))
    assert [each.kind for each in heard] == ["started"]
    assert "an event handler failed on started" in caplog.text


def test_a_handler_may_leave_while_it_is_told() -> None:
    bus = Bus()
    heard: list[str] = []

    def once(event: Event) -> None:
        heard.append("once")
        leave()

    leave = bus.subscribe(once)
    bus.subscribe(lambda event: heard.append("always"))
    bus.emit(Event("a", "notes"))
    bus.emit(Event("b", "notes"))
    assert heard == ["once", "always", "always"]


def test_an_event_is_json() -> None:
    event = Event("wrote", "notes", "r1", {"path": "/n.md"})
    assert json.loads(json.dumps(event.as_dict())) == {
        "kind": "wrote",
        "job": "notes",
        "run": "r1",
        "details": {"path": "/n.md"},
    }
