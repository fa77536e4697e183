"""What an image is made of: its parts, their licences, and the two files that state both.

`python -m service.inventory write FOLDER` runs when the image is built; `check FOLDER` says whether
an image still is what its files state. Written here rather than taken from a generator, because
none at hand lists Python's packages, what their wheels carry inside and Debian's packages in one
document, bears nothing of the hour of the build, and ends the build at a licence nobody looked at.
"""
