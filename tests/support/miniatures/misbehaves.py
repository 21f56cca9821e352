"""Miniature designs with one bad habit each: `python misbehaves.py HABIT`."""

import json
import os
import sys
import time

HELLO = {
    "type": "hello",
    "protocol": 1,
    "name": "miniature",
    "version": "1",
    "language": "python",
    "programs": ["relay"],
    "modes": ["at_least_once"],
    "capabilities": [],
}
READY = {"type": "ready", "consumer_group": "g"}
STOPPED = {"type": "stopped"}


def say(message: object) -> None:
    """Write a line to stdout, as JSON unless it is text already."""
    text = message if isinstance(message, str) else json.dumps(message)
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def half_a_line() -> None:
    """Begin an answer and leave it at that."""
    sys.stdout.write('{"type": "hel')
    sys.stdout.flush()


def quit_early() -> None:
    """Say why, in the log, and exit."""
    sys.stderr.write("no runtime on this machine\n")
    os._exit(3)


def endless_line() -> None:
    """Write three megabytes and no newline."""
    sys.stdout.write("x" * (3 << 20))
    sys.stdout.flush()


def chatter() -> None:
    """Answer, and never stop talking."""
    say(HELLO)
    for _ in range(100_000):
        say(STOPPED)


def linger() -> None:
    """Leave a worker behind that has left the process group."""
    if os.fork() == 0:
        os.setsid()
        time.sleep(60)


def nothing() -> None:
    """Keep silent."""


def fail() -> None:
    """Stop loudly."""
    say({"type": "failed", "kind": "fenced", "message": "another one took over"})
    os._exit(1)


# habit -> what it does instead of the proper answer to hello, start and stop
HABITS = {
    "well_behaved": {},
    "sleeps_at_hello": {"hello": nothing},
    "stops_in_mid_line": {"hello": half_a_line},
    "quits_at_hello": {"hello": quit_early},
    "writes_prose": {"hello": lambda: say("Booting the engine, please wait")},
    "misspells_a_field": {"hello": lambda: say({**HELLO, "capabilites": []})},
    "comes_from_the_future": {"hello": lambda: say({**HELLO, "protocol": 3})},
    "boasts_of_a_program": {"hello": lambda: say({**HELLO, "programs": ["relay", "ledger"]})},
    "boasts_of_a_capability": {"hello": lambda: say({**HELLO, "capabilities": ["query"]})},
    "never_ends_its_line": {"hello": endless_line},
    "chatters": {"hello": chatter},
    "answers_twice": {"hello": lambda: (say(HELLO), say(READY))},
    "answers_another_question": {"start": lambda: say(STOPPED)},
    "sleeps_at_start": {"start": nothing},
    "spills_the_password": {"start": lambda: say("connecting with hunter2")},
    "is_killed_at_start": {"start": lambda: os.kill(os.getpid(), 9)},
    "fails_loudly": {"start": lambda: (say(READY), time.sleep(0.1), fail())},
    "stops_late": {"stop": nothing},
    "stays_after_stopped": {"stop": lambda: (say(STOPPED), time.sleep(60))},
    "is_reusable": {
        "hello": lambda: say({**HELLO, "capabilities": ["reusable"]}),
        "stop": lambda: say(STOPPED),
    },
    "leaves_a_worker": {"start": lambda: (linger(), say(READY))},
}


def main() -> None:
    """Answer properly but for the one habit."""
    habit = HABITS[sys.argv[1]]
    for line in sys.stdin:
        asked = json.loads(line)["type"]
        proper = {"hello": HELLO, "start": READY, "stop": STOPPED}[asked]
        habit.get(asked, lambda answer=proper: say(answer))()
        if asked == "stop" and asked not in habit:
            return


if __name__ == "__main__":
    main()
