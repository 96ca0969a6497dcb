#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""reference.py XML OUT: a page of Markdown for each public header, from the XML that Doxygen makes of its comments.

The reference is Markdown, so that guides and reference have one look and one search. A heading is a name that somebody
may search for: a type, a function with its overloads, a field."""
import os
import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

COLUMNS = 90  # of a declaration, before it is broken
KINDS = {"function", "variable", "typedef", "enum"}


def page_of(header):
    """holdfast/blocking/mutex.hpp → blocking/mutex.md"""
    return header.removeprefix("holdfast/").removesuffix(".hpp") + ".md"


def escaped(text):
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("|", "&#124;")
    return re.sub(r"[\\`*\[\]#]|(?<!\w)_|_(?!\w)", r"\\\g<0>", text)


def tidied(code):
    """Doxygen's spaces are not ours."""
    code = re.sub(r"<\s+", "<", code)
    while re.search(r"\s+>(?!=)", code):
        code = re.sub(r"\s+>(?!=)", ">", code)
    code = re.sub(r"\s+([&*]+)(?=[\w),> .]|$)", r"\1 ", code)
    code = re.sub(r"([&*]) +(?=[),>])", r"\1", code)
    code = re.sub(r"\s*=\s*(default|delete|0)$", r" = \1", code)
    code = re.sub(r"(\w)=(?=[\w{:\"'-])", r"\1 = ", code)
    return re.sub(r"  +", " ", code).strip()


def text_in(node, tag):
    found = node.find(tag)
    return "" if found is None else "".join(found.itertext())


def split_arguments(text):
    """The arguments of "(a, b<c, d>) const", and what follows them."""
    depth, start, found = 0, 1, []
    for position, letter in enumerate(text):
        depth += (letter in "(<{[") - (letter in ")}]" or letter == ">" and text[position - 1] != "-")
        if depth == 1 and letter == "," or depth == 0:
            found.append(text[start:position].strip())
            start = position + 1
        if depth == 0:
            return found, text[position + 1:]
    return found, ""


