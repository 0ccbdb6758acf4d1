#!/usr/bin/python3
"""The Debian packages on a clean system: they install with exactly their declared dependencies,
work, and leave no trace when removed.

The test rows run `debian.py BUILD HOST[,HOST]`."""

import glob
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "scripts"))
from debian_root import NOBODY, clean_root  # noqa: E402

# Only the builder of published packages knows the maintainer's address (DEBEMAIL); one library
# folder serves all prefixes.
ALLOWED = ("bogus-mail-host", "bogus-mail-host-in-debian-changelog", "root-in-contact",
           "pkg-config-unavailable-for-cross-compilation")


def packages(build, into):
    # Under a restrictive umask, as on some build systems: the packages' files are readable all the
    # same (check_policy).
    subprocess.run(["cpack", "-B", into], cwd=build, check=True, stdout=subprocess.DEVNULL, umask=0o077)
    os.chmod(into, 0o755)
    return glob.glob(os.path.join(into, "*.deb"))


def check_policy(files):
    output = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", "--suppress-tags", ",".join(ALLOWED), *files],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert output.returncode == 0, output.stdout
    print("ok lintian has nothing to say", flush=True)


def check_jobs(root, hosts, user):
    for host in hosts:
        for ranks in (1, 2, 4, 8):
            oversubscribe = "--oversubscribe " if host == "openmpi" else ""
            job = f"timeout 600 mpiexec.{host} {oversubscribe}-n {ranks} oriel"
            output = root.must(f"{job} run /srv/{host}/one_put", "windows by Oriel", user=user)
            assert output.count("memory=42") == ranks, output
        root.must(f"{job} check /srv/{host}/one_put", "no problems on 8 ranks", user=user)
        output = root.run(f"{job} check /srv/{host}/mistaken", user=user)
        assert output.returncode != 0 and "mistaken.c:" in output.stdout, output.stdout
        print(f"ok mistakes of {host} are reported with their lines", flush=True)


def main():
    build, hosts = sys.argv[1], sys.argv[2].split(",")
    with clean_root() as root:
        os.makedirs(root.path("srv/packages"))
        made = packages(build, root.path("srv/packages"))
        print("made", *map(os.path.basename, made))
        check_policy(made)
        shutil.rmtree(root.path("srv/packages/_CPack_Packages"))
        for host in hosts:
            shutil.copytree(os.path.join(build, "tests", "cli", host), root.path(f"srv/{host}"))
        before = root.must("apt-get update -qq && dpkg-query -W -f '${Package}\\n'")

        root.must("apt-get install -y -qq --no-install-recommends /srv/packages/*.deb")
        root.must("oriel --version", "oriel ")
        root.must("oriel info", *[f"served by /usr/lib/oriel/{host}/liboriel.so" for host in hosts])
        if "mpich" in hosts:  # Open MPI needs its launcher for a single process, too
            root.must("oriel run /srv/mpich/one_put", "memory=42", "windows by Oriel")
        root.must("cd /usr/share/doc/oriel && test -e copyright && grep -q '](copyright)' README.md && "
                  "! grep -q '](LICENSE)' README.md")
        root.must("dpkg --verify oriel $(dpkg-query -W -f '${Package} ' 'oriel-*')")

        root.must("apt-get install -y -qq --no-install-recommends $(dpkg-query -W -f '${Recommends}, ' 'oriel*' | "
                  "tr , '\\n' | sed 's/|.*//' | sort -u)")
        check_jobs(root, hosts, None)
        check_jobs(root, hosts, NOBODY)
        for host in hosts:
            root.must(f"oriel demo --host {host} --ranks 2", "with Oriel", user=NOBODY)
        root.must("oriel bench --quick --patterns put --sizes 8 --memories allocate --runs 1", "put", "Oriel")

        root.must("ls /usr/share/bash-completion/completions/oriel /usr/share/zsh/vendor-completions/_oriel "
                  "/usr/share/fish/vendor_completions.d/oriel.fish")
        root.must("apt-get install -y -qq --no-install-recommends man-db groff-base")
        root.must("man -w oriel oriel-run oriel-check", "/usr/share/man/man1/oriel.1.gz")

        root.must("apt-get install -y -qq --no-install-recommends lmod")
        root.must("""export PATH=/bin
            . /usr/share/lmod/lmod/init/sh
            module use /usr/share/modulefiles; module load oriel; module list 2>&1
            echo "$PATH|$PKG_CONFIG_PATH|$CMAKE_PREFIX_PATH"; module unload oriel; echo "after:$PATH|$PKG_CONFIG_PATH" """,
                  "oriel/0.2.0", "/usr/bin:/bin|/usr/lib/pkgconfig|/usr", "after:/bin|")

        root.must("apt-get purge -y -qq 'oriel*'")
        left = root.must("find / -xdev -path /proc -prune -o -path /srv -prune -o -path /var/lib/apt -prune -o "
                         "-iname '*oriel*' -print")
        assert not left, left
        print(f"ok nothing is left; the system had {len(before.split())} packages at first")


main()
