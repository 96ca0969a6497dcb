#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""recipes_test.py ROOT SCRATCH GENERATOR COMPILER: what packages, recipes and pages name is what the build has. Nothing is compiled.

Configures the packages, and a user's project with the lines of docs/guide/install.md for FetchContent; writes the recipes for
an archive that stands for a release."""
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

ROOT, SCRATCH, GENERATOR, COMPILER = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4]
MOMENT = 1_700_000_000
ADDRESS = "https://forge.example/holdfast"
SCRIPTS = sorted((ROOT / "cmake/packaging").glob("*.sh"))
RECIPES = [*sorted((ROOT / "packaging").rglob("*.py")), *sorted((ROOT / "packaging").rglob("*.in"))]
PAGE = ROOT / "docs/guide/install.md"
BOOST = re.compile(r"^#include <boost/(\w+)", re.M)


def read(path):
    return Path(path).read_text(encoding="utf-8")


def run(*command, **environment):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False,
                          env={**os.environ, **environment})
    if done.returncode:
        raise AssertionError(f"{command}\n{done.stdout}{done.stderr}")
    return done.stdout


def cmake(source, build, *options, **environment):
    return run("cmake", "-S", source, "-B", build, f"-DCMAKE_CXX_COMPILER={COMPILER}", *options, **environment)


def version():
    return re.search(r"^project\(holdfast VERSION ([\d.]+) ", read(ROOT / "CMakeLists.txt"), re.M)[1]


def options():
    """Names that the build takes from its user."""
    files = [ROOT / "CMakeLists.txt", *(ROOT / "cmake").rglob("*.cmake"), *(ROOT / "src").rglob("CMakeLists.txt")]
    declared = r"^ *(?:option|cmake_dependent_option)\((\w+)|^ *set\((\w+) .* CACHE "
    return {"".join(name) for file in files for name in re.findall(declared, read(file), re.M)}


def boost_libraries(*folders):
    sources = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in (".hpp", ".cpp")]
    return {name for path in sources for name in BOOST.findall(read(path))}


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(SCRATCH, ignore_errors=True)
        SCRATCH.mkdir(parents=True)
        cls.build = SCRATCH / "package"
        said = cmake(ROOT, cls.build, "--preset", "package", "-G", GENERATOR, f"-DHOLDFAST_REPOSITORY={ADDRESS}", SOURCE_DATE_EPOCH=str(MOMENT))
        assert "Build files" in said
        cls.settings = dict(re.findall(r'^set\((CPACK_\w+) "(.*)"\)$', read(cls.build / "CPackConfig.cmake"), re.M))

    def test_the_package_of_the_library_has_its_soname_and_the_others_need_this_very_build(self):
        soname = ".".join(version().split(".")[:2])
        self.assertEqual(self.settings["CPACK_DEBIAN_RUNTIME_PACKAGE_NAME"], f"libholdfast{soname}")
        release = self.settings["CPACK_DEBIAN_PACKAGE_RELEASE"]
        self.assertRegex(self.settings["CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS"],
                         rf"^libholdfast{re.escape(soname)} \(= {re.escape(version())}-{re.escape(release)}\), libboost1\.\d+-dev$")

    def test_every_component_of_the_install_rules_is_a_package(self):
        rules = read(self.build / "cmake_install.cmake") + read(self.build / "src/cli/cmake_install.cmake")
        named = set(re.findall(r'CMAKE_INSTALL_COMPONENT STREQUAL "(\w+)"', rules))
        self.assertEqual(named, set(self.settings["CPACK_COMPONENTS_ALL"].split(";")))
        self.assertNotIn("Unspecified", named)

    def test_the_files_for_debian_have_the_version_and_the_moment_of_the_source(self):
        changelog = read(self.build / "generated/debian/changelog")
        self.assertIn(f"holdfast ({version()}-{self.settings['CPACK_DEBIAN_PACKAGE_RELEASE']}) ", changelog)
        self.assertIn("Tue, 14 Nov 2023 22:13:20 +0000", changelog)
        copyright_file = read(self.build / "generated/debian/copyright")
        for line in filter(None, read(ROOT / "LICENSE").splitlines()):
            self.assertIn(f"\n {line}\n", copyright_file)

    def test_the_bill_of_materials_names_each_library_that_is_linked_with_its_version(self):
        bill = json.loads(read(self.build / "generated/holdfast.spdx.json"))
        self.assertEqual(bill["spdxVersion"], "SPDX-2.3")
        self.assertEqual(bill["creationInfo"]["created"], "2023-11-14T22:13:20Z")
        packages = {package["name"]: package for package in bill["packages"]}
        self.assertLessEqual({"holdfast", "boost", "hiredis", "openssl", "cli11"}, set(packages))
        self.assertEqual(packages["holdfast"]["versionInfo"], version())
        self.assertEqual(packages["holdfast"]["downloadLocation"], f"git+{ADDRESS}@v{version()}")
        for name, package in packages.items():
            self.assertRegex(package["versionInfo"], r"^\d+\.\d+", name)
            self.assertEqual(package["externalRefs"][0]["referenceLocator"], f"pkg:generic/{name}@{package['versionInfo']}")
        related = {r["relatedSpdxElement"] for r in bill["relationships"]}
        self.assertEqual(related, {package["SPDXID"] for package in bill["packages"]})

    def test_the_bill_of_materials_is_installed(self):
        self.assertIn("holdfast.spdx.json", read(self.build / "cmake_install.cmake"))


class Recipes(unittest.TestCase):
    def recipes(self, address):
        archive = SCRATCH / f"holdfast-{version()}.tar.gz"
        archive.write_bytes(b"an archive")
        out = SCRATCH / "recipes"
        run("sh", ROOT / "cmake/packaging/recipes.sh", archive, out, HOLDFAST_REPOSITORY=address)
        return archive, out

    def test_recipes_have_the_version_the_hash_and_the_address_of_the_release(self):
        archive, out = self.recipes(ADDRESS)
        url = f"{ADDRESS}/releases/download/v{version()}/{archive.name}"
        data = read(out / "conan/conandata.yml")
        self.assertIn(f'  "{version()}":\n    url: "{url}"\n    sha256: "{hashlib.sha256(archive.read_bytes()).hexdigest()}"\n', data)
        port = read(out / "vcpkg/holdfast/portfile.cmake")
        self.assertIn(f'URLS "{url}"', port)
        self.assertIn(f"SHA512 {hashlib.sha512(archive.read_bytes()).hexdigest()})", port)
        manifest = json.loads(read(out / "vcpkg/holdfast/vcpkg.json"))
        self.assertEqual((manifest["version-semver"], manifest["homepage"]), (version(), ADDRESS))
        for file in ("CMakeLists.txt", "main.cpp", "conanfile.py"):
            self.assertTrue((out / "conan/test_package" / file).is_file(), file)

    def test_recipes_without_an_address_take_the_archive_itself(self):
        archive, out = self.recipes("")
        self.assertIn(f'url: "file://{archive}"', read(out / "conan/conandata.yml"))
        self.assertNotIn("homepage", json.loads(read(out / "vcpkg/holdfast/vcpkg.json")))
        for path in out.rglob("*"):
            if path.is_file():
                self.assertNotRegex(read(path), r"@\w+@", path)

    def test_the_port_names_each_library_of_boost_that_is_included(self):
        named = {d[len("boost-"):].replace("-", "_") for d in json.loads(read(ROOT / "packaging/vcpkg/holdfast/vcpkg.json.in"))["dependencies"]
                 if isinstance(d, str) and d.startswith("boost-")}
        used = boost_libraries("include") | set().union(
            *(boost_libraries(f.relative_to(ROOT)) for f in (ROOT / "src").iterdir() if f.name not in ("cli", "otel", "testing")))
        self.assertEqual(named, used)

    def test_recipes_presets_scripts_and_pages_name_options_that_the_build_has(self):
        known = options()
        for path in [*RECIPES, *SCRIPTS, ROOT / "CMakePresets.json", PAGE, ROOT / "README.md"]:
            for name in re.findall(r"-D(HOLDFAST_\w+)=|\"(HOLDFAST_\w+)\": \"", read(path)):
                self.assertIn("".join(name), known, path)
        for name in re.search(r"for name in (\(.*\)):", read(ROOT / "packaging/conan/conanfile.py"))[1].strip("()").split(", "):
            self.assertIn(f"HOLDFAST_BUILD_{name[1:-1]}", known)


class Pages(unittest.TestCase):
    def test_the_lines_for_fetchcontent_find_the_target(self):
        lines = re.search(r"^## FetchContent\n(?:(?!```).*\n)*```cmake\n((?:(?!```).*\n)*)", read(PAGE), re.M)[1]
        project = SCRATCH / "user"
        project.mkdir()
        (project / "main.cpp").write_text("int main() {}\n", encoding="utf-8")
        (project / "CMakeLists.txt").write_text(
            f"cmake_minimum_required(VERSION 3.25)\nproject(app LANGUAGES CXX)\nadd_executable(app main.cpp)\n{lines}", encoding="utf-8")
        said = cmake(project, project / "build", "-G", GENERATOR, f"-DFETCHCONTENT_SOURCE_DIR_HOLDFAST={ROOT}",
                     "-DHOLDFAST_REPOSITORY=https://forge.invalid/")
        self.assertIn("Build files", said)
        self.assertFalse((project / "build/_deps/holdfast-build/tests").exists())

    def test_every_part_of_the_check_is_in_its_usage_and_in_the_page_of_the_release(self):
        script, page = read(ROOT / "cmake/packaging/check.sh"), read(ROOT / "docs/internals/release.md")
        parts = re.findall(r"^sh cmake/packaging/check\.sh (\w+)", script, re.M)
        cases = " ".join(re.findall(r"^  ([a-z |]+)\)", script[script.index("case $part in"):], re.M)).replace("|", " ").split()
        self.assertEqual(sorted(parts), sorted(cases))
        for part in parts:
            self.assertIn(f"sh cmake/packaging/check.sh {part}", page)
        for script in SCRIPTS:
            run("sh", "-n", script)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
