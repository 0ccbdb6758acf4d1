"""Oriel's HTML pages: page.write() makes the one of `oriel bench`; skeleton has what any page is made of."""
