#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""What pages.py, reference.py and hooks.py of docs/site make of documents, of comments and of the navigation."""
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs/site"))
import hooks
import pages
import reference

TREE = {
    "README.md": "[lease](docs/guide/lease.md#ttl) [all](include/holdfast) [code](src/a.cpp#L3) `[x](y)`\n",
    "CHANGELOG.md": "# Changes\n",
    "CONTRIBUTING.md": "![drawn](docs/a.svg) [tests](tests/)\n",
    "docs/guide/lease.md": "<!-- from docs/examples/a.cpp -->\nText\n- item\n  - inner\n| `a \\| b` |\n"
                           "[mutex](../../include/holdfast/mutex.hpp) [up](../../README.md) [web](https://example.org)\n"
                           "```sh\n- [as](it/is)\n```\n",
    "docs/a.svg": "<svg/>",
    "include/holdfast/mutex.hpp": "",
    "src/a.cpp": "int a;\n",
    "tests/b.py": "b = 1\n",
}

MUTEX = """<doxygen><compounddef id="m" kind="class"><compoundname>holdfast::mutex</compoundname>
<location file="holdfast/mutex.hpp" line="1"/>
<briefdescription><para>A lock &lt;on&gt; a_name. </para></briefdescription>
<detaileddescription><para>See <ref refid="l">lock()</ref>.</para></detaileddescription>
<sectiondef><memberdef kind="function" id="l" prot="public"><type>void</type>
<definition>asio::awaitable&lt; lease &gt; holdfast::mutex::lock</definition><argsstring>(lock_options options={}) const</argsstring>
<name>lock</name><qualifiedname>holdfast::mutex::lock</qualifiedname><location file="holdfast/mutex.hpp" line="2"/>
<briefdescription><para>Waits. </para></briefdescription><detaileddescription/></memberdef>
<memberdef kind="variable" id="p" prot="private"><name>core_</name><definition>int core_</definition>
<location file="holdfast/mutex.hpp" line="3"/></memberdef></sectiondef></compounddef></doxygen>"""


def written(folder, tree):
    for name, text in tree.items():
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


class Pages(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        root, self.out = Path(self.folder.name, "tree"), Path(self.folder.name, "pages")
        written(root, TREE)
        written(self.out, {"reference/mutex.md": ""})
        before, pages.ROOT = pages.ROOT, root
        self.addCleanup(setattr, pages, "ROOT", before)
        self.site = pages.Site(self.out)

    def page(self, name):
        self.site.run()
        return (self.out / name).read_text(encoding="utf-8")

    def test_links_to_pages_stay(self):
        self.assertIn("[lease](docs/guide/lease.md#ttl)", self.page("README.md"))

    def test_headers_are_in_the_reference(self):
        self.assertIn("[all](reference/index.md)", self.page("README.md"))
        self.assertIn("[mutex](../../reference/mutex.md)", self.page("docs/guide/lease.md"))

    def test_other_files_become_pages(self):
        self.assertIn("[code](src/a.cpp.md)", self.page("README.md"))
        self.assertIn("````cpp\nint a;\n````", self.page("src/a.cpp.md"))

    def test_folders_become_lists(self):
        self.assertIn("- `b.py`", self.page("tests.md"))

    def test_pictures_are_copied(self):
        self.assertIn("![drawn](docs/a.svg)", self.page("CONTRIBUTING.md"))
        self.assertEqual(self.page("docs/a.svg"), "<svg/>")

    def test_code_and_other_sites_are_left_alone(self):
        self.assertIn("`[x](y)`", self.page("README.md"))
        self.assertIn("[web](https://example.org)", self.page("docs/guide/lease.md"))
        self.assertIn("\n\n```sh\n- [as](it/is)\n```", self.page("docs/guide/lease.md"))

    def test_what_github_reads_otherwise_is_mended(self):
        self.assertTrue(self.page("docs/guide/lease.md").startswith("Text\n\n- item\n    - inner\n\n| `a | b` |\n"),
                        self.page("docs/guide/lease.md"))

    def test_a_link_to_nothing_is_an_error(self):
        written(pages.ROOT, {"README.md": "[gone](gone.cpp)\n"})
        self.assertRaises(SystemExit, self.site.run)


class Reference(unittest.TestCase):
    def made(self):
        with tempfile.TemporaryDirectory() as folder:
            written(folder, {"m.xml": MUTEX})
            return reference.Reference(Path(folder))

    def test_a_header_is_a_page(self):
        made = self.made().page("holdfast/mutex.hpp")
        self.assertIn("# mutex\n\n```cpp\n#include <holdfast/mutex.hpp>\n```", made)
        self.assertIn("A lock &lt;on&gt; a_name. See [lock()](#mutex-lock).", made)
        self.assertIn("### `lock()` { #mutex-lock }\n\n```cpp\nasio::awaitable<lease> lock(lock_options options = {}) const;", made)

    def test_what_is_private_is_left_out(self):
        self.assertNotIn("core_", self.made().page("holdfast/mutex.hpp"))

    def test_the_index_has_first_sentences(self):
        self.assertIn("| [`mutex`](mutex.md) | A lock &lt;on&gt; a_name |", self.made().index())

    def test_long_declarations_are_broken(self):
        node = ElementTree.fromstring(MUTEX).find(".//memberdef")
        node.find("argsstring").text = f"(int {'a' * 50}, std::map< int, int > {'b' * 30})"
        self.assertEqual(self.made().declaration(node), "asio::awaitable<lease> lock(\n"
                         f"    int {'a' * 50},\n    std::map<int, int> {'b' * 30});")


class Navigation(unittest.TestCase):
    def test_anchors_are_those_that_pages_link_to(self):
        self.assertEqual(hooks.anchor("`lock_lost`: What happens when …", "-"), "lock_lost-what-happens-when")

    def test_pages_that_do_not_exist_are_left_out_and_new_ones_are_found(self):
        with tempfile.TemporaryDirectory() as folder:
            written(folder, {"README.md": "", "guide/a.md": "", "guide/b.md": ""})
            nav = [{"Home": "README.md"}, {"Guide": ["guide/b.md", "guide/gone.md", "guide/*"]}, {"None": ["gone.md"]},
                   {"Gone": "gone.md"}]
            self.assertEqual(hooks.existing(nav, Path(folder), set(hooks.leaves(nav))),
                             [{"Home": "README.md"}, {"Guide": ["guide/b.md", "guide/a.md"]}])


if __name__ == "__main__":
    unittest.main()
