"""Oriel's HTML pages in Python: page.document() writes the one of `oriel bench`; skeleton has the parts common to all pages."""
