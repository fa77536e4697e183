"""File descriptors: one a connection, out of a number that the system sets."""

from __future__ import annotations

import logging
import resource

from service.logs import log_event

_LOGGER = logging.getLogger(__name__)

# Journal, libraries, event loop, files that are read.
OWN_DESCRIPTORS = 256


def make_room(max_connections: int) -> int:
    """Raise the process's own limit of descriptors to what its connections need.

    Where the system's limit forbids it, the limit is raised as far as it goes, and a warning says
    how many connections fit.

    Args:
        max_connections: Connections at a time.

    Returns:
        Connections that fit, at most `max_connections`.
    """
    needed = max_connections + OWN_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    if soft == unlimited or soft >= needed:
        return max_connections
    possible = needed if hard == unlimited else min(needed, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (possible, hard))
    except (OSError, ValueError):
        possible = soft
    if possible >= needed:
        return max_connections
    fitting = max(1, possible - OWN_DESCRIPTORS)
    log_event(
        _LOGGER,
        logging.WARNING,
        "few_descriptors",
        limit=possible,
        needed=needed,
        connections=fitting,
        mend="raise the limit of open files (ulimit -n), or lower RANCAST_MAX_CONNECTIONS",
    )
    return fitting
