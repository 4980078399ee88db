"""What a Debian root of the local target leaves out, and why. A package that is left out is not listed as installed.

The root serves commands of an unprivileged agent without network, so the things below are never reached. What stays
is complete: `tests/integration/test_sources.py` loads every extension module and every shared library of it.
"""

from __future__ import annotations

import re

_TLS = "only git's HTTP transport and LDAP use it, and that transport is left out: an episode has no network"
_PERL = "git's Perl commands (add -i of old, send-email, svn, cvs) are left out"
_DPKG = "packages are unpacked here and never changed in the image; its database stays for readers"
_NIS = "only Python's nis module uses it"

DROPPED_PACKAGES: dict[str, str] = {
    **dict.fromkeys(("perl", "perl-base", "perl-modules", "libperl", "liberror-perl"), _PERL),
    **dict.fromkeys(("libgdbm", "libgdbm-compat"), _PERL),
    **dict.fromkeys(("libcurl", "libcurl-gnutls", "libgnutls", "libhogweed", "libnettle", "libp11-kit"), _TLS),
    **dict.fromkeys(
        ("libidn2", "libunistring", "libtasn1", "libldap", "libldap-common", "libsasl2", "libsasl2-modules-db"), _TLS
    ),
    **dict.fromkeys(("librtmp", "libssh2", "libnghttp2", "libnghttp3", "libngtcp2", "libngtcp2-crypto-gnutls"), _TLS),
    **dict.fromkeys(("libpsl", "libbrotli", "libkrb5", "libkrb5support", "libk5crypto", "libgssapi-krb5"), _TLS),
    **dict.fromkeys(("libkeyutils", "libcom-err", "krb5-locales", "publicsuffix", "ca-certificates"), _TLS),
    **dict.fromkeys(("libtirpc", "libtirpc-common", "libnsl"), _NIS),
    **dict.fromkeys(("dpkg", "debconf", "libdebconfclient", "libmd", "cdebconf"), _DPKG),
    "git-man": "manual pages",
    "libdb": "only Python's dbm.ndbm module uses it",
}

_NOT_READ = "documentation and translations that no program reads"
_HTTP = "needs libcurl, which is left out"
_SCRIPT = "needs Perl, Tcl, a network or a server, which the image has not"
_NO_SERVICES = "no service manager runs in the image"
_NOT_RUN = "tests, tools and data of people at a desk"

DROPPED_PATHS: tuple[tuple[str, str], ...] = (
    (r"usr/share/(?:man|info|locale|lintian|bug|doc-base|menu|bash-completion|zsh)(?:/|$)", _NOT_READ),
    (r"usr/share/(?:binfmts|perl5?|gitweb|gcc|gdb)(?:/|$)", "data of programs that are not in the image"),
    (r"usr/share/doc/[^/]+/(?!copyright$)", _NOT_READ),
    (r"etc/(?:cron\.[^/]+|init\.d|bash_completion\.d|dpkg|apt|default)(?:/|$)", _NO_SERVICES),
    (r"(?:usr/)?lib/(?:systemd|tmpfiles\.d|sysusers\.d)(?:/|$)", _NO_SERVICES),
    (r"var/cache/", "caches of tools that are not in the image"),
    (r"usr/lib/x86_64-linux-gnu/(?:gconv|audit|perl-base|perl)(?:/|$)", "plugins of libc for iconv and auditing"),
    (r"usr/lib/git-core/git-(?:remote-(?:https?|ftps?)|http-(?:push|fetch|backend)|imap-send)$", _HTTP),
    (r"usr/lib/git-core/git-(?:add--interactive|archimport|citool|cvs[^/]*|daemon|gui[^/]*|instaweb|p4)$", _SCRIPT),
    (r"usr/lib/git-core/git-(?:send-email|svn|shell|filter-branch|request-pull|credential-[^/]*)$", _SCRIPT),
    (r"usr/lib/git-core/(?:scalar|git-gui--askpass)$|usr/bin/(?:scalar|git-(?:shell|cvsserver))$", _SCRIPT),
    (r"usr/share/git-core/contrib/", _SCRIPT),
    (r"usr/lib/python3\.\d+/(?:test|idlelib|lib2to3|turtledemo|tkinter|ensurepip|pydoc_data)(?:/|$)", _NOT_RUN),
    (r"usr/lib/python3\.\d+/config-3\.", "for building extension modules"),
    (r"usr/lib/python3\.\d+/lib-dynload/(?:nis|_dbm)\.", "its library is left out"),
    (r"usr/(?:games|src)(?:/|$)", "empty"),
)

_PATHS = re.compile("|".join(f"(?:{pattern})" for pattern, _ in DROPPED_PATHS))
# Debian puts the ABI into a library package's name (libcurl3t64-gnutls, libperl5.36); it changes from suite to suite.
_ABI = re.compile(r"t64|-?\d+(?:\.\d+)*")


def drops_package(name: str) -> bool:
    """Whether a resolved package is left out, whatever ABI numbers its name carries."""
    return _ABI.sub("", name) in _DROPPED_STEMS


def drops_path(path: str) -> bool:
    """Whether a path of a kept package (relative, merged /usr) is left out."""
    return _PATHS.match(path) is not None


_DROPPED_STEMS = frozenset(_ABI.sub("", name) for name in DROPPED_PACKAGES)
