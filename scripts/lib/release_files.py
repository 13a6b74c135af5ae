"""Helper of scripts/release: bills of materials, provenance, notes and checksums of its files and images."""

import argparse
import hashlib
import json
import os
import re
import sys
import tarfile
import uuid
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

from cyclonedx.exception.factory import InvalidSpdxLicenseException
from cyclonedx.factory.license import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import License
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

Facts = dict[str, Any]


@dataclass(frozen=True)
class Artifact:
    """File or image of a release.

    Attributes:
        stem: Prefix of the files that describe it.
        name: Name of the file, or name of the image with its tag.
        sha256: Digest as 64 hexadecimal digits.
        kind: Whether it is a file or an image.
        parts: What it contains, or for a Python package, what it requires.
        notes: Manifest of an image, empty for a file.
    """

    stem: str
    name: str
    sha256: str
    kind: ComponentType
    parts: list[Component]
    notes: Facts


def images(out: Path) -> Iterator[Artifact]:
    """Yield the images in images.txt, which has one line for each: stem of its manifest, name, and digest."""
    for stem, name, digest in (line.split() for line in (out / "images.txt").read_text().splitlines()):
        manifest = json.loads((out / f"{stem}.json").read_text())
        python = [(package, "pypi", "") for packages in manifest["python"].values() for package in packages]
        debian = [(package, "deb", "debian") for package in manifest["debian"]]
        unique = {(kind, p["name"], p["version"]): component(p, kind, group) for p, kind, group in python + debian}
        yield Artifact(
            stem, name, digest.removeprefix("sha256:"), ComponentType.CONTAINER, list(unique.values()), manifest
        )


def files(out: Path) -> Iterator[Artifact]:
    """Yield the wheels and the source distribution."""
    for path in sorted([*out.glob("*.whl"), *out.glob("*.tar.gz")]):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        yield Artifact(path.name, path.name, digest, ComponentType.LIBRARY, list(requirements(path)), {})


