"""Pages in a browser, for the tests of all pages: a headless Chromium with a temporary profile,
scripted use of a page, an HTML reader.

A page for scripted use opens inside another page, which simulates the user and records the
results."""

import html.parser
import http.server
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

sys.dont_write_bytecode = True
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
LIMIT_S = 600
PROFILE = tempfile.TemporaryDirectory(prefix="oriel-browser.", ignore_cleanup_errors=True)

# Opens a page in a frame, passes it to `use`, and sends the result. The image arrives after that.
# Until then the browser treats the page as loading, and its clock and its frames continue.
HAND = """<!doctype html><meta charset="utf-8"><iframe src="page.html" width="%d" height="900" %s></iframe><img src="held">
<script>
"use strict";
const frame = document.querySelector("iframe");
const until = async met => {
    for (let tries = 0; tries < 200 && !met(); tries++)
        await new Promise(done => setTimeout(done, 25));
};
const use = async (page, all) => { %s };
frame.onload = async () => {
    frame.onload = null;
    let found;
    try {
        const page = frame.contentDocument;
        found = await use(page, kind => Array.from(page.querySelectorAll(kind)).filter(part => part.checkVisibility()));
    } catch (error) {
        found = {error: String(error)};
    }
    fetch("found", {method: "POST", body: JSON.stringify(found)});
};
</script>"""


class Server(http.server.ThreadingHTTPServer):
    """Serves a folder to this machine's browser, and receives the results of the scripted use."""

    daemon_threads = True

    def __init__(self, folder):
        super().__init__(("127.0.0.1", 0), lambda *arguments: Requests(*arguments, directory=folder))
        self.arrived = threading.Event()
        self.found = None


class Requests(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/held":
            self.server.arrived.wait(LIMIT_S)
            self.send_response(204)
            self.end_headers()
        elif self.path == "/favicon.ico":
            self.send_response(204)
            self.end_headers()
        else:
            super().do_GET()

    def do_POST(self):
        self.server.found = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()
        self.server.arrived.set()

    def log_message(self, *_):
        pass


class Folder(unittest.TestCase):
    """A test with a temporary folder."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="oriel-page.")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, name="page.html"):
        return os.path.join(self.folder, name)


class Browser(Folder):
    def open(self, address=None, flags=(), allowed="\n"):
        """The page's elements after its scripts have run; the console may contain only the allowed
        text."""
        command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir=" + PROFILE.name, "--no-first-run",
                   "--disable-background-networking", "--no-proxy-server", "--enable-logging=stderr", "--v=0",
                   "--window-size=1400,1200", *flags, "--dump-dom", address or "file://" + self.path()]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8",
                              errors="replace", start_new_session=True) as process:
            try:
                output, errors = process.communicate(timeout=LIMIT_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        self.assertIn("</html>", output, errors[-2000:])
        self.assertEqual([line for line in errors.splitlines() if "CONSOLE" in line and allowed not in line], [])
        return Page(output)

    def use(self, hand, frame="", flags=(), allowed="\n"):
        """The results of this script's use of the page: `page` is its document, all(selector) its
        visible parts."""
        with open(self.path("hand.html"), "w", encoding="utf-8") as file:
            file.write(HAND % (1200, frame, hand))
        with Server(self.folder) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            try:
                self.open(f"http://127.0.0.1:{server.server_port}/hand.html", flags, allowed)
            finally:
                server.arrived.set()
                server.shutdown()
        self.assertFalse(server.found is None or isinstance(server.found, dict) and "error" in server.found, server.found)
        return server.found


class Page(html.parser.HTMLParser):
    """The elements of a page: (tag, attributes) in order, the text outside scripts and styles, and
    the contents of those."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements = []
        self.text = []
        self.codes = []  # [tag, attributes, content] of scripts and styles
        self.inside = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self.inside = [tag, dict(attrs), ""]
            self.codes.append(self.inside)

    def handle_endtag(self, tag):
        if tag in ("script", "style"):
            self.inside = None

    def handle_data(self, data):
        if self.inside is not None:
            self.inside[2] += data
        else:
            self.text.append(data)

    def all(self, tag, **wanted):
        return [attributes for name, attributes in self.elements if name == tag
                and all(attributes.get(key.rstrip("_")) == value for key, value in wanted.items())]

    def count(self, kind):
        """The number of elements with a class, among others."""
        return sum(kind in (attributes.get("class") or "").split() for _, attributes in self.elements)

    def shown(self):
        return " ".join(" ".join(self.text).split())

    def data(self):
        return json.loads(next(content for tag, attributes, content in self.codes if attributes.get("id") == "data"))


def needed():
    """Ends the caller's script as a skip where there is no browser."""
    if BROWSER is None:
        print("skipped: no chromium to open the page with")
        sys.exit(77)
