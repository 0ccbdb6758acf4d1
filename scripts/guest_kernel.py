"""Selects the Linux kernel of scripts/testrdma's guest and its modules: the machine's own, or one
in a cache folder, which holds only the files that the guest needs.

A kernel is usable when its image is readable and every module exists. Nothing is installed, because
that would change the machine's boot kernel. Standard library only."""

import glob
import gzip
import lzma
import os
import platform
import re
import shutil
import subprocess
import tempfile

# Devices, the machine's files and a writable layer over them; a network with a device that speaks
# RDMA, and its checksums.
WANTED = ("virtio_pci", "virtio_console", "9pnet_virtio", "9p", "overlay", "veth", "ib_uverbs", "rdma_ucm", "rdma_rxe",
          "crc32_generic")
META_PACKAGE = "linux-image-amd64"


class Refused(Exception):
    """The reason for which a guest cannot be started."""


class Kernel:
    """A version of Linux below a root folder."""

    def __init__(self, root, version):
        self.version = version
        self.image = os.path.join(root, "boot", "vmlinuz-" + version)
        self.folder = os.path.join(root, "lib", "modules", version)

    def modules(self):
        """Paths of the modules below the folder, each after those that it needs; Refused where one
        is missing."""
        try:
            with open(os.path.join(self.folder, "modules.dep"), encoding="utf-8") as file:
                needs = {line.partition(":")[0]: line.partition(":")[2].split() for line in file}
            with open(os.path.join(self.folder, "modules.builtin"), encoding="utf-8") as file:
                built_in = {_module_name(line.strip()) for line in file}
        except OSError as reason:
            raise Refused(f"Linux {self.version}: no {reason.filename}") from None
        found = {_module_name(path): path for path in needs}
        ordered = []
        for name in WANTED:
            if name in found:
                # The file names what a module needs from near to far.
                ordered += [path for path in [*reversed(needs[found[name]]), found[name]] if path not in ordered]
            elif name not in built_in:
                raise Refused(f"Linux {self.version} has no module {name}")
        return ordered

    def check(self):
        if not os.access(self.image, os.R_OK):
            raise Refused(f"Linux {self.version}: cannot read {self.image}")
        self.modules()
        return self


def _module_name(path):
    return os.path.basename(path).partition(".")[0].replace("-", "_")


def module_bytes(path):
    """A module in the kernel's format: distributions use several compressions."""
    with open(path, "rb") as file:
        data = file.read()
    if path.endswith(".xz"):
        return lzma.decompress(data)
    if path.endswith(".gz"):
        return gzip.decompress(data)
    if path.endswith(".zst"):
        try:
            return subprocess.run(["zstd", "-dc"], input=data, stdout=subprocess.PIPE, check=True).stdout
        except FileNotFoundError:
            raise Refused(f"no zstd to unpack {path}") from None
    return data


def cache_folder():
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "oriel", "kernel")


def _newest_first(names):
    return sorted(names, key=lambda name: [int(word) if word.isdigit() else 0 for word in re.split(r"(\d+)", name)], reverse=True)


def find():
    """The newest usable kernel of the machine, else of the cache; Refused with the reason if there
    is none."""
    if platform.machine() != "x86_64":
        raise Refused("the guest supports only x86-64")
    reasons = []
    for root in ("/", cache_folder()):
        for image in _newest_first(glob.glob(os.path.join(root, "boot", "vmlinuz-*"))):
            try:
                return Kernel(root, os.path.basename(image).partition("-")[2]).check()
            except Refused as reason:
                reasons.append(str(reason))
    raise Refused("; ".join(reasons) or f"no kernel in /boot nor in {cache_folder()} (scripts/testrdma fetch)")


def _tool(folder, *words):
    try:
        return subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True,
                              stdin=subprocess.DEVNULL).stdout
    except FileNotFoundError:
        raise Refused(f"no {words[0]}") from None
    except subprocess.CalledProcessError as failed:
        output = (failed.stderr.strip() or failed.stdout.strip()).splitlines()
        raise Refused(f"{' '.join(words)}: {output[-1] if output else failed.returncode}") from None


def fetch():
    """Puts the distribution's current kernel into the cache, or raises Refused. Works for any user."""
    if platform.machine() != "x86_64":
        raise Refused("the guest supports only x86-64")
    cache = cache_folder()
    try:
        os.makedirs(cache, exist_ok=True)
        work = tempfile.mkdtemp(prefix=".new.", dir=cache)
    except OSError as reason:
        raise Refused(f"{cache}: {reason.strerror}") from None
    try:
        os.chmod(work, 0o755)  # apt downloads as its own user if possible
        output = _tool(work, "apt-cache", "depends", META_PACKAGE)
        package = re.search(r"Depends: (linux-image-\S+)", output)
        if not package:
            raise Refused(f"apt knows no {META_PACKAGE}")
        _tool(work, "apt-get", "download", "-qq", package[1])
        whole, kept = os.path.join(work, "whole"), os.path.join(work, "kept")
        _tool(work, "dpkg-deb", "-x", glob.glob(os.path.join(work, "*.deb"))[0], whole)
        if not os.path.exists(os.path.join(whole, "lib")):  # from Debian 13 on
            os.symlink("usr/lib", os.path.join(whole, "lib"))
        if not os.path.exists(os.path.join(whole, "lib", "modules")):
            raise Refused(f"{package[1]} has no modules: they are in other packages from Linux 7 on")
        version = os.listdir(os.path.join(whole, "lib", "modules"))[0]
        _tool(work, "depmod", "-b", whole, version)
        kernel, copy = Kernel(whole, version).check(), Kernel(kept, version)
        for path in (*kernel.modules(), "modules.dep", "modules.builtin"):
            os.makedirs(os.path.dirname(os.path.join(copy.folder, path)), exist_ok=True)
            shutil.copy(os.path.join(kernel.folder, path), os.path.join(copy.folder, path))
        os.mkdir(os.path.dirname(copy.image))
        shutil.copy(kernel.image, copy.image)
        for part in ("lib", "boot"):  # the image last: its presence marks a complete cache
            shutil.copytree(os.path.join(kept, part), os.path.join(cache, part), dirs_exist_ok=True)
        return Kernel(cache, version).check()
    finally:
        shutil.rmtree(work, ignore_errors=True)