def requirements(path: Path) -> Iterator[Component]:
    """Yield what a wheel or a source distribution requires without extras, with the allowed versions."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            (member,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
            text = archive.read(member).decode()
    else:
        with tarfile.open(path) as archive:
            member = next(name for name in archive.getnames() if re.fullmatch(r"[^/]+/PKG-INFO", name))
            text = (archive.extractfile(member) or sys.exit(f"{path.name}: no {member}")).read().decode()
    for line in HeaderParser().parsestr(text).get_all("Requires-Dist", []):
        if "extra ==" not in line and (match := re.match(r"([\w.-]+)\s*\(?([^;)]*)", line)):
            yield Component(
                name=match[1], description=match[2].strip() or None, purl=PackageURL("pypi", None, match[1].lower())
            )


def component(package: Facts, kind: str, group: str) -> Component:
    """Return a package of a manifest as a component with its licences."""
    qualifiers = {"arch": package["architecture"]} if "architecture" in package else {}
    return Component(
        name=package["name"],
        version=package["version"],
        type=ComponentType.LIBRARY,
        purl=PackageURL(kind, group or None, package["name"].lower(), package["version"], qualifiers),
        licenses=list(licences(package["licences"])),
    )


def licences(names: list[str]) -> Iterator[License]:
    """Yield licences by their SPDX identifiers, or by name if they have none. A single expression stays one."""
    factory = LicenseFactory()
    if len(names) == 1:
        yield factory.make_from_string(names[0])
        return
    for name in names:
        try:
            yield factory.make_with_id(name)
        except InvalidSpdxLicenseException:
            yield factory.make_with_name(name)


def bill_of_materials(artifact: Artifact, created: datetime) -> str:
    """Return a validated CycloneDX document. The same artifact gives the same bytes.

    Raises:
        ValueError: The document does not follow the schema.
    """
    bom = Bom(components=artifact.parts, serial_number=uuid.uuid5(uuid.NAMESPACE_URL, artifact.sha256))
    bom.metadata.timestamp = created
    bom.metadata.component = Component(
        name=artifact.name, type=artifact.kind, hashes=[HashType(alg=HashAlgorithm.SHA_256, content=artifact.sha256)]
    )
    text = JsonV1Dot6(bom).output_as_string(indent=1)
    if error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        raise ValueError(f"{artifact.name}: the bill of materials does not follow CycloneDX 1.6: {error}")
    return text


def provenance(artifact: Artifact, made: dict[str, str]) -> Facts:
    """Return an in-toto statement with the SLSA provenance of an artifact. ``made`` has the labels of its build."""
    sources = [{"uri": f"git+{made['SOURCE'] or 'local'}", "digest": {"gitCommit": made["REVISION"]}}]
    if artifact.kind is ComponentType.CONTAINER:
        base = {"uri": artifact.notes["labels"].get("org.opencontainers.image.base.name", "")}
        if digest := made["BASE_DIGEST"]:
            base["digest"] = {"sha256": digest.removeprefix("sha256:")}
        sources.append(base)
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": artifact.name, "digest": {"sha256": artifact.sha256}}],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": f"{made['SOURCE']}/scripts/release",
                "externalParameters": {"version": made["VERSION"], "locks": made["LOCKS"]},
                "resolvedDependencies": sources,
            },
            "runDetails": {"builder": {"id": f"{made['SOURCE']}/scripts/release@{made['REVISION']}"}},
        },
    }


def notes(artifacts: list[Artifact], changelog: str, version: str, previous: Path | None) -> str:
    """Return the section of the changelog, the names of the images, and what changed in them."""
    section = re.search(rf"(?ms)^## \[{re.escape(version)}\].*?(?=^## \[|\Z)", changelog)
    lines = [section[0].rstrip() if section else f"## {version}", "", "## Images", ""]
    shipped = [artifact for artifact in artifacts if artifact.notes]
    lines += [f"- `{artifact.name}`, sha256:{artifact.sha256}" for artifact in shipped]
    for artifact in shipped:
        earlier = previous / f"{artifact.stem}.json" if previous else None
        if earlier and earlier.exists():
            changes = list(changed_packages(json.loads(earlier.read_text()), artifact.notes))
            lines += ["", f"### Changes of {artifact.stem}", "", *(changes or ["No package changed."])]
    return "\n".join(lines) + "\n"


def changed_packages(earlier: Facts, later: Facts) -> Iterator[str]:
    """Yield a line for each package that was added, removed or changed between two manifests, and for the size."""
    yield f"- Size: {earlier['size'] / 1e9:.2f} GB → {later['size'] / 1e9:.2f} GB"
    before, after = versions(earlier), versions(later)
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            yield f"- {name}: {before.get(name, 'new')} → {after.get(name, 'removed')}"


def versions(manifest: Facts) -> dict[str, str]:
    """Return the versions of all packages of a manifest, by name and origin."""
    groups: Iterable[tuple[str, list[Facts]]] = [("Debian", manifest["debian"]), *manifest["python"].items()]
    return {f"{package['name']} ({group})": package["version"] for group, packages in groups for package in packages}


def main() -> int:
    """Write all files, or print an error in one line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="folder of the release")
    parser.add_argument("--changelog", type=Path, required=True)
    parser.add_argument("--previous", type=Path, help="folder of the previous release")
    options = parser.parse_args()
    made = {name: os.environ[f"TANK_{name}"] for name in ("BASE_DIGEST", "LOCKS", "REVISION", "SOURCE", "VERSION")}
    artifacts = [*files(options.out), *images(options.out)]
    try:
        for artifact in artifacts:
            text = bill_of_materials(artifact, datetime.fromisoformat(os.environ["TANK_CREATED"]))
            (options.out / f"{artifact.stem}.cdx.json").write_text(text)
            statement = json.dumps(provenance(artifact, made), indent=1)
            (options.out / f"{artifact.stem}.provenance.json").write_text(statement + "\n")
    except ValueError as error:
        print(f"release: error: {error}", file=sys.stderr)
        return 1
    changelog = options.changelog.read_text()
    (options.out / "NOTES.md").write_text(notes(artifacts, changelog, made["VERSION"], options.previous))
    if names := [artifact.name for artifact in artifacts if artifact.notes]:
        registry, _, rest = names[0].rpartition("/")
        settings = {"TANK_REGISTRY": registry, "TANK_TAG": rest.partition(":")[2], "TANK_PULL": "missing"}
        (options.out / "release.env").write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    sums = options.out / "SHA256SUMS"
    hashed = sorted(path for path in options.out.iterdir() if path != sums)
    sums.write_text("".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in hashed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
