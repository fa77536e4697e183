"""Packages that a RIC's own tools take in: an xApp descriptor, an rApp CSAR, the chart in both."""
