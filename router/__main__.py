"""`twolane` and `python -m router`: hands over to `router.commands`, which takes half a second to import."""

from __future__ import annotations

import signal
import sys


def main() -> None:
    if sys.argv[1:2] == ["serve"]:
        # A reload may be asked for before anybody listens for it: not seen yet, it would end the process.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    if sys.argv[1:2] == ["health"]:  # it is asked every few seconds, so without all that serving needs
        from router.health import cli
    else:
        from router.commands import cli
    cli()


if __name__ == "__main__":
    main()
