# SPDX-License-Identifier: BSL-1.0
"""The navigation: pages that do not exist are left out, and FOLDER/* is what is in a folder and named nowhere else.
Anchors: as tests/docs/check_docs.py expects them."""
import re
from pathlib import Path


def anchor(heading, separator):
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", separator)


def leaves(entries):
    for entry in entries:
        if isinstance(entry, dict):
            for value in entry.values():
                yield from [value] if isinstance(value, str) else leaves(value)
        else:
            yield entry


def existing(entries, root, named):
    found = []
    for entry in entries:
        if isinstance(entry, dict):
            title, value = next(iter(entry.items()))
            if isinstance(value, list):
                inner = existing(value, root, named)
                found += [{title: inner}] if inner else []
            elif (root / value).is_file():
                found.append(entry)
        elif entry.endswith("/*"):
            pages = (path.relative_to(root).as_posix() for path in sorted((root / entry).parent.glob("*.md")))
            found += [page for page in pages if page not in named]
        elif (root / entry).is_file():
            found.append(entry)
    return found


def on_config(config):
    named = set(leaves(config.nav))
    config.nav = existing(config.nav, Path(config.docs_dir), named)
    config.mdx_configs["toc"]["slugify"] = anchor
    return config
