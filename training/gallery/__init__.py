"""The gallery: synthetic cells beside real ones, as a page for people and as figures."""

from training.gallery.page import GalleryOptions, gallery_page

__all__ = ["GalleryOptions", "gallery_page"]
