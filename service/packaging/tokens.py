"""Words in a CSAR that the rApp manager replaces while it instantiates the rApp."""

from __future__ import annotations

COMPOSITION_ID = "DO_NOT_CHANGE_THIS_COMPOSITION_ID"
INSTANCE_ID = "DO_NOT_CHANGE_THIS_RAPP_INSTANCE_ID"
SME_DISCOVERY = "DO_NOT_CHANGE_THIS_SME_DISCOVERY_ENDPOINT"
# What samples leave for a script to replace; a package that still holds it was left unfinished.
UNFINISHED = "UPDATE_THIS"
