"""Oriel's HTML pages: page.document() makes the one of `oriel bench`; skeleton has what any page is made of."""
