"""The skeleton of Oriel's HTML pages: each is one file with its scripts and styles, and loads nothing when it is opened.

External text stays text: everything except Markup is escaped when it is added, data cannot end the script that contains them,
and the page's content security policy allows only the scripts in it. Standard library only."""

import base64
import hashlib
import json
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARY = "library.js"  # in this folder in a build and in an installation; includes its licences


class MissingLibrary(RuntimeError):
    """The drawing library is missing; the text has the reason."""


class Markup(str):
    """Text that is already HTML. element() escapes everything else."""


ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"}
# Characters that HTML forbids: control characters, halves of surrogate pairs, noncharacters.
FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


def clean(text):
    return FORBIDDEN.sub("\ufffd", str(text))


def escape(text):
    return Markup("".join(ESCAPES.get(letter, letter) for letter in clean(text)))


def join(parts):
    """Concatenates text and Markup."""
    return Markup("".join(part if isinstance(part, Markup) else escape(part) for part in parts if part is not None))


def element(tag, *children, **attributes):
    """<tag>children</tag>. Attributes have their HTML names, with _ for - and a final _ for Python keywords;
    True is an attribute without a value, None and False omit it."""
    parts = ["<", tag]
    for name, value in attributes.items():
        name = name.rstrip("_").replace("_", "-")
        if value is True:
            parts.append(" " + name)
        elif value is not None and value is not False:
            parts.append(f' {name}="{escape(value)}"')
    parts.append(">")
    if tag not in ("meta", "br", "input", "hr"):
        parts.append(join(children))
        parts.append(f"</{tag}>")
    return Markup("".join(parts))


def table(heads, rows, caption=None, classes=None):
    """A table that scrolls separately on a narrow screen. heads: text or Markup cells; rows: Markup of complete rows."""
    return element("div", element("table", element("caption", caption) if caption else None,
                                  element("thead", element("tr", *(head if isinstance(head, Markup) else
                                                                   element("th", head, scope="col") for head in heads))),
                                  element("tbody", *rows), class_=classes), class_="scroll", tabindex="0", role="region",
                   aria_label=caption or "table")


def own_file(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return file.read()


def library():
    """The drawing library: the used parts of D3, bundled when Oriel was built (web/)."""
    try:
        return own_file(LIBRARY)
    except OSError as error:
        raise MissingLibrary("the HTML page needs the library that draws its plots, which was not built in: "
                             f"{error.filename}: {error.strerror}; scripts/install-deps pages "
                             "installs what the build needs for it") from error


def inline(text):
    """Makes code safe inside a script or style element: it must not end the element or begin an HTML comment.
    Both sequences occur only in JavaScript strings, where the added backslash has no effect."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return Markup(re.sub(r"<(?=/(script|style)|!--)", r"\\x3c", text, flags=re.IGNORECASE))


def digest(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode() + "'"


def cleaned(value):
    """The same value with strings that HTML permits: a script would insert half a surrogate pair unchanged."""
    if isinstance(value, dict):
        return {clean(name): cleaned(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [cleaned(part) for part in value]
    return clean(value) if isinstance(value, str) else value


def data(value):
    """JSON that is safe inside a script element for all strings."""
    text = json.dumps(cleaned(value), allow_nan=False, separators=(",", ":"))  # ASCII only
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


def document(title, body, values, scripts, styles):
    """A complete page. The element "data" holds values as JSON for the scripts; scripts and styles are names of files here."""
    codes = [inline(library())] + [inline(own_file(name)) for name in scripts]
    style = inline("\n".join(own_file(name) for name in styles))
    policy = ("default-src 'none'; base-uri 'none'; form-action 'none'; style-src " + digest(style)
              + "; script-src " + " ".join(digest(code) for code in codes))
    head = element("head", element("meta", charset="utf-8"),
                   element("meta", http_equiv="Content-Security-Policy", content=policy),
                   element("meta", name="viewport", content="width=device-width, initial-scale=1"),
                   element("meta", name="color-scheme", content="light dark"),
                   element("title", title), element("style", style))
    tail = [element("script", data(values), type="application/json", id="data")]
    tail += [element("script", code) for code in codes]
    return "<!doctype html>\n" + element("html", head, element("body", body, *tail), lang="en") + "\n"


def write(path, text):
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)
