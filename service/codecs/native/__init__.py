"""Reading lists of numbers by plain C++ where it has been built.

`python -m service.codecs.native [--beside]` builds it.
"""
