"""Run a command in a network namespace, with a hosts file of its own.

    python -I -S enter.py NAMESPACE HOSTS COMMAND [ARGUMENT]…

It needs the standard library only. The process is the command's own in the end.
"""

import ctypes
import os
import sys

CLONE_NEWNS = 0x00020000
CLONE_NEWNET = 0x40000000
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
HOSTS = b"/etc/hosts"
CANNOT_RUN = 126  # as a shell says it

_LIBC = ctypes.CDLL(None, use_errno=True)


def demanded(result: int) -> None:
    """Raise the error of a system call that failed.

    Raises:
        OSError: The call returned another result than 0.
    """
    if result:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def unshare(flags: int) -> None:
    """Give the calling thread namespaces of its own."""
    demanded(_LIBC.unshare(flags))


def enter(namespace: str) -> None:
    """Let the calling thread be in a network namespace."""
    descriptor = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
    try:
        demanded(_LIBC.setns(descriptor, CLONE_NEWNET))
    finally:
        os.close(descriptor)


def mount_hosts(hosts: str) -> None:
    """Put a file in the place of /etc/hosts, for this process and its children alone."""
    unshare(CLONE_NEWNS)
    demanded(_LIBC.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None))
    demanded(_LIBC.mount(os.fsencode(hosts), HOSTS, None, MS_BIND, None))


def main() -> None:
    """Enter, and become the command."""
    namespace, hosts, *command = sys.argv[1:]
    try:
        enter(namespace)
        mount_hosts(hosts)
        os.execvp(command[0], command)
    except OSError as error:
        print(f"{command[0]} cannot be run in the fence: {error.strerror}", file=sys.stderr)
        raise SystemExit(CANNOT_RUN) from None


if __name__ == "__main__":
    main()