class Reference:
    def __init__(self, folder):
        self.pages = {}  # header → [(line, node)], of what is declared at namespace level
        self.compounds = {}
        self.places = {}  # Doxygen's id → (page, anchor)
        files = sorted(folder.glob("*.xml"))
        nodes = [node for path in files if path.name not in ("index.xml", "Doxyfile.xml")
                 for node in ElementTree.parse(path).getroot()]
        self.types = {node.findtext("compoundname") for node in nodes if node.get("kind") in ("class", "struct")}
        for node in nodes:
            self.add(node)
        for header in self.pages:
            self.pages[header].sort(key=lambda entry: entry[0])
            self.find_places(header)

    def add(self, node):
        name = node.findtext("compoundname")
        if "detail" in name.split("::"):
            return
        if node.get("kind") in ("class", "struct", "concept"):
            self.compounds[node.get("id")] = node
            where = node.find("location")
            if not self.is_nested(node):
                self.pages.setdefault(where.get("file"), []).append((int(where.get("line")), node))
        elif node.get("kind") == "namespace" and name.startswith("holdfast"):
            for member in node.iter("memberdef"):
                where = member.find("location")
                if member.get("kind") in KINDS:
                    header = where.get("declfile") or where.get("file")
                    line = where.get("declline") or where.get("line")
                    self.pages.setdefault(header, []).append((int(line), member))

    def is_nested(self, node):
        """A type within a type is shown there: only types of a namespace begin a section."""
        return node.findtext("compoundname").rpartition("::")[0] in self.types

    # anchors

    def find_places(self, header):
        page = page_of(header)
        for _, node in self.pages[header]:
            name = self.name_of(node)
            self.places[node.get("id")] = (page, self.anchor(name))
            for member in self.members(node) if node.tag == "compounddef" else ():
                self.places[member.get("id")] = (page, self.anchor(name, self.name_of(member)))
                for value in member.iter("enumvalue"):
                    self.places[value.get("id")] = (page, self.anchor(name, self.name_of(member)))
            for value in node.iter("enumvalue"):
                self.places.setdefault(value.get("id"), (page, self.anchor(name)))

    @staticmethod
    def anchor(*names):
        return "-".join(re.sub(r"[^\w]+", "-", name).strip("-") or "operator" for name in names).lower()

    @staticmethod
    def name_of(node):
        return (node.findtext("compoundname") or node.findtext("name")).rpartition("::")[2]

    def members(self, node):
        """What users of a type see: its types first, as they stand in the header."""
        found = [m for m in node.findall("sectiondef/memberdef") if m.get("prot") == "public" and m.get("kind") in KINDS]
        found += [self.compounds[inner.get("refid")] for inner in node.findall("innerclass")
                  if inner.get("prot") == "public" and inner.get("refid") in self.compounds]
        return sorted((m for m in found if not self.is_dull(m)), key=lambda m: int(m.find("location").get("line")))

    def is_dull(self, member):
        """What every type has."""
        copied = re.search(r"=\s*(default|delete)$", member.findtext("argsstring") or "")
        return not self.text(member, "") and (copied or self.name_of(member).startswith("~"))

    # text

    def text(self, node, page):
        blocks = [self.blocks(node.find(which), page) for which in ("briefdescription", "detaileddescription")]
        if blocks[0] and blocks[1] and len(blocks[0]) == 1 and not blocks[1][0].startswith(("|", "-", "`")):
            blocks[1][0] = f"{blocks[0].pop()} {blocks[1][0]}"  # the first sentence of the paragraph
        return "\n\n".join(blocks[0] + blocks[1])

    def blocks(self, node, page):
        found = []
        for part in node if node is not None else ():
            if part.tag == "para":
                found += self.paragraph(part, page)
            elif part.tag.startswith("sect"):
                found += self.blocks(part, page)
        return found

    def paragraph(self, node, page):
        found, line = [], escaped(node.text or "")
        for part in node:
            block = None
            if part.tag == "itemizedlist":
                block = "\n".join("- " + "\n  ".join(self.blocks(item, page)) for item in part)
            elif part.tag == "table":
                block = self.table(part, page)
            elif part.tag in ("verbatim", "programlisting"):
                block = "```cpp\n" + "".join(part.itertext()).strip("\n") + "\n```"
            elif part.tag == "simplesect":
                block = "\n\n".join(self.blocks(part, page))
            else:
                line += self.inline(part, page)
            if block is not None:
                found += [line.strip(), block]
                line = ""
            line += escaped(part.tail or "")
        found.append(line.strip())
        return [text for text in found if text]

    def inline(self, node, page):
        inside = escaped(node.text or "") + "".join(self.inline(p, page) + escaped(p.tail or "") for p in node)
        if node.tag == "computeroutput":
            return "`" + "".join(node.itertext()) + "`"
        if node.tag == "ref":
            return self.link(node.get("refid"), inside, page)
        if node.tag == "ulink":
            return f"[{inside}]({node.get('url')})"
        marks = {"emphasis": "*", "bold": "**"}.get(node.tag, "")
        return marks + inside + marks

    def link(self, to, text, page):
        place = self.places.get(to)
        if not place:
            return text
        path = os.path.relpath(place[0], os.path.dirname(page) or ".")
        return f"[{text}]({'' if place[0] == page else path}#{place[1]})"

    def table(self, node, page):
        rows = [[" ".join(self.blocks(cell, page)) for cell in row] for row in node.findall("row")]
        return "\n".join(f"| {' | '.join(row)} |" for row in [rows[0], ["---"] * len(rows[0]), *rows[1:]])

    # declarations

    def declaration(self, node):
        if node.tag == "compounddef":
            return self.head_of_type(node)
        if node.get("kind") == "enum":
            return f"enum class {node.findtext('name')} {{ {', '.join(v.findtext('name') for v in node.findall('enumvalue'))} }};"
        before = self.template_of(node)
        name = node.findtext("name")
        code = node.findtext("definition").replace(node.findtext("qualifiedname") or name, name)
        code = code.replace("= typedef ", "= ")
        if node.get("explicit") == "yes" and not code.startswith("explicit"):
            code = "explicit " + code
        after = tidied(node.findtext("argsstring") or "")
        if node.get("kind") == "variable":
            start = text_in(node, "initializer").strip()
            after += "" if not start else start if start.startswith("{") else " " + start
        code = tidied(code)
        if node.get("kind") == "function" and len(code + after) > COLUMNS:
            arguments, rest = split_arguments(after)
            before_result = "\n    -> " if len(rest) > COLUMNS / 2 else " -> "
            after = "(\n    " + ",\n    ".join(arguments) + ")" + rest.replace(" -> ", before_result)
        return before + code + after + ";"

    def template_of(self, node):
        listed = node.find("templateparamlist")
        if listed is None:
            return ""
        parts = []
        for param in listed:
            kind, name, given = (text_in(param, tag) for tag in ("type", "declname", "defval"))
            parts.append(kind + (f" {name}" if name and not kind.endswith(name) else "") + (f" = {given}" if given else ""))
        wanted = tidied(text_in(node, "requiresclause"))
        return f"template <{tidied(', '.join(parts))}>\n" + (f"  requires {wanted}\n" if wanted else "")

    def head_of_type(self, node):
        if node.get("kind") == "concept":
            return f"{self.template_of(node)}concept {self.name_of(node)} = {text_in(node, 'initializer').partition('= ')[2].strip()};"
        bases = [base.text for base in node.findall("basecompoundref") if base.get("prot") == "public"]
        head = f"{self.template_of(node)}{node.get('kind')} {self.name_of(node)}"
        return head + (f" : public {', '.join(tidied(base.removeprefix('holdfast::')) for base in bases)}" if bases else "")

    # pages

    def page(self, header):
        page = page_of(header)
        entries = [node for _, node in self.pages[header]]
        title = "::".join(Path(page).with_suffix("").parts)
        lines = [f"# {title}", "", f"```cpp\n#include <{header}>\n```", ""]
        for group in self.grouped(entries):
            alone = len(entries) == len(group) and self.name_of(group[0]) == title.rpartition("::")[2]
            lines += self.section(group, 2, page, self.name_of(group[0]), is_title=alone)
            if group[0].tag == "compounddef":
                for inner in self.grouped(self.members(group[0])):
                    lines += self.section(inner, 3, page, self.name_of(group[0]), self.name_of(inner[0]))
                    if inner[0].tag == "compounddef":
                        lines += self.fields(inner[0], page)
        return "\n".join(lines)

    def index(self):
        lines = ["# Reference", "", "Each public header has a page. The search finds each name in them.", ""]
        for folder, title in {"": "Coroutines", "blocking": "Plain threads", "testing": "Tests"}.items():
            lines += [f"## {title}", "", "| page | what it has |", "|---|---|"]
            for header in sorted(h for h in self.pages if os.path.dirname(page_of(h)) == folder):
                lines.append(self.row(header, page_of(header)))
            lines.append("")
        return "\n".join(lines)

    def row(self, header, page):
        """What the type or function is that the page is named after, in its first sentence, and what else is there."""
        nodes = {self.name_of(node): node for _, node in reversed(self.pages[header])}
        main = nodes.get(Path(page).stem)
        first = re.split(r"(?<=[.:]) ", self.text(main, "index.md").split("\n")[0])[0].rstrip(":.") if main is not None else ""
        names = dict.fromkeys(self.name_of(node) for _, node in self.pages[header] if self.name_of(node) != Path(page).stem)
        names = ", ".join(self.link(nodes[name].get("id"), f"`{name}`", "index.md") for name in names)
        return f"| [`{Path(page).stem}`]({page}) | {first}{first and names and '. Also '}{names} |"

    def grouped(self, nodes):
        """Overloads stand together."""
        groups = {}
        for node in nodes:
            groups.setdefault((self.name_of(node), node.get("kind")), []).append(node)
        return list(groups.values())

    def section(self, group, level, page, *names, is_title=False):
        kind = group[0].get("kind")
        shown = names[-1] + ("()" if kind == "function" else "")
        label = f"{kind} " if group[0].tag == "compounddef" or kind == "enum" else ""
        anchor = self.anchor(*names)
        # A class that is the page has the page's heading; its anchor stays.
        lines = [f'<a id="{anchor}"></a>' if is_title else f"{'#' * level} {label}`{shown}` {{ #{anchor} }}", ""]
        code, text = [], ""
        for node in group:
            new = self.text(node, page)
            if new and code and text:
                lines += self.block(code, text)
                code, text = [], ""
            code.append(self.declaration(node))
            text = text or new
        values = self.values(group[0], page)
        is_plain = node.tag == "compounddef" and kind != "concept" and not re.search("[:<]", code[0])
        return lines + ([text, ""] if values or is_plain else self.block(code, text)) + values

    @staticmethod
    def block(code, text):
        return ["```cpp", "\n\n".join(code) if any("\n" in c for c in code) else "\n".join(code), "```", "", text, ""]

    def values(self, node, page):
        """Of an enum whose values have comments."""
        rows = [(v.findtext("name"), " ".join(self.text(v, page).split())) for v in node.findall("enumvalue")]
        if not any(text for _, text in rows):
            return []
        return ["| value | meaning |", "|---|---|", *(f"| `{name}` | {text} |" for name, text in rows), ""]

    def fields(self, node, page):
        rows = [f"| `{self.declaration(m)}` | {' '.join(self.text(m, page).split())} |" for m in self.members(node)]
        return ["| member | meaning |", "|---|---|", *rows, ""] if rows else []


def main(arguments):
    reference, out = Reference(Path(arguments[0])), Path(arguments[1])
    for header in reference.pages:
        path = out / page_of(header)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(reference.page(header), encoding="utf-8")
    if not reference.pages:
        sys.exit(f"{arguments[0]}: no header")
    (out / "index.md").write_text(reference.index(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
